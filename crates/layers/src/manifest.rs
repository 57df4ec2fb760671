//! A set of objects as one step: a release's manifest, or the files of a layer of one's own.
//!
//! The step applies what is missing or differs, in the order of ranks, and is proven when the judge finds every
//! workload, definition and webhook of the set ready.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::rank::sort;
use castle_kubernetes::scope::is_built_in;
use castle_kubernetes::{Claim, Kubernetes, Mark, Object, ObjectId, Place, Survey, mark};
use castle_model::{Change, Class, Failure, Finding, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects, few, observed};

use crate::objects::{held_up, held_up_among};
use crate::sets::is_first;

mod apply;
mod bringer;
mod forgotten;
mod form;
pub(crate) mod ledger;
mod running;
mod set;

pub(crate) use apply::together;
pub(crate) use running::Running;
pub(crate) use set::{Set, Source};

/// The objects of a set, kept for the rest of the run.
const WANTED: Key<Wanted> = Key::new("manifest/objects");
/// Kinds that are ready by being there: nothing of them is waited for.
const SILENT: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "CSIDriver",
    "IngressClass",
    "Namespace",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "Role",
    "RoleBinding",
    "Secret",
    "ServiceAccount",
    "StorageClass",
];

/// How many claims of others are told at a time.
const CLAIMS_TOLD: usize = 3;
/// What to do about what others own too.
const WAY_OUT: &str = "One of the two has to let go: leave the layer out (`enabled = false`), leave it to Flux (`owner = \"flux\"`), or remove the objects there";

/// The objects of a set as read and adjusted, marked and in the order of their ranks.
struct Wanted {
    mark: Mark,
    objects: Vec<Object>,
}

impl Wanted {
    fn new(mark: Mark, mut objects: Vec<Object>) -> Self {
        for object in &mut objects {
            mark.put_on(object);
        }
        sort(&mut objects);
        Self { mark, objects }
    }
}

/// The step.
pub(crate) struct ManifestStep {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) set: Set,
    /// What the set makes by itself once it runs, and which must be ready too.
    pub(crate) makes: &'static [(&'static str, &'static str, &'static str)],
    /// Whether what Flux applies of it too is left to Flux.
    pub(crate) yields: bool,
    /// Whether it is proven once its kinds are served; [`Running`] then sees its workloads run.
    pub(crate) only_applied: bool,
}

impl ManifestStep {
    fn name(&self) -> String {
        self.set.name()
    }

    /// The wanted objects, marked anew only if the castle's life has become another one.
    async fn wanted(&self, cx: &Context) -> Result<Arc<Wanted>, Failure> {
        let name = self.name();
        let mark = self.cluster.mark(cx)?;
        if let Ok(known) = cx.outputs().get_of(&WANTED, &name)
            && known.mark == mark
        {
            return Ok(known);
        }
        let objects = self.set.objects(cx, &self.cluster).await?;
        cx.outputs().put_of(&WANTED, &name, Wanted::new(mark, objects.to_vec()));
        cx.outputs().get_of(&WANTED, &name)
    }

    /// How the set stands, and how many of it are left to Flux.
    async fn survey(
        &self,
        client: &Kubernetes,
        wanted: &Wanted,
    ) -> Result<(Survey, usize), Failure> {
        let mut survey = client.survey(&wanted.mark, &wanted.objects).await?;
        let left = if self.yields { survey.leave_to_flux() } else { 0 };
        Ok((survey, left))
    }

    /// The same, proven once its kinds are served: whoever needs those alone need not wait for its workloads.
    pub(crate) fn applied(self) -> Self {
        Self { only_applied: true, ..self }
    }

    /// Whether an object has to become ready for the step to be proven.
    fn waits_for(&self, object: &Object) -> bool {
        let of_interest = !self.only_applied || object.kind() == "CustomResourceDefinition";
        of_interest && !is_silent(object)
    }

    /// What the set makes by itself.
    fn made(&self) -> impl Iterator<Item = ObjectId> {
        self.makes
            .iter()
            .map(|(kind, namespace, name)| ObjectId::namespaced("apps/v1", kind, namespace, name))
    }

    fn proof(&self, wanted: &[Object], judged: usize) -> String {
        // The title of a layer of one's own says whose manifests these are; that of a release not its version.
        let name = match &self.set.source {
            Source::Release(_) => format!("{}: ", self.name()),
            Source::Files(_) => String::new(),
        };
        applied(&name, wanted.len(), judged)
    }

    /// Where everything is that has to become ready.
    fn places(&self, wanted: &[Object]) -> Vec<Place> {
        let ours = selector(&self.cluster);
        let mut places: BTreeSet<Place> = wanted
            .iter()
            .filter(|object| self.waits_for(object))
            .map(|object| Place {
                api_version: object.api_version().to_owned(),
                kind: object.kind().to_owned(),
                namespace: object.namespace().map(str::to_owned),
                selector: ours.clone(),
            })
            .collect();
        for id in self.made() {
            // What the set makes by itself has no label of ours: that kind is followed as a whole.
            let namespace = id.namespace.clone().unwrap_or_default();
            let labelled = Place::within(&id.api_version, &id.kind, &namespace).only(ours.clone());
            places.remove(&labelled);
            places.insert(Place { selector: String::new(), ..labelled });
        }
        if self.only_applied {
            return places.into_iter().collect();
        }
        // Pods have no label of ours either; they say why a workload is late.
        let works = wanted.iter().filter(|object| matches!(object.group(), "apps" | "batch"));
        let pods = works.filter_map(Object::namespace).map(str::to_owned);
        let pods: BTreeSet<String> =
            pods.chain(self.made().filter_map(|id| id.namespace)).collect();
        places.extend(pods.iter().map(|namespace| Place::within("v1", "Pod", namespace)));
        // One watch for all services of a namespace.
        for (namespace, _) in hook_services(wanted) {
            places.insert(
                Place::within("discovery.k8s.io/v1", "EndpointSlice", &namespace)
                    .only("kubernetes.io/service-name"),
            );
        }
        places.into_iter().collect()
    }
}

#[async_trait]
impl Step for ManifestStep {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.cluster.client(cx)?;
        if is_first(&self.cluster.spec, &self.set.layer) {
            forgotten::tell(cx, &client, &self.cluster.spec).await?;
        }
        let wanted = self.wanted(cx).await?;
        let (survey, left) = self.survey(&client, &wanted).await?;
        if left > 0 {
            cx.notice(format!(
                "the repository installs {} itself ({left} of {} objects): since the handover it is Flux' and yours, and is left so",
                self.name(),
                wanted.objects.len()
            ));
        }
        if !survey.foreign.is_empty() {
            return Ok(Observed::Foreign { owner: claimed(&survey.foreign) });
        }
        self.check_places(&client, &wanted.objects).await?;
        let ledger = ledger::Ledger::read(&client, &wanted.mark).await?;
        let leftovers = ledger.leftovers(&client, &wanted.mark, &wanted.objects).await?;
        for (id, why) in &leftovers.kept {
            cx.notice(ledger::stays(id, why));
        }
        if !leftovers.going.is_empty() {
            return Ok(Observed::stale(going(&survey, &leftovers.going)));
        }
        if let Some(observed) = lacking(&survey) {
            return Ok(observed);
        }
        if !ledger.holds(&wanted.objects) {
            return Ok(Observed::wrong("its list of objects in the cluster is not complete"));
        }
        let mut made = Vec::new();
        for id in self.made() {
            match client.get(&id).await? {
                None => return Ok(Observed::wrong(format!("{id} is not there yet"))),
                Some(object) => made.push(object),
            }
        }
        let loud: Vec<&Object> = survey.same.iter().filter(|o| self.waits_for(o)).collect();
        let judged = loud.len() + made.len();
        let verdict = held_up(loud.into_iter().chain(&made));
        Ok(observed(verdict.unwrap_or_else(|| Verdict::Ready(self.proof(&wanted.objects, judged)))))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let client = self.cluster.client(cx)?;
        let wanted = self.wanted(cx).await?;
        let (survey, _) = self.survey(&client, &wanted).await?;
        refuse_foreign(&survey)?;
        self.check_places(&client, &wanted.objects).await?;
        let mut ledger = ledger::Ledger::read(&client, &wanted.mark).await?;
        let listed = ledger.add(&client, &wanted.mark, &wanted.objects).await?;
        self.apply(cx, &client, &wanted.objects, &survey).await?;
        Ok(Acted::of(match change(&survey) {
            Change::Unchanged if listed => Change::Updated,
            change => change,
        }))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let wanted = self.wanted(cx).await?;
        let objects = &wanted.objects;
        // Every change of the cluster is judged, so what does not change is looked up once.
        let loud = objects.iter().filter(|o| self.waits_for(o)).map(Object::id).chain(self.made());
        let hooks = if self.only_applied { BTreeSet::new() } else { hook_services(objects) };
        let (loud, services): (Vec<ObjectId>, _) = (loud.collect(), hooks);
        let judge = |there: &Objects| match verdict(&loud, &services, there) {
            Verdict::Ready(judged) => Verdict::Ready(self.proof(objects, judged)),
            Verdict::Waiting(reason) => Verdict::Waiting(reason),
            Verdict::Failed(failure) => Verdict::Failed(failure),
        };
        let what = format!("{} to be ready", self.name());
        let proof = self.cluster.settled(cx, &what, self.places(objects), judge).await?;
        // Only what is proven may take the place of what was there before.
        let client = self.cluster.client(cx)?;
        let ledger = ledger::Ledger::read(&client, &wanted.mark).await?;
        let removed = ledger.prune(cx, &client, &wanted.mark, objects).await?;
        Ok(match removed {
            0 => proof,
            removed => format!("{proof}, {removed} that are no longer wanted removed"),
        })
    }

    /// Only asked where the layer goes alone: with the machines everything goes.
    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let (client, mark) = (self.cluster.client(cx)?, self.cluster.mark(cx)?);
        let ledger = ledger::Ledger::read(&client, &mark).await?;
        let leftovers = ledger.leftovers(&client, &mark, &[]).await?;
        let going = leftovers.going.len();
        if going == 0 {
            return Ok(None);
        }
        // Told before anything goes; the look after the removal finds nothing that goes, and says it not once more.
        for (id, why) in &leftovers.kept {
            cx.notice(format!("{id} stays: {why}"));
        }
        Ok(Some(format!("{}: {going} objects", self.name())))
    }

    /// Removes what the list of the layer names and is still the layer's, in the reverse order of its making.
    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let (client, mark) = (self.cluster.client(cx)?, self.cluster.mark(cx)?);
        ledger::Ledger::read(&client, &mark).await?.prune(cx, &client, &mark, &[]).await?;
        Ok(())
    }
}

/// The label selector of our own objects.
pub(crate) fn selector(cluster: &Cluster) -> String {
    format!("{}={}", mark::CASTLE, cluster.spec.name)
}

/// What a survey says where not everything is there as wanted.
pub(crate) fn lacking(survey: &Survey) -> Option<Observed> {
    if !survey.foreign.is_empty() {
        return Some(Observed::Foreign { owner: claimed(&survey.foreign) });
    }
    if survey.is_complete() {
        return None;
    }
    if survey.is_absent() {
        return Some(Observed::Absent);
    }
    Some(Observed::wrong(differences(survey)))
}

/// What is missing and what differs, in words.
fn differences(survey: &Survey) -> String {
    let mut parts = Vec::new();
    if !survey.absent.is_empty() {
        let names: Vec<String> = survey.absent.iter().map(ToString::to_string).collect();
        parts.push(format!("{} missing ({})", names.len(), few(&names)));
    }
    if let Some((id, why)) = survey.differing.first() {
        let others = match survey.differing.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        parts.push(format!("{} to change ({id}: {why}{others})", survey.differing.len()));
    }
    parts.join(", ")
}

/// What goes, beside what changes, in words.
fn going(survey: &Survey, stale: &[Object]) -> String {
    let names: Vec<String> = stale.iter().map(|object| object.id().to_string()).collect();
    let going = format!("{} no longer wanted and to be removed ({})", names.len(), few(&names));
    match differences(survey) {
        same if same.is_empty() => going,
        differences => format!("{going}, {differences}"),
    }
}

/// Whose the objects are that are not ours alone, and the way out: the first few, and how many more.
fn claimed(foreign: &[(ObjectId, Claim)]) -> String {
    let told: Vec<String> =
        foreign.iter().take(CLAIMS_TOLD).map(|(id, claim)| format!("{id} ({claim})")).collect();
    let more = match foreign.len().saturating_sub(CLAIMS_TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}. {WAY_OUT}", told.join("; "))
}

/// What an act on a survey did.
pub(crate) fn change(survey: &Survey) -> Change {
    if survey.is_complete() {
        Change::Unchanged
    } else if survey.is_absent() {
        Change::Created
    } else {
        Change::Updated
    }
}

/// Stops before the first write where something is not ours, and names all of it.
pub(crate) fn refuse_foreign(survey: &Survey) -> Result<(), Failure> {
    let foreign = &survey.foreign;
    if foreign.is_empty() {
        return Ok(());
    }
    let findings = foreign.iter().map(|(id, claim)| {
        Finding::new(id.to_string(), format!("belongs to {claim}"), "leave it to one of the two")
    });
    Err(Failure::new(
        Class::Conflict,
        format!("apply {}", foreign[0].0),
        format!("{} of the objects are not ours alone: {}", foreign.len(), claimed(foreign)),
    )
    .findings(findings.collect())
    .hint(WAY_OUT))
}

fn is_silent(object: &Object) -> bool {
    is_built_in(object) && SILENT.contains(&object.kind())
        || (object.kind() == "Service" && object.text("/spec/type") != Some("LoadBalancer"))
}

/// Judges everything that has to become ready, and the services behind the webhooks; says how many there are.
fn verdict(
    loud: &[ObjectId],
    services: &BTreeSet<(String, String)>,
    there: &Objects,
) -> Verdict<usize> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for id in loud {
        match there.get(id) {
            Some(object) => found.push(object),
            None => missing.push(id),
        }
    }
    if let Some(first) = missing.first() {
        return Verdict::Waiting(match missing.len() {
            1 => format!("{first} is not there yet"),
            many => format!("{first} and {} more are not there yet", many - 1),
        });
    }
    match held_up_among(found.iter().copied(), there) {
        Some(Verdict::Failed(failure)) => Verdict::Failed(failure),
        Some(Verdict::Waiting(reason) | Verdict::Ready(reason)) => Verdict::Waiting(reason),
        None => match hooks_served(services, there) {
            Ok(()) => Verdict::Ready(found.len()),
            Err(reason) => Verdict::Waiting(reason),
        },
    }
}

/// The services behind the webhooks of a set, each once.
pub(crate) fn hook_services(wanted: &[Object]) -> BTreeSet<(String, String)> {
    wanted
        .iter()
        .filter(|object| object.kind().ends_with("WebhookConfiguration"))
        .flat_map(|object| object.entries("/webhooks"))
        .filter_map(|hook| {
            let service = hook.pointer("/clientConfig/service")?;
            Some((service["namespace"].as_str()?.to_owned(), service["name"].as_str()?.to_owned()))
        })
        .collect()
}

/// Whether every service behind a webhook of the set has a ready endpoint.
pub(crate) fn hooks_served(
    services: &BTreeSet<(String, String)>,
    there: &Objects,
) -> Result<(), String> {
    for (namespace, service) in services {
        let slices = there.values().filter(|object| {
            object.kind() == "EndpointSlice"
                && object.namespace() == Some(namespace)
                && object.label("kubernetes.io/service-name") == Some(service)
        });
        let mut reason = format!("the webhook service {namespace}/{service} has no endpoints yet");
        let mut served = false;
        for slice in slices {
            match judge(slice) {
                Verdict::Ready(_) => served = true,
                Verdict::Waiting(why) => reason = why,
                Verdict::Failed(failure) => reason = failure.to_string(),
            }
        }
        if !served {
            return Err(reason);
        }
    }
    Ok(())
}

/// How many objects there are, and how many of them are more than there.
fn applied(name: &str, objects: usize, judged: usize) -> String {
    let noun = if objects == 1 { "object" } else { "objects" };
    match judged {
        0 => format!("{name}{objects} {noun} applied"),
        _ => format!("{name}{objects} {noun} applied; {judged} had to become ready, and are"),
    }
}

#[cfg(test)]
mod tests {
    use super::applied;

    #[test]
    fn what_is_ready_by_being_there_is_not_counted_as_lacking() {
        assert_eq!(applied("", 2, 0), "2 objects applied");
        let proof = applied("metallb 0.15.3: ", 19, 10);
        assert_eq!(proof, "metallb 0.15.3: 19 objects applied; 10 had to become ready, and are");
    }
}
