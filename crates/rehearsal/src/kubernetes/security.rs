//! PodSecurity: which pods a namespace takes, by its labels, in the words of the real admission.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Kubernetes;
use super::store::key;

/// The label by which a namespace says what it takes.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
/// What a namespace takes that does not say: Talos configures its API server so.
const DEFAULT: &str = "baseline";
/// The namespace that Talos exempts.
const EXEMPT: &str = "kube-system";
/// Capabilities that every container may have.
const CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Kinds of volumes that a restricted pod may have.
const VOLUMES: &[&str] = &[
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

impl Kubernetes {
    /// Whether a namespace takes a pod.
    ///
    /// # Errors
    /// Why not: `violates PodSecurity "baseline:latest": …`.
    pub(super) fn secure(&self, namespace: &str, spec: &Value) -> Result<(), String> {
        if namespace == EXEMPT {
            return Ok(());
        }
        let found = self.store.get(&key("", "namespaces", "", namespace));
        let label = |name: &str| found.and_then(|n| n["metadata"]["labels"][name].as_str());
        let level = label(ENFORCE).unwrap_or(DEFAULT);
        let version = label("pod-security.kubernetes.io/enforce-version").unwrap_or("latest");
        let violations = match level {
            "baseline" => baseline(spec, false),
            "restricted" => {
                let mut all = baseline(spec, true);
                all.extend(restricted(spec));
                all
            }
            _ => return Ok(()),
        };
        if violations.is_empty() {
            return Ok(());
        }
        Err(format!("violates PodSecurity \"{level}:{version}\": {}", violations.join(", ")))
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| spec[list].as_array().into_iter().flatten())
}

/// The names of the containers that something holds for.
fn those(spec: &Value, bad: impl Fn(&Value) -> bool) -> Vec<String> {
    let name = |container: &Value| container["name"].as_str().unwrap_or_default().to_owned();
    containers(spec).filter(|container| bad(container)).map(name).collect()
}

/// `container "a"` or `containers "a", "b"`.
fn spoken(word: &str, names: &[String]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{word}{plural} {}", quoted(names))
}

fn quoted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("\"{}\"", n.as_ref())).collect();
    names.join(", ")
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// What baseline forbids; the restricted level has rules of its own for capabilities and volumes.
fn baseline(spec: &Value, restricted: bool) -> Vec<String> {
    let mut found = Vec::new();
    let added = |c: &Value| -> BTreeSet<String> {
        let all = texts(&c["securityContext"]["capabilities"]["add"]);
        all.filter(|name| !CAPABILITIES.contains(name)).map(str::to_owned).collect()
    };
    let bad = those(spec, |c| !added(c).is_empty());
    if !bad.is_empty() && !restricted {
        let all: BTreeSet<String> = containers(spec).flat_map(added).collect();
        found.push(format!(
            "non-default capabilities ({} must not include {} in securityContext.capabilities.add)",
            spoken("container", &bad),
            quoted(&all)
        ));
    }
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| spec[*field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    if !shared.is_empty() {
        found.push(format!("host namespaces ({})", shared.join(", ")));
    }
    let volumes = spec["volumes"].as_array().map_or(&[][..], Vec::as_slice);
    let of_host: Vec<String> = volumes
        .iter()
        .filter(|volume| volume.get("hostPath").is_some())
        .map(|volume| volume["name"].as_str().unwrap_or_default().to_owned())
        .collect();
    if !of_host.is_empty() && !restricted {
        found.push(format!("hostPath volumes ({})", spoken("volume", &of_host)));
    }
    found.extend(host_ports(spec));
    let bad = those(spec, |c| c["securityContext"]["privileged"] == true);
    if !bad.is_empty() {
        found.push(format!(
            "privileged ({} must not set securityContext.privileged=true)",
            spoken("container", &bad)
        ));
    }
    found
}

/// A pod in the network of its host has every port of its containers there.
fn host_ports(spec: &Value) -> Option<String> {
    let hosted = spec["hostNetwork"] == true;
    let ports = |c: &Value| -> BTreeSet<String> {
        let all = c["ports"].as_array().into_iter().flatten();
        all.filter_map(|p| {
            p["hostPort"].as_u64().or(p["containerPort"].as_u64().filter(|_| hosted))
        })
        .filter(|port| *port != 0)
        .map(|port| port.to_string())
        .collect()
    };
    let bad = those(spec, |c| !ports(c).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(ports).collect();
    let uses = if bad.len() == 1 { "uses" } else { "use" };
    let word = if all.len() == 1 { "hostPort" } else { "hostPorts" };
    let all: Vec<String> = all.into_iter().collect();
    (!bad.is_empty()).then(|| {
        format!("hostPort ({} {uses} {word} {})", spoken("container", &bad), all.join(", "))
    })
}

/// What the restricted level asks for beyond baseline.
fn restricted(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let bad = those(spec, |c| c["securityContext"]["allowPrivilegeEscalation"] != false);
    if !bad.is_empty() {
        found.push(format!(
            "allowPrivilegeEscalation != false ({} must set securityContext.allowPrivilegeEscalation=false)",
            spoken("container", &bad)
        ));
    }
    let drops_all =
        |c: &Value| texts(&c["securityContext"]["capabilities"]["drop"]).any(|n| n == "ALL");
    let bad = those(spec, |c| !drops_all(c));
    if !bad.is_empty() {
        found.push(format!(
            "unrestricted capabilities ({} must set securityContext.capabilities.drop=[\"ALL\"])",
            spoken("container", &bad)
        ));
    }
    found.extend(restricted_volumes(spec));
    let pod = &spec["securityContext"];
    let bad = those(spec, |c| {
        let own = &c["securityContext"]["runAsNonRoot"];
        *own != true && (own.is_boolean() || pod["runAsNonRoot"] != true)
    });
    if !bad.is_empty() {
        found.push(format!(
            "runAsNonRoot != true (pod or {} must set securityContext.runAsNonRoot=true)",
            spoken("container", &bad)
        ));
    }
    let profile = |context: &Value| {
        matches!(context["seccompProfile"]["type"].as_str(), Some("RuntimeDefault" | "Localhost"))
    };
    let bad = those(spec, |c| !profile(&c["securityContext"]) && !profile(pod));
    if !bad.is_empty() {
        found.push(format!(
            "seccompProfile (pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            spoken("container", &bad)
        ));
    }
    found
}

fn restricted_volumes(spec: &Value) -> Option<String> {
    let kind = |volume: &Value| -> String {
        let fields = volume.as_object().into_iter().flatten();
        fields.map(|(name, _)| name.clone()).find(|name| name != "name").unwrap_or_default()
    };
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let bad: Vec<&Value> =
        volumes.filter(|volume| !VOLUMES.contains(&kind(volume).as_str())).collect();
    let kinds: BTreeSet<String> = bad.iter().map(|volume| kind(volume)).collect();
    let names: Vec<String> =
        bad.iter().map(|v| v["name"].as_str().unwrap_or_default().to_owned()).collect();
    let uses = if names.len() == 1 { "uses" } else { "use" };
    let plural = if kinds.len() == 1 { "" } else { "s" };
    (!bad.is_empty()).then(|| {
        format!(
            "restricted volume types ({} {uses} restricted volume type{plural} {})",
            spoken("volume", &names),
            quoted(&kinds)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_are_told_as_the_real_admission_does() {
        let speaker = json!({
            "hostNetwork": true,
            "containers": [{"name": "speaker", "ports": [{"containerPort": 7472}, {"containerPort": 7946}],
                "securityContext": {"capabilities": {"add": ["NET_RAW"]}}}],
            "volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}],
        });
        assert_eq!(
            baseline(&speaker, false),
            [
                "non-default capabilities (container \"speaker\" must not include \"NET_RAW\" in securityContext.capabilities.add)",
                "host namespaces (hostNetwork=true)",
                "hostPath volumes (volume \"dev\")",
                "hostPort (container \"speaker\" uses hostPorts 7472, 7946)",
            ]
        );
        let plain = json!({"containers": [{"name": "a"}, {"name": "b", "securityContext": {"privileged": true}}]});
        assert_eq!(
            baseline(&plain, false),
            ["privileged (container \"b\" must not set securityContext.privileged=true)"]
        );
        assert_eq!(
            restricted(&plain),
            [
                "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set securityContext.allowPrivilegeEscalation=false)",
                "unrestricted capabilities (containers \"a\", \"b\" must set securityContext.capabilities.drop=[\"ALL\"])",
                "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)",
                "seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            ]
        );
        assert_eq!(
            restricted_volumes(&speaker).unwrap(),
            "restricted volume types (volume \"dev\" uses restricted volume type \"hostPath\")"
        );
    }
}
