//! Applying a set: rank after rank, all of one rank at the same time, every failure told.

use std::collections::BTreeSet;

use castle_engine::{Context, Pace};
use castle_kubernetes::rank::{LAST, rank};
use castle_kubernetes::scope::defines;
use castle_kubernetes::{KubeError, Kubernetes, Mode, Object, ObjectId, Place, Survey};
use castle_model::{Class, Failure, Finding, Verdict};
use futures::{StreamExt, stream};

use super::{ManifestStep, selector};
use crate::objects::held_up;

/// How many objects of one rank are on their way at a time: more keep the server's disk busy while it thinks, and more
/// than a hundred the server does not take over one connection.
const AT_ONCE: usize = 64;

impl ManifestStep {
    /// Refuses a set with objects that are not where their kind lives, before anything of it is applied.
    pub(super) async fn check_places(
        &self,
        client: &Kubernetes,
        wanted: &[Object],
    ) -> Result<(), Failure> {
        let misplaced = client.misplaced(wanted).await?;
        let Some((id, why)) = misplaced.first() else { return Ok(()) };
        let why = format!("{id}: {why}{}", and_more(misplaced.len()));
        let findings = misplaced
            .iter()
            .map(|(id, why)| Finding::new(id.to_string(), why, "correct `metadata.namespace`"));
        Err(Failure::new(Class::Invalid, format!("apply {}", self.name()), why)
            .findings(findings.collect())
            .hint("correct `metadata.namespace` in the manifest"))
    }

    /// Applies what is not there as wanted, rank by rank. What failed in one rank is told together, and nothing of the
    /// next is tried: a rerun goes on from there.
    pub(super) async fn apply(
        &self,
        cx: &Context,
        client: &Kubernetes,
        wanted: &[Object],
        survey: &Survey,
    ) -> Result<(), Failure> {
        let lacking: BTreeSet<&ObjectId> = survey.lacking().collect();
        let ranks: BTreeSet<usize> = wanted.iter().map(rank).collect();
        for current in ranks {
            let batch: Vec<&Object> = wanted
                .iter()
                .filter(|object| rank(object) == current && lacking.contains(&object.id()))
                .collect();
            if current == LAST && !batch.is_empty() {
                self.definitions_established(cx, wanted).await?;
            }
            let calls: Vec<_> =
                batch.into_iter().map(|object| send(cx, client, wanted, object)).collect();
            let mut failures: Vec<Failure> = stream::iter(calls)
                .buffer_unordered(AT_ONCE)
                .filter_map(|sent| std::future::ready(sent.err()))
                .collect()
                .await;
            // They are told in the same order, whoever was answered first.
            failures.sort_by(|a, b| a.what.cmp(&b.what));
            if let Some(failure) = together(failures) {
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Objects of new kinds come after their definitions are established.
    async fn definitions_established(
        &self,
        cx: &Context,
        wanted: &[Object],
    ) -> Result<(), Failure> {
        let ids: Vec<ObjectId> = wanted
            .iter()
            .filter(|o| o.kind() == "CustomResourceDefinition")
            .map(Object::id)
            .collect();
        let Some(first) = ids.first() else { return Ok(()) };
        let place =
            Place::everywhere(&first.api_version, &first.kind).only(selector(&self.cluster));
        self.cluster
            .settled(cx, "definitions to be established", vec![place], |there| {
                let missing = ids.iter().find(|id| !there.contains_key(*id));
                match missing {
                    Some(id) => Verdict::Waiting(format!("{id} is not there yet")),
                    None => held_up(ids.iter().filter_map(|id| there.get(id)))
                        .unwrap_or_else(|| Verdict::Ready(String::new())),
                }
            })
            .await
            .map(|_| ())
    }
}

/// Applies one object. A kind that is defined but not served yet is waited for; one that nobody defines can not come.
async fn send(
    cx: &Context,
    client: &Kubernetes,
    wanted: &[Object],
    object: &Object,
) -> Result<(), Failure> {
    let unknown = match client.apply(object, Mode::Real).await {
        Err(error @ KubeError::NoSuchKind { .. }) => error,
        sent => return Ok(sent.map(drop)?),
    };
    let (group, kind) = (object.group(), object.kind());
    let here = wanted.iter().any(|definition| defines(definition, group, kind));
    if !here && !client.is_defined(group, kind).await? {
        return Err(unknown.failure().hint(format!(
            "no CustomResourceDefinition of {kind} is in this layer or in the cluster: add it, or name the layer that brings it in `after`"
        )));
    }
    let what = format!("{kind} to be served");
    cx.wait(Pace::GATE, &what, || async move {
        match client.apply(object, Mode::Real).await {
            Ok(_) => Ok(Verdict::Ready(())),
            Err(error @ KubeError::NoSuchKind { .. }) => Ok(Verdict::Waiting(error.to_string())),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

/// Several failures as one. It is transient only if all are: what can never succeed is not to be tried again.
pub(crate) fn together(failures: Vec<Failure>) -> Option<Failure> {
    let count = failures.len();
    let wait = failures.iter().filter_map(|failure| failure.wait).max();
    let findings: Vec<Finding> = failures
        .iter()
        .map(|failure| {
            let cure = failure.hint.clone().unwrap_or_else(|| "run the same command again".into());
            Finding::new(&failure.what, &failure.why, cure)
        })
        .collect();
    let mut failures = failures;
    let worst = failures.iter().position(|failure| !failure.is_transient()).unwrap_or(0);
    if failures.is_empty() {
        return None;
    }
    let mut first = failures.swap_remove(worst);
    first.wait = wait;
    if count > 1 {
        first.why = format!("{}{}", first.why, and_more(count));
        first = first.findings(findings);
    }
    Some(first)
}

fn and_more(count: usize) -> String {
    match count.saturating_sub(1) {
        0 => String::new(),
        1 => "; and one more".to_owned(),
        more => format!("; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_one_rank_are_told_together_and_the_final_one_decides() {
        let late = || Failure::new(Class::Transient, "apply A", "busy").wait(3);
        let wrong = || Failure::new(Class::Invalid, "apply B", "denied").hint("correct it");
        assert_eq!(together(Vec::new()), None);
        assert_eq!(together(vec![late()]), Some(late()));
        let both = together(vec![late(), wrong()]).unwrap();
        assert_eq!((both.class, both.what.as_str()), (Class::Invalid, "apply B"));
        assert_eq!(both.why, "denied; and one more");
        let told: Vec<String> = both.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["apply A: busy; run the same command again", "apply B: denied; correct it"]
        );
        let all = together(vec![late(), late(), late()]).unwrap();
        assert!(all.is_transient());
        assert_eq!((all.why.as_str(), all.wait), ("busy; and 2 more", late().wait));
    }
}
