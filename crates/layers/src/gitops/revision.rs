//! Whether Flux has applied what it has fetched: a Kustomization is held against what its own source holds now.
//!
//! Sources move while one waits (somebody pushes), and a tree may have several. So no revision is remembered: both sides
//! of the comparison are read from the cluster each time.

use castle_kubernetes::judge::judge;
use castle_kubernetes::{Object, ObjectId};
use castle_model::Verdict;
use castle_platforms::cluster::Objects;

/// Group and version of sources.
pub(super) const SOURCES: &str = "source.toolkit.fluxcd.io/v1";
/// The kinds of source whose artifact has a revision that Kustomizations repeat.
pub(super) const KINDS: [&str; 4] =
    ["GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"];

/// How much of a digest is shown to a person.
const DIGITS: usize = 8;

/// Whether a Kustomization is ready at the current artifact of its source; then the revision.
pub(super) fn applied(unit: &Object, there: &Objects) -> Verdict {
    match judge(unit) {
        Verdict::Ready(_) => {}
        other => return other,
    }
    let applied = unit.text("/status/lastAppliedRevision").unwrap_or_default();
    let Some(source) = source(unit) else {
        // A kind of source that we do not know says nothing to compare with: being ready is all there is.
        return Verdict::Ready(applied.to_owned());
    };
    let Some(held) = there.get(&source) else {
        return Verdict::Waiting(format!("{} has no source: {source} is not there", unit.id()));
    };
    match held.text("/status/artifact/revision") {
        None => Verdict::Waiting(format!("{source} has fetched nothing yet")),
        Some(current) if current == applied => Verdict::Ready(applied.to_owned()),
        Some(current) => Verdict::Waiting(format!(
            "{} is at {}, its source at {}",
            unit.id(),
            short(applied),
            short(current)
        )),
    }
}

/// The source of a Kustomization, if it is of a kind that we know.
pub(super) fn source(unit: &Object) -> Option<ObjectId> {
    let reference = |key: &str| unit.text(&format!("/spec/sourceRef/{key}"));
    let (kind, name) = (reference("kind")?, reference("name")?);
    let group = |version: &str| version.split('/').next().map(str::to_owned);
    let foreign = reference("apiVersion").is_some_and(|version| group(version) != group(SOURCES));
    if foreign || !KINDS.contains(&kind) {
        return None;
    }
    let namespace = reference("namespace").or(unit.namespace())?;
    Some(ObjectId::namespaced(SOURCES, kind, namespace, name))
}

/// A revision as a person reads it: `main@sha1:6e1f3a02`.
pub(super) fn short(revision: &str) -> String {
    if revision.is_empty() {
        return "nothing".to_owned();
    }
    match revision.rsplit_once(':') {
        Some((name, digest)) => {
            format!("{name}:{}", digest.chars().take(DIGITS).collect::<String>())
        }
        None => revision.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::super::{KUSTOMIZE, NAMESPACE};
    use super::*;

    /// A Kustomization that is ready at a revision of a source.
    pub(in super::super) fn unit(name: &str, source: &Value, revision: &str) -> Value {
        json!({
            "apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"sourceRef": source},
            "status": {"lastAppliedRevision": revision, "conditions": [
                {"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded"}]},
        })
    }

    /// A source that holds a revision.
    pub(in super::super) fn holding(kind: &str, name: &str, revision: &str) -> Value {
        json!({
            "apiVersion": SOURCES, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
            "status": {"artifact": {"revision": revision}},
        })
    }

    /// A picture with these objects.
    pub(in super::super) fn picture(values: Vec<Value>) -> Objects {
        values.into_iter().map(|v| Object::new(v).unwrap()).map(|o| (o.id(), o)).collect()
    }

    fn say(unit: Value, sources: Vec<Value>) -> String {
        match applied(&Object::new(unit).unwrap(), &picture(sources)) {
            Verdict::Ready(revision) => format!("ready at {revision}"),
            Verdict::Waiting(words) => words,
            Verdict::Failed(failure) => failure.to_string(),
        }
    }

    #[test]
    fn a_push_moves_what_is_waited_for() {
        let (one, two) = ("main@sha1:1111111111", "main@sha1:2222222222");
        let git = || json!({"kind": "GitRepository", "name": NAMESPACE});
        let at = |applied: &str, fetched: &str| {
            say(unit("a", &git(), applied), vec![holding("GitRepository", NAMESPACE, fetched)])
        };
        assert_eq!(at(one, one), "ready at main@sha1:1111111111");
        assert_eq!(
            at(one, two),
            "Kustomization flux-system/a is at main@sha1:11111111, its source at main@sha1:22222222"
        );
        assert_eq!(at(two, two), "ready at main@sha1:2222222222");
        assert_eq!(
            at("", two),
            "Kustomization flux-system/a is at nothing, its source at main@sha1:22222222"
        );
    }

    #[test]
    fn each_kind_of_source_has_its_own_revision() {
        for kind in KINDS {
            let unit = |revision| unit("a", &json!({"kind": kind, "name": "other"}), revision);
            let ours = || holding("GitRepository", NAMESPACE, "main@sha1:1");
            let source = || holding(kind, "other", "latest@sha256:7");
            assert_eq!(
                say(unit("latest@sha256:7"), vec![ours(), source()]),
                "ready at latest@sha256:7"
            );
            assert!(
                say(unit("main@sha1:1"), vec![ours(), source()])
                    .contains("its source at latest@sha256:7")
            );
            assert_eq!(
                say(unit("latest@sha256:7"), vec![ours()]),
                format!(
                    "Kustomization flux-system/a has no source: {kind} flux-system/other is not there"
                )
            );
        }
    }

    #[test]
    fn a_source_elsewhere_or_without_an_artifact() {
        let far = json!({"kind": "Bucket", "name": "far", "namespace": "away"});
        let mut source = holding("Bucket", "far", "sha256:3");
        assert!(
            say(unit("a", &far, "sha256:3"), vec![source.clone()])
                .contains("away/far is not there")
        );
        source["metadata"]["namespace"] = "away".into();
        assert_eq!(say(unit("a", &far, "sha256:3"), vec![source.clone()]), "ready at sha256:3");
        source["status"] = json!({});
        assert_eq!(
            say(unit("a", &far, ""), vec![source]),
            "Bucket away/far has fetched nothing yet"
        );
    }

    #[test]
    fn a_kind_that_we_do_not_know_is_judged_by_being_ready() {
        let wasm = json!({"kind": "WasmModule", "name": "x"});
        assert_eq!(say(unit("a", &wasm, "7"), vec![]), "ready at 7");
        let foreign = json!({"apiVersion": "example.org/v1", "kind": "GitRepository", "name": "x"});
        assert_eq!(say(unit("a", &foreign, "7"), vec![]), "ready at 7");
        let mut late = unit("a", &wasm, "7");
        late["status"]["conditions"][0]["status"] = "False".into();
        assert!(say(late, vec![]).contains("is not ready"));
    }
}
