//! `storage/longhorn`: Longhorn is installed on machines that can carry it, and only over a version that it can follow.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Pace, Step};
use castle_kubernetes::{Object, ObjectId};
use castle_model::spec::{NodeSpec, Version};
use castle_model::{Class, Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::Cluster;
use castle_platforms::talos::extensions;

use super::{NAMESPACE, storage_nodes};
use crate::manifest::{ManifestStep, Source};

/// What a machine needs so that volumes can be attached to it, as Talos names them.
const EXTENSIONS: [&str; 2] = ["iscsi-tools", "util-linux-tools"];
/// The machines that were found to have them, in words.
const CHECKED: Key<String> = Key::new("storage/extensions");

/// The step: the release, behind two questions.
pub(crate) struct Longhorn {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) release: ManifestStep,
}

impl Longhorn {
    fn wanted(&self) -> Option<Version> {
        match &self.release.set.source {
            Source::Release(release) => release.version.to_string().parse().ok(),
            Source::Files(_) => None,
        }
    }

    /// Why the running version can not be followed by the wanted one; none if it can, or if none runs.
    async fn refusal(&self, cx: &Context) -> Result<Option<Failure>, Failure> {
        let id = ObjectId::namespaced("apps/v1", "DaemonSet", NAMESPACE, "longhorn-manager");
        let running = self.cluster.client(cx)?.get(&id).await?.as_ref().and_then(version_of);
        let (Some(running), Some(wanted)) = (running, self.wanted()) else { return Ok(None) };
        Ok(follows(running, wanted).err().map(|(why, hint)| {
            let what = format!("install Longhorn {wanted} over {running}");
            Failure::new(Class::Conflict, what, why).hint(hint)
        }))
    }

    /// Waits for each storage node to say what it really runs with. The castle file is not asked: extensions come with
    /// the image that a machine was installed from, whatever was written down since.
    async fn extensions(&self, cx: &Context) -> Result<(), Failure> {
        let nodes = storage_nodes(&self.cluster.spec);
        for node in &nodes {
            let what = format!("{} to say which extensions it has", node.name);
            cx.wait(Pace::GATE, &what, || async move {
                let there = extensions(&self.cluster, cx, node).await?;
                Ok(match lacking(node, &there) {
                    Some(failure) => Verdict::Failed(failure),
                    None => Verdict::Ready(()),
                })
            })
            .await?;
        }
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let checked = format!("{} on {}", EXTENSIONS.join(" and "), names.join(", "));
        cx.outputs().put(&CHECKED, checked);
        Ok(())
    }
}

#[async_trait]
impl Step for Longhorn {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        if let Some(failure) = self.refusal(cx).await? {
            return Ok(Observed::wrong(failure.why));
        }
        self.release.observe(cx).await
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        if let Some(failure) = self.refusal(cx).await? {
            return Err(failure);
        }
        self.extensions(cx).await?;
        self.release.act(cx, verb).await
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let proof = self.release.gate(cx).await?;
        let checked = cx.outputs().get(&CHECKED)?;
        Ok(format!("{proof}; {checked}"))
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        self.release.leftover(cx).await
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        self.release.undo(cx).await
    }
}

/// What a machine lacks.
fn lacking(node: &NodeSpec, there: &[String]) -> Option<Failure> {
    let missing: Vec<&str> =
        EXTENSIONS.into_iter().filter(|name| !there.iter().any(|t| t == name)).collect();
    let how = match node.vm() {
        Some(_) => {
            "raze the castle with `castle down`, then `castle up`: VMs are made from an image that has them"
        }
        None => {
            "install the machine from an image that has them (https://factory.talos.dev makes it)"
        }
    };
    (!missing.is_empty()).then(|| {
        let why = format!("{} runs without the extensions {}", node.name, missing.join(", "));
        Failure::new(Class::Conflict, "install Longhorn", why)
            .evidence(format!(
                "it has {}",
                if there.is_empty() { "none".to_owned() } else { there.join(", ") }
            ))
            .hint(how)
    })
}

/// The version in the tag of the manager's image.
fn version_of(manager: &Object) -> Option<Version> {
    let image = manager.text("/spec/template/spec/containers/0/image")?;
    let tag = image.split('@').next()?.rsplit_once(':')?.1;
    tag.strip_prefix('v').unwrap_or(tag).parse().ok()
}

/// Whether Longhorn can go from one version to the other: up, and over one minor version at most. If not, why and what
/// to do.
fn follows(running: Version, wanted: Version) -> Result<(), (String, String)> {
    if wanted < running {
        let why = format!("Longhorn {running} runs, and it never goes back to an older version");
        let hint = format!("set version = \"{running}\" in storage \"longhorn\"");
        return Err((why, hint));
    }
    if wanted.major != running.major {
        let why = format!("Longhorn {running} runs, and {wanted} is of another major version");
        return Err((why, "follow Longhorn's own guide for this upgrade".to_owned()));
    }
    if wanted.minor - running.minor <= 1 {
        return Ok(());
    }
    let between =
        (running.minor + 1..wanted.minor).map(|minor| format!("{}.{minor}", running.major));
    let steps: Vec<String> =
        [running.to_string()].into_iter().chain(between).chain([wanted.to_string()]).collect();
    let next = format!("{}.{}", running.major, running.minor + 1);
    let why = format!(
        "Longhorn goes over one minor version at a time, and {wanted} is {} beyond {running}: {}",
        wanted.minor - running.minor,
        steps.join(" → ")
    );
    Err((
        why,
        format!(
            "set version to the last {next} in storage \"longhorn\", run `castle up`, and go on from there"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_running_version_is_read_from_the_image() {
        let of = |image: &str| {
            let manager = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "m", "namespace": "n"},
                "spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
            version_of(&Object::new(manager).unwrap()).map(|version| version.to_string())
        };
        assert_eq!(of("docker.io/longhornio/longhorn-manager:v1.10.0").as_deref(), Some("1.10.0"));
        assert_eq!(
            of("mirror.lan:5000/longhorn-manager:1.9.2@sha256:ab").as_deref(),
            Some("1.9.2")
        );
        assert_eq!(of("mirror.lan:5000/longhorn-manager"), None);
        assert_eq!(of("longhorn-manager:latest"), None);
    }

    #[test]
    fn versions_are_followed_one_minor_at_a_time_and_never_back() {
        let told = |running: &str, wanted: &str| match follows(
            running.parse().unwrap(),
            wanted.parse().unwrap(),
        ) {
            Ok(()) => format!("{running} to {wanted}: goes"),
            Err((why, hint)) => format!("{running} to {wanted}: {why}; {hint}"),
        };
        let lines = [
            told("1.10.0", "1.10.0"),
            told("1.10.0", "1.10.3"),
            told("1.9.4", "1.10.0"),
            told("1.7.2", "1.10.0"),
            told("1.11.1", "1.10.0"),
            told("1.10.1", "1.10.0"),
            told("1.10.0", "2.0.0"),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        1.10.0 to 1.10.0: goes
        1.10.0 to 1.10.3: goes
        1.9.4 to 1.10.0: goes
        1.7.2 to 1.10.0: Longhorn goes over one minor version at a time, and 1.10.0 is 3 beyond 1.7.2: 1.7.2 → 1.8 → 1.9 → 1.10.0; set version to the last 1.8 in storage "longhorn", run `castle up`, and go on from there
        1.11.1 to 1.10.0: Longhorn 1.11.1 runs, and it never goes back to an older version; set version = "1.11.1" in storage "longhorn"
        1.10.1 to 1.10.0: Longhorn 1.10.1 runs, and it never goes back to an older version; set version = "1.10.1" in storage "longhorn"
        1.10.0 to 2.0.0: Longhorn 1.10.0 runs, and 2.0.0 is of another major version; follow Longhorn's own guide for this upgrade
        "#);
    }

    #[test]
    fn a_machine_without_an_extension_is_named_with_what_it_has() {
        let spec = castle_config::example();
        let node = storage_nodes(&spec)[0];
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        assert!(
            lacking(node, &names(&["iscsi-tools", "qemu-guest-agent", "util-linux-tools"]))
                .is_none()
        );
        let failure = lacking(node, &names(&["iscsi-tools"])).unwrap();
        insta::assert_snapshot!(failure.to_string(), @r#"install Longhorn: worker-01 runs without the extensions util-linux-tools"#);
        assert_eq!(failure.class, Class::Conflict);
    }
}
