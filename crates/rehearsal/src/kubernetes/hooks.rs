//! Admission webhooks: called through their service and its endpoint slice, from the API server that was asked.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::Kubernetes;
use super::balancer::ends;
use super::kinds::Resource;
use super::refuse::No;
use super::store::{key, parts};

/// What an API server asks the webhooks.
pub(super) struct Review<'a> {
    pub(super) resource: &'a Resource,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(super) operation: &'static str,
    pub(super) object: &'a Value,
    pub(super) dry_run: bool,
    /// The host that the client asked.
    pub(super) server: &'a str,
}

impl Kubernetes {
    /// Calls every webhook that wants to see the write.
    pub(super) fn admit(&self, review: &Review<'_>) -> Result<(), No> {
        if review.resource.group == "admissionregistration.k8s.io" {
            return Ok(());
        }
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            for (_, configuration) in self.store.all("admissionregistration.k8s.io", plural) {
                for hook in configuration["webhooks"].as_array().map_or(&[][..], Vec::as_slice) {
                    if wants(hook, review) && self.selects(hook, review) {
                        self.call_hook(hook, review)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn call_hook(&self, hook: &Value, review: &Review<'_>) -> Result<(), No> {
        let name = hook["name"].as_str().unwrap_or_default();
        if hook["clientConfig"]["service"].is_null() {
            return Ok(());
        }
        let harmless = matches!(hook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun") | None);
        if review.dry_run && !harmless {
            let message = format!("admission webhook \"{name}\" does not support dry run");
            return Err(No::bad(message));
        }
        match self.reach(hook, review.server) {
            Err(_) if hook["failurePolicy"] == "Ignore" => Ok(()),
            Err(why) => Err(No::internal(&format!(
                "failed calling webhook \"{name}\": failed to call webhook: {why}"
            ))),
            Ok(()) => self.judged(review).map_err(|why| {
                let message = format!("admission webhook \"{name}\" denied the request: {why}");
                No::new(403, "Forbidden", message)
            }),
        }
    }

    /// Whether the process behind a webhook answers an API server; why not, if it does not.
    fn reach(&self, hook: &Value, server: &str) -> Result<(), String> {
        let service = &hook["clientConfig"]["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default();
        let (namespace, target) = (text("namespace"), text("name"));
        let port = service["port"].as_u64().unwrap_or(443);
        let seconds = hook["timeoutSeconds"].as_u64().unwrap_or(10);
        let post = format!(
            "Post \"https://{target}.{namespace}.svc:{port}{}?timeout={seconds}s\"",
            text("path")
        );
        if self.store.get(&key("", "services", namespace, target)).is_none() {
            return Err(format!("{post}: service \"{target}\" not found"));
        }
        let Some((address, port, node)) = self.endpoint(namespace, target) else {
            return Err(format!("{post}: no endpoints available for service \"{target}\""));
        };
        let dial = format!("{post}: dial tcp {address}:{port}");
        let service = format!("{namespace}/{target}");
        if self.troubles.cuts_off(self.now, server) {
            return Err(format!("{dial}: connect: no route to host"));
        }
        if !self.serving.contains(&service) || self.troubles.refuses(self.now, &service) {
            return Err(format!("{dial}: connect: connection refused"));
        }
        if !self.has_power(&node) || self.troubles.slows(self.now, &service) {
            return Err(format!("{post}: context deadline exceeded"));
        }
        if hook["clientConfig"]["caBundle"].as_str().unwrap_or_default().is_empty() {
            return Err(format!(
                "{post}: tls: failed to verify certificate: x509: certificate signed by unknown authority"
            ));
        }
        Ok(())
    }

    /// The first ready endpoint of a service, and the node that it is on.
    fn endpoint(&self, namespace: &str, service: &str) -> Option<(String, u64, String)> {
        let prefix = format!("discovery.k8s.io/endpointslices/{namespace}/");
        self.store
            .under(&prefix)
            .filter(|(_, s)| s["metadata"]["labels"]["kubernetes.io/service-name"] == service)
            .find_map(|(_, slice)| {
                let ready = |e: &&Value| e["conditions"]["ready"] != false;
                let endpoint = slice["endpoints"].as_array()?.iter().find(ready)?;
                let port = slice["ports"][0]["port"].as_u64().unwrap_or(443);
                let node = endpoint["nodeName"].as_str().unwrap_or_default().to_owned();
                Some((endpoint["addresses"][0].as_str()?.to_owned(), port, node))
            })
    }

    /// Whether a webhook's selectors mean an object and its namespace.
    fn selects(&self, hook: &Value, review: &Review<'_>) -> bool {
        let metadata = &review.object["metadata"];
        let home = match review.resource.kind.as_str() {
            "Namespace" => Some(review.object),
            _ => metadata["namespace"]
                .as_str()
                .and_then(|name| self.store.get(&key("", "namespaces", "", name))),
        };
        home.is_none_or(|home| meant(&hook["namespaceSelector"], &home["metadata"]["labels"]))
            && meant(&hook["objectSelector"], &metadata["labels"])
    }

    /// What the process behind a webhook says about an object.
    fn judged(&self, review: &Review<'_>) -> Result<(), String> {
        let object = review.object;
        if review.operation == "DELETE" {
            return Ok(());
        }
        match (review.resource.group.as_str(), review.resource.kind.as_str()) {
            ("metallb.io", "IPAddressPool") => self.judge_pool(object),
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

    fn judge_pool(&self, pool: &Value) -> Result<(), String> {
        let name = pool["metadata"]["name"].as_str().unwrap_or_default();
        let ranges = |pool: &Value| -> Vec<String> {
            let all = pool["spec"]["addresses"].as_array().into_iter().flatten();
            all.filter_map(|range| range.as_str().map(str::to_owned)).collect()
        };
        let own = ranges(pool);
        if own.is_empty() {
            return Err(format!("parsing address pool {name}: pool has no prefixes defined"));
        }
        for range in &own {
            let valid = ends(range).filter(|(from, to)| from <= to);
            let Some((from, to)) = valid else {
                return Err(format!(
                    "parsing address pool {name}: invalid CIDR \"{range}\" in pool \"{name}\""
                ));
            };
            let meets = |other: &(Ipv4Addr, Ipv4Addr)| other.0 <= to && from <= other.1;
            for (place, other) in self.store.all("metallb.io", "ipaddresspools") {
                let clash = ranges(other).into_iter().find(|r| ends(r).as_ref().is_some_and(meets));
                if let Some(clash) = clash.filter(|_| parts(place).3 != name) {
                    return Err(format!(
                        "CIDR \"{range}\" in pool \"{name}\" overlaps with already defined CIDR \"{clash}\""
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether a webhook's rules name this write.
fn wants(hook: &Value, review: &Review<'_>) -> bool {
    let names = |list: &Value, wanted: &str| {
        list.as_array().is_some_and(|list| list.iter().any(|e| e == wanted || e == "*"))
    };
    let scope = if review.resource.namespaced { "Namespaced" } else { "Cluster" };
    hook["rules"].as_array().is_some_and(|rules| {
        rules.iter().any(|rule| {
            let in_scope =
                matches!(rule["scope"].as_str(), None | Some("*")) || rule["scope"] == scope;
            in_scope
                && names(&rule["apiGroups"], &review.resource.group)
                && names(&rule["apiVersions"], &review.resource.version)
                && names(&rule["resources"], &review.resource.plural)
                && names(&rule["operations"], review.operation)
        })
    })
}

/// Whether a selector of labels means these.
fn meant(selector: &Value, labels: &Value) -> bool {
    let plain = selector["matchLabels"].as_object().into_iter().flatten();
    let listed = selector["matchExpressions"].as_array().into_iter().flatten();
    plain.into_iter().all(|(name, value)| labels.get(name) == Some(value))
        && listed.into_iter().all(|rule| {
            let there = labels.get(rule["key"].as_str().unwrap_or_default());
            let listed =
                there.is_some_and(|v| rule["values"].as_array().is_some_and(|all| all.contains(v)));
            match rule["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => there.is_some(),
                Some("DoesNotExist") => there.is_none(),
                _ => false,
            }
        })
}
