//! External Secrets: stores prove their identity, and external secrets become Secrets with real values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::complete::uuid;
use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, set_condition};
use crate::durations::Process;
use crate::turn::{Neighbours, SecretQuery, Turn};

/// A key that no folder holds: asking for it proves the login and nothing else.
const NO_KEY: &str = "castle-rehearsal-login";

/// What a store needs to read the source.
struct Login {
    host: String,
    project: String,
    environment: String,
    path: String,
    client_id: String,
    client_secret: String,
}

impl Kubernetes {
    /// A store's controller: can it log in?
    pub(super) fn check_store(
        &mut self,
        turn: &mut Turn<'_>,
        place: &str,
        neighbours: &dyn Neighbours,
    ) {
        if !self.acts("external-secrets", "external-secrets") {
            return;
        }
        let Some(store) = self.store.get(place) else { return };
        let found =
            self.login(store).and_then(|login| match ask(neighbours, (&login, turn.now), NO_KEY) {
                Err(why) if !is_missing_key(&why) => {
                    Err(format!("unable to validate store: {why}"))
                }
                _ => Ok(()),
            });
        let stamp = self.stamp();
        let ready = found.is_ok();
        self.store.change(place, |store| match &found {
            Ok(()) => {
                set_condition(store, "Ready", true, "Valid", "store validated", &stamp);
                store["status"]["capabilities"] = "ReadOnly".into();
            }
            Err(why) => set_condition(store, "Ready", false, "InvalidProviderConfig", why, &stamp),
        });
        if ready {
            for waiting in self.store.keys("external-secrets.io", "externalsecrets") {
                let done = self.store.get(&waiting).is_some_and(|o| condition(o, "Ready"));
                if !done {
                    self.plan(turn, &waiting, Process::SecretSync);
                }
            }
        } else {
            self.plan(turn, place, Process::ExternalSecretsAgain);
        }
    }

    /// An external secret's controller: fetch the values, write the Secret.
    pub(super) fn sync_secret(
        &mut self,
        turn: &mut Turn<'_>,
        place: &str,
        neighbours: &dyn Neighbours,
    ) {
        if !self.acts("external-secrets", "external-secrets") {
            return;
        }
        let Some(external) = self.store.shared(place) else { return };
        let mut values = self.fetched(&external, turn.now, neighbours);
        if self.troubles.empties(self.now) {
            for (_, value) in values.iter_mut().flatten() {
                value.clear();
            }
        }
        let stamp = self.stamp();
        match values {
            Ok(values) => {
                self.write_target(turn, &external, &values);
                self.store.change(place, |object| {
                    object["status"]["refreshTime"] = stamp.clone().into();
                    set_condition(object, "Ready", true, "SecretSynced", "secret synced", &stamp);
                });
            }
            Err(why) => {
                self.store.change(place, |object| {
                    set_condition(object, "Ready", false, "SecretSyncedError", &why, &stamp);
                });
                self.plan(turn, place, Process::ExternalSecretsAgain);
            }
        }
    }

    fn fetched(
        &self,
        external: &Value,
        now: u64,
        neighbours: &dyn Neighbours,
    ) -> Result<Vec<(String, String)>, String> {
        let reference = &external["spec"]["secretStoreRef"];
        let name = reference["name"].as_str().unwrap_or_default();
        let namespace = external["metadata"]["namespace"].as_str().unwrap_or_default();
        let (plural, scope) = match reference["kind"].as_str() {
            Some("ClusterSecretStore") => ("clustersecretstores", ""),
            _ => ("secretstores", namespace),
        };
        let store = self
            .store
            .get(&key("external-secrets.io", plural, scope, name))
            .ok_or_else(|| format!("could not get {plural} \"{name}\", not found"))?;
        if !condition(store, "Ready") {
            return Err(format!("the desired SecretStore {name} is not ready"));
        }
        let login = self.login(store)?;
        let wanted = external["spec"]["data"].as_array().map_or(&[][..], Vec::as_slice);
        wanted
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                let remote = entry["remoteRef"]["key"].as_str().unwrap_or_default();
                let value = ask(neighbours, (&login, now), remote).map_err(|why| {
                    format!("error processing spec.data[{index}] (key: {remote}), err: {why}")
                })?;
                Ok((entry["secretKey"].as_str().unwrap_or_default().to_owned(), value))
            })
            .collect()
    }

    fn login(&self, store: &Value) -> Result<Login, String> {
        let provider = &store["spec"]["provider"]["infisical"];
        if provider.is_null() {
            return Err("the rehearsal knows no provider but infisical".to_owned());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let auth = &provider["auth"]["universalAuthCredentials"];
        let own = text(&store["metadata"]["namespace"]);
        let read = |reference: &Value| {
            let namespace = reference["namespace"].as_str().unwrap_or(&own);
            let (name, entry) = (text(&reference["name"]), text(&reference["key"]));
            let secret = self
                .store
                .get(&key("", "secrets", namespace, &name))
                .ok_or_else(|| format!("cannot get Kubernetes secret \"{name}\" from namespace \"{namespace}\": secrets \"{name}\" not found"))?;
            decoded(&secret["data"][entry.as_str()])
                .ok_or_else(|| format!("cannot find secret data for key: \"{entry}\""))
        };
        let scope = &provider["secretsScope"];
        let path = scope["secretsPath"].as_str().unwrap_or("/").to_owned();
        Ok(Login {
            host: provider["hostAPI"].as_str().unwrap_or("https://app.infisical.com").to_owned(),
            project: text(&scope["projectSlug"]),
            environment: text(&scope["environmentSlug"]),
            path,
            client_id: read(&auth["clientId"])?,
            client_secret: read(&auth["clientSecret"])?,
        })
    }

    fn write_target(&mut self, turn: &mut Turn<'_>, external: &Value, values: &[(String, String)]) {
        let metadata = &external["metadata"];
        let target = &external["spec"]["target"];
        let name = target["name"].as_str().or(metadata["name"].as_str()).unwrap_or_default();
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let template = &target["template"]["data"];
        let pairs: Vec<(String, String)> = match template.as_object() {
            Some(fields) => fields
                .iter()
                .map(|(field, text)| {
                    (field.clone(), filled(text.as_str().unwrap_or_default(), values))
                })
                .collect(),
            None => values.to_vec(),
        };
        let data: Map<String, Value> = pairs
            .iter()
            .map(|(field, value)| (field.clone(), STANDARD.encode(value).into()))
            .collect();
        let place = key("", "secrets", namespace, name);
        let uid = match self.store.get(&place) {
            Some(there) => there["metadata"]["uid"].clone(),
            None => uuid(turn).into(),
        };
        let object = json!({
            "apiVersion": "v1", "kind": "Secret",
            "type": target["template"]["type"].as_str().unwrap_or("Opaque"),
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid, "creationTimestamp": self.stamp(),
                "labels": {"reconcile.external-secrets.io/managed": "true"},
                "ownerReferences": [{"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
                    "name": metadata["name"], "uid": metadata["uid"], "controller": true}],
            },
            "data": data,
        });
        self.store.put(&place, object);
    }

    /// The user and password in a Secret, as Flux reads them.
    pub(super) fn credentials(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(String, String), String> {
        let secret = self.store.get(&key("", "secrets", namespace, name)).ok_or_else(|| {
            format!("failed to get secret '{namespace}/{name}': secrets \"{name}\" not found")
        })?;
        let read = |field: &str| decoded(&secret["data"][field]).unwrap_or_default();
        Ok((read("username"), read("password")))
    }

    /// How many external secrets are synced; for what the datacenter knows of itself.
    #[must_use]
    pub fn synced_secrets(&self) -> usize {
        self.store
            .all("external-secrets.io", "externalsecrets")
            .filter(|(key, object)| !parts(key).3.is_empty() && condition(object, "Ready"))
            .count()
    }
}

fn ask(
    neighbours: &dyn Neighbours,
    (login, at): (&Login, u64),
    name: &str,
) -> Result<String, String> {
    neighbours.secret(&SecretQuery {
        at,
        host: &login.host,
        client_id: &login.client_id,
        client_secret: &login.client_secret,
        project: &login.project,
        environment: &login.environment,
        path: &login.path,
        key: name,
    })
}

/// Whether the login was good and only the key was not there.
fn is_missing_key(why: &str) -> bool {
    why.contains(NO_KEY)
}

fn decoded(value: &Value) -> Option<String> {
    let bytes = STANDARD.decode(value.as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

/// A template's text with `{{ .name }}` filled in.
fn filled(text: &str, values: &[(String, String)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{{ .{name} }}}}"), value)
            .replace(&format!("{{{{.{name}}}}}"), value)
    })
}
