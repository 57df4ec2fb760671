//! Services: endpoints follow pods, load balancers get addresses, and webhooks begin to serve later than they look ready.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::admission::includes;
use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, Work, named};
use crate::durations::Process;
use crate::turn::Turn;

/// A webhook's authority as it stands in configurations: any certificate will do here.
const AUTHORITY: &str =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnJlaGVhcnNhbAotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg==";

impl Kubernetes {
    /// The services that select a pod.
    pub(super) fn services_of(&self, pod: &Value) -> Vec<String> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        self.store
            .under(&format!("/services/{namespace}/"))
            .filter(|(_, service)| {
                let selector = &service["spec"]["selector"];
                selector.as_object().is_some_and(|s| !s.is_empty())
                    && includes(&pod["metadata"]["labels"], selector)
            })
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// A service's controllers: its endpoint slice, and its address if it wants one.
    pub(super) fn connect(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(service) = self.store.shared(place) else { return };
        self.slice(place, &service);
        self.balance(turn, place, &service);
    }

    fn slice(&mut self, place: &str, service: &Value) {
        let selector = &service["spec"]["selector"];
        if selector.as_object().is_none_or(serde_json::Map::is_empty) {
            return;
        }
        let (_, _, namespace, name) = parts(place);
        let endpoints: Vec<Value> = self
            .store
            .under(&format!("/pods/{namespace}/"))
            .filter(|(_, pod)| includes(&pod["metadata"]["labels"], selector))
            .filter_map(|(_, pod)| {
                let address = pod["status"]["podIP"].as_str()?;
                let ready = condition(pod, "Ready");
                Some(json!({
                    "addresses": [address],
                    "conditions": {"ready": ready, "serving": ready, "terminating": false},
                    "nodeName": pod["spec"]["nodeName"],
                    "targetRef": {"kind": "Pod", "namespace": namespace, "name": pod["metadata"]["name"]},
                }))
            })
            .collect();
        let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
        let suffix = &hex::encode(Sha256::digest(uid))[..5];
        let slice =
            key("discovery.k8s.io", "endpointslices", namespace, &format!("{name}-{suffix}"));
        let ports = self.target_ports(namespace, service);
        let object = self.store.get(&slice).cloned().unwrap_or_else(|| json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": format!("{name}-{suffix}"), "namespace": namespace, "uid": format!("slice-{uid}"),
                "generation": 1, "creationTimestamp": self.stamp(),
                "labels": {
                    "kubernetes.io/service-name": name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
                "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid, "controller": true}],
            },
        }));
        let mut object = object;
        object["endpoints"] = endpoints.into();
        object["ports"] = ports.into();
        self.store.put(&slice, object);
    }

    /// The ports of a service as its pods have them: a name is that of a port of their containers.
    fn target_ports(&self, namespace: &str, service: &Value) -> Vec<Value> {
        let selector = &service["spec"]["selector"];
        let prefix = format!("/pods/{namespace}/");
        let pod = self
            .store
            .under(&prefix)
            .find(|(_, pod)| includes(&pod["metadata"]["labels"], selector));
        let named = |name: &str| -> Option<Value> {
            let containers = pod?.1["spec"]["containers"].as_array()?;
            let mut ports = containers.iter().filter_map(|c| c["ports"].as_array()).flatten();
            ports.find(|p| p["name"] == name).map(|p| p["containerPort"].clone())
        };
        let all = service["spec"]["ports"].as_array().into_iter().flatten();
        all.map(|port| {
            let target = match &port["targetPort"] {
                Value::String(name) => named(name).unwrap_or(Value::Null),
                Value::Null => port["port"].clone(),
                number => number.clone(),
            };
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            json!({"name": port["name"].as_str().unwrap_or_default(), "port": target, "protocol": protocol})
        })
        .collect()
    }

    /// A pod behind webhooks is ready. Its certificate is written soon; its process listens only some seconds later,
    /// which is the race that the gates of castle must win.
    pub(super) fn webhooks_up(&mut self, turn: &mut Turn<'_>, pod: &str) {
        let Some(object) = self.store.shared(pod) else { return };
        for place in self.services_of(&object) {
            let (_, _, namespace, service) = parts(&place);
            if !self.is_hook(namespace, service)
                || self.serving.contains(&format!("{namespace}/{service}"))
            {
                continue;
            }
            let slow = match namespace {
                "metallb-system" => Process::MetallbWebhook,
                _ => Process::Webhook,
            };
            let (namespace, service) = (namespace.to_owned(), service.to_owned());
            let written =
                Work::Authority { namespace: namespace.clone(), service: service.clone() };
            self.later(turn, Process::HookAuthority, named(&place), written);
            self.later(turn, slow, named(&place), Work::Serving { namespace, service });
        }
    }

    /// A configuration of webhooks was written: where the pods behind them are ready already, they begin to serve.
    pub(super) fn hooks_registered(&mut self, turn: &mut Turn<'_>, configuration: &str) {
        let Some(object) = self.store.get(configuration) else { return };
        let hooks = object["webhooks"].as_array().cloned().unwrap_or_default();
        let mut pods: Vec<String> = Vec::new();
        for hook in &hooks {
            let target = &hook["clientConfig"]["service"];
            let text = |field: &str| target[field].as_str().unwrap_or_default();
            let (namespace, name) = (text("namespace"), text("name"));
            if self.serving.contains(&format!("{namespace}/{name}")) {
                let (namespace, service) = (namespace.to_owned(), name.to_owned());
                let subject = format!("{namespace}/{service}");
                let work = Work::Authority { namespace, service };
                self.later(turn, Process::HookAuthority, &subject, work);
                continue;
            }
            let Some(service) = self.store.get(&key("", "services", namespace, name)) else {
                continue;
            };
            let prefix = format!("/pods/{namespace}/");
            let ready = self.store.under(&prefix).find(|(_, pod)| {
                condition(pod, "Ready")
                    && includes(&pod["metadata"]["labels"], &service["spec"]["selector"])
            });
            pods.extend(ready.map(|(key, _)| key.clone()));
        }
        pods.dedup();
        for pod in pods {
            self.webhooks_up(turn, &pod);
        }
    }

    /// Whether some webhook configuration calls a service.
    fn is_hook(&self, namespace: &str, service: &str) -> bool {
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].iter().any(|plural| {
            self.store.all("admissionregistration.k8s.io", plural).any(|(_, configuration)| {
                configuration["webhooks"]
                    .as_array()
                    .is_some_and(|hooks| hooks.iter().any(|h| calls(h, namespace, service)))
            })
        })
    }

    pub(super) fn authority(&mut self, namespace: &str, service: &str) {
        if !self.answers(namespace, service) {
            return;
        }
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            for place in self.store.keys("admissionregistration.k8s.io", plural) {
                self.store.change(&place, |configuration| {
                    let hooks = configuration["webhooks"].as_array_mut();
                    for hook in hooks.into_iter().flatten().filter(|h| calls(h, namespace, service))
                    {
                        hook["clientConfig"]["caBundle"] = AUTHORITY.into();
                    }
                });
            }
        }
    }

    pub(super) fn now_serving(&mut self, namespace: &str, service: &str) {
        if self.answers(namespace, service) {
            self.authority(namespace, service);
            self.serving.insert(format!("{namespace}/{service}"));
        }
    }
}

fn calls(hook: &Value, namespace: &str, service: &str) -> bool {
    let target = &hook["clientConfig"]["service"];
    target["namespace"] == namespace && target["name"] == service
}
