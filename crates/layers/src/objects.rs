//! A few objects of our own making: how they stand, applied after the server has tried them out, and probes.

use castle_engine::{Context, Pace};
use castle_kubernetes::judge::{judge, judge_among};
use castle_kubernetes::{KubeError, Kubernetes, Mark, Mode, Object, ObjectId, Survey};
use castle_model::{Change, Failure, Verdict};
use castle_platforms::cluster::Objects;
use serde_json::{Value, json};

use crate::manifest::{change, refuse_foreign};

/// The objects with our mark.
pub(crate) fn marked(mark: &Mark, values: Vec<Value>) -> Result<Vec<Object>, Failure> {
    values
        .into_iter()
        .map(|value| {
            let mut object =
                Object::new(value).map_err(|why| Failure::bug("make an object", why))?;
            mark.put_on(&mut object);
            Ok(object)
        })
        .collect()
}

/// Applies what is missing or differs, each object only after a dry run of the very object was accepted: that goes
/// the whole way through the API server to its webhooks, which no look at pods or endpoints does.
pub(crate) async fn apply_tried(
    cx: &Context,
    client: &Kubernetes,
    mark: &Mark,
    wanted: &[Object],
) -> Result<Change, Failure> {
    let survey = client.survey(mark, wanted).await?;
    refuse_foreign(&survey)?;
    let lacking: Vec<&Object> = wanted.iter().filter(|o| is_lacking(&survey, o)).collect();
    for object in lacking {
        let what = format!("a dry run of {} to be accepted", object.id());
        cx.wait(Pace::GATE, &what, || async move {
            match client.apply(object, Mode::DryRun).await {
                Ok(_) => Ok(Verdict::Ready(())),
                Err(error @ KubeError::NoSuchKind { .. }) => {
                    Ok(Verdict::Waiting(error.to_string()))
                }
                Err(error) => Err(error.into()),
            }
        })
        .await?;
        client.apply(object, Mode::Real).await?;
    }
    Ok(change(&survey))
}

fn is_lacking(survey: &Survey, object: &Object) -> bool {
    survey.lacking().any(|id| *id == object.id())
}

/// What keeps some objects from being ready, on one line; none if all are.
pub(crate) fn held_up<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Option<Verdict> {
    held_up_among(objects, &Objects::new())
}

/// What keeps some objects from being ready as [`held_up`] says it, and which of the pods around, in their own words.
pub(crate) fn held_up_among<'a>(
    objects: impl IntoIterator<Item = &'a Object>,
    around: &Objects,
) -> Option<Verdict> {
    let mut late = Vec::new();
    for object in objects {
        // Of the first alone the reason is told, and only then are its pods looked for.
        let verdict =
            if late.is_empty() { judge_among(object, around.values()) } else { judge(object) };
        match verdict {
            Verdict::Ready(_) => {}
            Verdict::Waiting(why) => {
                late.push((format!("{} {}", object.kind(), object.name()), why));
            }
            failed @ Verdict::Failed(_) => return Some(failed),
        }
    }
    (!late.is_empty()).then(|| Verdict::Waiting(told(&late)))
}

/// The first reason in full, and beside it who else is late: two names at most.
pub(crate) fn told(late: &[(String, String)]) -> String {
    match late {
        [] => String::new(),
        [(_, why)] => why.clone(),
        [(_, why), (name, _)] => format!("{why}; also {name}"),
        [(_, why), (name, _), more @ ..] => format!("{why}; also {name} and {} more", more.len()),
    }
}

/// Something that is made once to prove a way and then removed, and the note in the cluster that says that it went
/// through, so that it is not made again on a castle that stands.
///
/// The note is written before the probe is removed: whoever is cut off in between finds the note, and removes the rest.
pub(crate) struct Probe {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: &'static str,
    /// What is proven: `store`.
    pub(crate) of: &'static str,
    /// The note's words.
    pub(crate) proves: &'static str,
}

impl Probe {
    /// The name of every probe.
    pub(crate) const NAME: &'static str = "castle-probe";

    pub(crate) fn id(&self) -> ObjectId {
        ObjectId::namespaced(self.api_version, self.kind, self.namespace, Self::NAME)
    }

    fn note(&self, mark: &Mark) -> Result<Vec<Object>, Failure> {
        let note = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("castle-proof-{}", self.of), "namespace": self.namespace},
            "data": {"proven": self.proves},
        });
        marked(mark, vec![note])
    }

    /// Whether it has gone through before.
    pub(crate) async fn is_proven(
        &self,
        client: &Kubernetes,
        mark: &Mark,
    ) -> Result<bool, Failure> {
        Ok(client.survey(mark, &self.note(mark)?).await?.is_complete())
    }

    /// What a run that was cut off has left of it, in words.
    pub(crate) async fn leftover(&self, client: &Kubernetes) -> Result<Option<String>, Failure> {
        let there = client.get(&self.id()).await?;
        let stays = there.filter(|object| object.at("/metadata/deletionTimestamp").is_none());
        Ok(stays.map(|object| format!("{} of an earlier run is still there", object.id())))
    }

    /// Writes down that it went through, and removes it. May be called again.
    pub(crate) async fn passed(&self, client: &Kubernetes, mark: &Mark) -> Result<(), Failure> {
        for note in self.note(mark)? {
            client.ensure(mark, &note).await?;
        }
        self.remove(client).await.map(drop)
    }

    /// Removes it; says whether it was there.
    pub(crate) async fn remove(&self, client: &Kubernetes) -> Result<bool, Failure> {
        Ok(client.delete(&self.id()).await?)
    }

    /// Takes the note back: what was proven has changed.
    pub(crate) async fn doubt(&self, client: &Kubernetes, mark: &Mark) -> Result<(), Failure> {
        for note in self.note(mark)? {
            client.delete(&note.id()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_late_objects_are_named_and_the_rest_counted() {
        let late = |name: &str| {
            Object::new(json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": "n"}, "spec": {"replicas": 1}}))
            .unwrap()
        };
        let say = |names: &[&str]| {
            let objects: Vec<Object> = names.iter().map(|name| late(name)).collect();
            match held_up(&objects) {
                Some(Verdict::Waiting(reason)) => reason,
                other => format!("{other:?}"),
            }
        };
        assert_eq!(say(&[]), "None");
        assert_eq!(say(&["a"]), "Deployment n/a has 0 of 1 replicas of the new revision");
        assert_eq!(
            say(&["a", "b"]),
            "Deployment n/a has 0 of 1 replicas of the new revision; also Deployment b"
        );
        assert_eq!(
            say(&["a", "b", "c", "d"]),
            "Deployment n/a has 0 of 1 replicas of the new revision; also Deployment b and 2 more"
        );
    }
}
