//! What stands between a write and the store: rules of the server itself, and webhooks called through their services.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::Kubernetes;
use super::kinds::Resource;
use super::refuse::No;
use super::store::key;

/// The few rules of the server's own that a mistake of ours would meet first.
pub(super) fn check(resource: &Resource, object: &Value) -> Result<(), No> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let loose = resource.group == "rbac.authorization.k8s.io";
    if name.is_empty() || name.len() > 253 || !(loose || name.bytes().all(plain)) {
        let why = format!(
            "metadata.name: Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of \
            lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        );
        return Err(No::invalid(resource, name, &why));
    }
    match resource.kind.as_str() {
        "Deployment" | "DaemonSet" | "StatefulSet" => {
            let selector = &object["spec"]["selector"]["matchLabels"];
            if selector.as_object().is_none_or(serde_json::Map::is_empty) {
                return Err(No::invalid(resource, name, "spec.selector: Required value"));
            }
            if !includes(&object["spec"]["template"]["metadata"]["labels"], selector) {
                return Err(No::invalid(
                    resource,
                    name,
                    "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`",
                ));
            }
        }
        "CustomResourceDefinition" => {
            let spec = &object["spec"];
            let wanted = format!(
                "{}.{}",
                spec["names"]["plural"].as_str().unwrap_or_default(),
                spec["group"].as_str().unwrap_or_default()
            );
            if name != wanted {
                let why = format!(
                    "metadata.name: Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group"
                );
                return Err(No::invalid(resource, name, &why));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether a set of labels has everything that a selector asks for.
pub(super) fn includes(labels: &Value, selector: &Value) -> bool {
    selector
        .as_object()
        .is_some_and(|wanted| wanted.iter().all(|(name, value)| labels.get(name) == Some(value)))
}

impl Kubernetes {
    /// Calls every webhook that wants to see the write.
    pub(super) fn admit(
        &self,
        resource: &Resource,
        operation: &str,
        object: &Value,
    ) -> Result<(), No> {
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            for (_, configuration) in self.store.all("admissionregistration.k8s.io", plural) {
                for hook in configuration["webhooks"].as_array().map_or(&[][..], Vec::as_slice) {
                    if wants(hook, resource, operation) {
                        self.call_hook(hook, resource, object)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn call_hook(&self, hook: &Value, resource: &Resource, object: &Value) -> Result<(), No> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&hook["name"]);
        let service = &hook["clientConfig"]["service"];
        if service.is_null() {
            return Ok(());
        }
        let (namespace, target) = (text(&service["namespace"]), text(&service["name"]));
        let port = service["port"].as_u64().unwrap_or(443);
        let path = text(&service["path"]);
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10);
        let url = format!("https://{target}.{namespace}.svc:{port}{path}?timeout={seconds}s");
        let trouble = match self.store.get(&key("", "services", &namespace, &target)) {
            None => Some(format!("service \"{target}\" not found")),
            Some(found) if !self.serving.contains(&format!("{namespace}/{target}")) => {
                let address = text(&found["spec"]["clusterIP"]);
                Some(format!(
                    "Post \"{url}\": dial tcp {address}:{port}: connect: connection refused"
                ))
            }
            Some(_) if text(&hook["clientConfig"]["caBundle"]).is_empty() => Some(format!(
                "Post \"{url}\": tls: failed to verify certificate: x509: certificate signed by unknown authority"
            )),
            Some(_) => None,
        };
        match trouble {
            Some(_) if hook["failurePolicy"] == "Ignore" => Ok(()),
            Some(why) => {
                let why =
                    format!("failed calling webhook \"{name}\": failed to call webhook: {why}");
                Err(No::internal(&why))
            }
            None => judged(resource, object).map_err(|why| {
                No::new(
                    403,
                    "Forbidden",
                    format!("admission webhook \"{name}\" denied the request: {why}"),
                )
            }),
        }
    }
}

/// Whether a webhook's rules name this write.
fn wants(hook: &Value, resource: &Resource, operation: &str) -> bool {
    let names = |list: &Value, wanted: &str| {
        list.as_array().is_some_and(|list| list.iter().any(|e| e == wanted || e == "*"))
    };
    hook["rules"].as_array().is_some_and(|rules| {
        rules.iter().any(|rule| {
            names(&rule["apiGroups"], &resource.group)
                && names(&rule["apiVersions"], &resource.version)
                && names(&rule["resources"], &resource.plural)
                && names(&rule["operations"], operation)
        })
    })
}

/// What the process behind a webhook says about an object.
fn judged(resource: &Resource, object: &Value) -> Result<(), String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("metallb.io", "IPAddressPool") => {
            let pools = object["spec"]["addresses"].as_array().map_or(&[][..], Vec::as_slice);
            let bad = pools.iter().filter_map(Value::as_str).find(|range| !is_range(range));
            match bad {
                Some(range) => Err(format!(
                    "parsing address pool {name}: invalid CIDR \"{range}\" in pool \"{name}\""
                )),
                None if pools.is_empty() => {
                    Err(format!("parsing address pool {name}: pool has no prefixes defined"))
                }
                None => Ok(()),
            }
        }
        ("external-secrets.io", "ClusterSecretStore" | "SecretStore") => {
            let provider = object["spec"]["provider"].as_object();
            if provider.is_some_and(|p| p.len() == 1) {
                Ok(())
            } else {
                Err("unable to get store provider".to_owned())
            }
        }
        _ => Ok(()),
    }
}

/// `10.0.0.1-10.0.0.9` or `10.0.0.0/24`.
fn is_range(text: &str) -> bool {
    let address = |part: &str| part.trim().parse::<Ipv4Addr>().ok();
    match (text.split_once('-'), text.split_once('/')) {
        (Some((from, to)), _) => {
            address(from).zip(address(to)).is_some_and(|(from, to)| from <= to)
        }
        (None, Some((base, bits))) => {
            address(base).is_some() && bits.parse::<u8>().is_ok_and(|b| b <= 32)
        }
        _ => false,
    }
}
