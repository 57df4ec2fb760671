//! The calls: get, list, apply, delete and watch objects of any kind over one HTTP/2 connection per server.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use castle_model::Secret;
use castle_wire::tls::client_config;
use castle_wire::{ClientIdentity, Connector, Rest, Verify, World};
use futures::{Stream, StreamExt};
use http::header::ACCEPT;
use http::{HeaderValue, Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::middleware::BaseUriLayer;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::time::timeout;
use tower::ServiceBuilder;

use crate::busy;
use crate::catalogue::Refusal;
use crate::claim::{reconciler, yielding};
use crate::error::KubeError;
use crate::follow::Place;
use crate::object::{Object, ObjectId};
use crate::request::{Kind, KindPath, kinds_of, query};

/// Who castle is to the API server; field managers own what they apply.
pub const FIELD_MANAGER: &str = "castle";
/// How long one call may take: longer than any webhook's own deadline (30 s at most).
const CALL_DEADLINE: Duration = Duration::from_secs(35);
/// How often a connection in use is asked whether it lives, and how long it may think about it.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(10));
/// An idle HTTP/2 connection is kept this long: a whole run comes back to it.
const IDLE: Duration = Duration::from_mins(30);
/// The objects of one page of a list.
const PAGE: usize = 500;
/// How a list without contents is asked for.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Where an API server is and who we are to it.
#[derive(Debug, Clone)]
pub struct KubeAccess {
    /// Its address: `https://192.168.1.210:6443`.
    pub server: String,
    /// The certificate of its authority, PEM.
    pub authority: String,
    /// Our certificate, PEM.
    pub certificate: String,
    /// Our key, PEM.
    pub key: Secret,
}

impl KubeAccess {
    fn connector(&self, world: &World, protocol: &[u8]) -> Result<Connector, KubeError> {
        let refuse = |source| KubeError::Tls { server: self.server.clone(), source };
        let identity = ClientIdentity::from_pem(&self.certificate, &self.key).map_err(refuse)?;
        let verify = Verify::Authority(self.authority.clone());
        let config = client_config(&verify, Some(identity), world.clock.clone(), &[protocol])
            .map_err(refuse)?;
        Ok(Connector::new(world.dialer.clone(), config))
    }

    /// Reads the certificates for questions that have a connection of their own each.
    ///
    /// # Errors
    /// If address, certificates or key cannot be used.
    pub fn entry(&self, world: &World) -> Result<KubeEntry, KubeError> {
        let port = self.uri()?.port_u16().unwrap_or(443);
        Ok(KubeEntry { connector: self.connector(world, b"http/1.1")?, port })
    }

    fn uri(&self) -> Result<Uri, KubeError> {
        self.server.parse().map_err(|error: http::uri::InvalidUri| KubeError::Access {
            server: self.server.clone(),
            why: error.to_string(),
        })
    }
}

/// Who we are to the API servers of a cluster, read and ready for any number of handshakes.
#[derive(Clone)]
pub struct KubeEntry {
    connector: Connector,
    port: u16,
}

/// A client of one API server. Clones share the connection.
#[derive(Clone)]
pub struct Kubernetes {
    client: kube::Client,
    server: String,
    /// Kinds that discovery has shown, by group and version.
    kinds: Arc<Mutex<BTreeMap<String, Vec<Kind>>>>,
}

/// Whether an apply is for real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is stored.
    Real,
    /// The server does everything, webhooks included, but stores nothing.
    DryRun,
}

/// What a list showed, and the place from which a watch goes on.
#[derive(Debug)]
pub struct Listing {
    /// The objects, ordered by the server.
    pub items: Vec<Object>,
    /// The place.
    pub resource_version: String,
}

/// One event of a watch.
#[derive(Debug)]
pub enum Seen {
    /// It is there, in this form.
    There(Object),
    /// It is gone; this was its last form.
    Gone(Object),
    /// Nothing has changed: the watch lives.
    Bookmark,
}

impl Kubernetes {
    /// A client of the server that `access` names. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// If address, certificates or key cannot be used; nothing is dialled yet.
    pub fn new(world: &World, access: &KubeAccess) -> Result<Self, KubeError> {
        let connector = access.connector(world, b"h2")?;
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http2_only(true)
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .http2_keep_alive_timeout(KEEP_ALIVE.1)
            .build(connector);
        let service = ServiceBuilder::new()
            .layer(BaseUriLayer::new(access.uri()?))
            .and_then(busy::told::<_, hyper_util::client::legacy::Error>)
            .service(client);
        Ok(Self {
            client: kube::Client::new(service, "default"),
            server: access.server.clone(),
            kinds: Arc::default(),
        })
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The server's version, such as `v1.36.3`.
    ///
    /// # Errors
    /// If it does not answer or refuses.
    pub async fn version(&self) -> Result<String, KubeError> {
        let doing = "ask the API server for its version";
        let reply = self.call(doing, Method::GET, "/version", Vec::new(), None).await?;
        Ok(reply.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Gets one object; none if it, or its whole kind, is not there.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn get(&self, id: &ObjectId) -> Result<Option<Object>, KubeError> {
        let doing = format!("get {id}");
        let read = async {
            let path = self.path(id).await?;
            self.call(&doing, Method::GET, &path.one(&id.name), Vec::new(), None).await
        };
        match read.await {
            Ok(value) => object(&doing, value).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the objects of a kind, in one namespace or all, that a label selector (empty for all) matches.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or knows no such kind.
    pub async fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Listing, KubeError> {
        let doing = match namespace {
            Some(namespace) => format!("list every {kind} in {namespace}"),
            None => format!("list every {kind}"),
        };
        let path = KindPath { kind: self.kind(api_version, kind).await?, namespace }.all();
        match self.pages(&doing, &path, selector, (api_version, kind)).await {
            // Between two pages the server forgot where the first one was: the whole is listed anew, once.
            Err(error) if error.is_too_old() => {
                self.pages(&doing, &path, selector, (api_version, kind)).await
            }
            listing => listing,
        }
    }

    /// All pages of a list of objects of this version and kind.
    pub(crate) async fn pages(
        &self,
        doing: &str,
        path: &str,
        selector: &str,
        (api_version, kind): (&str, &str),
    ) -> Result<Listing, KubeError> {
        let mut items = Vec::new();
        let (page, mut next) = (PAGE.to_string(), String::new());
        loop {
            let query =
                query(&[("labelSelector", selector), ("limit", &page), ("continue", &next)]);
            let mut reply =
                self.call(doing, Method::GET, &format!("{path}{query}"), Vec::new(), None).await?;
            let part = reply.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
            for mut item in part.unwrap_or_default() {
                // Lists leave out what all of their entries are.
                item["apiVersion"] = api_version.into();
                item["kind"] = kind.into();
                items.push(object(doing, item)?);
            }
            let text = |at: &str| reply.pointer(at).and_then(Value::as_str).unwrap_or_default();
            text("/metadata/continue").clone_into(&mut next);
            if next.is_empty() {
                let resource_version = text("/metadata/resourceVersion").to_owned();
                return Ok(Listing { items, resource_version });
            }
        }
    }

    /// The names of all objects of a kind, in one namespace or all. The server sends no content of them: neither secrets of
    /// others nor much data.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or knows no such kind.
    pub(crate) async fn names(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<BTreeSet<String>, KubeError> {
        let doing = format!("list the names of every {kind}");
        let path = KindPath { kind: self.kind(api_version, kind).await?, namespace }.all();
        let mut names = BTreeSet::new();
        let (page, mut next, mut anew) = (PAGE.to_string(), String::new(), false);
        loop {
            let query = query(&[("limit", &page), ("continue", &next)]);
            let path = format!("{path}{query}");
            let mut request = request(&doing, Method::GET, &path, Vec::new(), None)?;
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(METADATA));
            let reply: Value = match within(&doing, self.client.request(request)).await {
                // Between two pages the server forgot where the first one was: once more, from the beginning.
                Err(error) if error.is_too_old() && !anew => {
                    (anew, next) = (true, String::new());
                    continue;
                }
                reply => reply?,
            };
            let items = reply.get("items").and_then(Value::as_array).map(Vec::as_slice);
            let name = |item: &Value| item.pointer("/metadata/name")?.as_str().map(str::to_owned);
            names.extend(items.unwrap_or_default().iter().filter_map(name));
            let place = reply.pointer("/metadata/continue").and_then(Value::as_str);
            place.unwrap_or_default().clone_into(&mut next);
            if next.is_empty() {
                return Ok(names);
            }
        }
    }

    /// Applies an object on the server's side, as field manager [`FIELD_MANAGER`].
    ///
    /// It is tried without force first. Where the server names others who hold fields of it, they are taken over if
    /// none of them would put its own values back; what is theirs to fill in (see [`crate::claim`]) stays theirs.
    ///
    /// # Errors
    /// If the server does not answer, refuses, or knows no such kind; a conflict if another reconciler holds a field.
    pub async fn apply(&self, wanted: &Object, mode: Mode) -> Result<Object, KubeError> {
        let error = match self.send_apply(wanted, mode, false).await {
            Err(error) => error,
            applied => return applied,
        };
        let holders = error.refusal().map(Refusal::holders).unwrap_or_default();
        if holders.is_empty() || holders.iter().any(|holder| reconciler(holder).is_some()) {
            return Err(error);
        }
        match self.get(&wanted.id()).await? {
            Some(there) => self.send_apply(&yielding(wanted, &there), mode, true).await,
            None => self.send_apply(wanted, mode, false).await,
        }
    }

    async fn send_apply(
        &self,
        wanted: &Object,
        mode: Mode,
        force: bool,
    ) -> Result<Object, KubeError> {
        let id = wanted.id();
        let doing = match mode {
            Mode::Real => format!("apply {id}"),
            Mode::DryRun => format!("try out {id}"),
        };
        let dry_run = if mode == Mode::DryRun { "All" } else { "" };
        let force = if force { "true" } else { "false" };
        let query = query(&[
            ("fieldManager", FIELD_MANAGER),
            ("force", force),
            ("dryRun", dry_run),
            // An apply refuses fields that its kind does not have in any case, and what we send has no key twice: the
            // server's own look for both would parse everything a second time.
            ("fieldValidation", "Ignore"),
        ]);
        let path = format!("{}{query}", self.path(&id).await?.one(&id.name));
        let body = wanted.value().to_string().into_bytes();
        let media = Some("application/apply-patch+yaml");
        let reply = self.call(&doing, Method::PATCH, &path, body, media).await?;
        object(&doing, reply)
    }

    /// Sets one annotation of an object that somebody else owns, and nothing else of it.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or there is no such object.
    pub async fn annotate(&self, id: &ObjectId, key: &str, value: &str) -> Result<(), KubeError> {
        let doing = format!("annotate {id}");
        let query = query(&[("fieldManager", FIELD_MANAGER)]);
        let path = format!("{}{query}", self.path(id).await?.one(&id.name));
        let patch = serde_json::json!({"metadata": {"annotations": {key: value}}});
        let media = Some("application/merge-patch+json");
        self.call(&doing, Method::PATCH, &path, patch.to_string().into_bytes(), media).await?;
        Ok(())
    }

    /// Deletes an object; false if it was not there.
    ///
    /// # Errors
    /// If the server does not answer or refuses.
    pub async fn delete(&self, id: &ObjectId) -> Result<bool, KubeError> {
        self.remove(id, &serde_json::json!({})).await
    }

    /// Deletes an object if it is still the very one that was seen, untouched since; false if it was not there.
    ///
    /// # Errors
    /// If the server does not answer or refuses; a conflict if somebody has changed or replaced it since.
    pub async fn delete_seen(&self, seen: &Object) -> Result<bool, KubeError> {
        let preconditions = serde_json::json!({
            "uid": seen.text("/metadata/uid"),
            "resourceVersion": seen.text("/metadata/resourceVersion"),
        });
        self.remove(&seen.id(), &preconditions).await
    }

    async fn remove(&self, id: &ObjectId, preconditions: &Value) -> Result<bool, KubeError> {
        let doing = format!("delete {id}");
        let options = serde_json::json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "propagationPolicy": "Background", "preconditions": preconditions,
        });
        let body = options.to_string().into_bytes();
        let media = Some("application/json");
        let removal = async {
            let path = self.path(id).await?.one(&id.name);
            self.call(&doing, Method::DELETE, &path, body, media).await
        };
        match removal.await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Watches a place from where a [`Listing`] of it ended. The stream ends when the server ends it; an error of code
    /// 410 means that the place is too old, and one lists again.
    ///
    /// # Errors
    /// If the server does not answer or refuses, or knows no such kind.
    pub async fn watch(
        &self,
        place: &Place,
        from: &str,
    ) -> Result<impl Stream<Item = Result<Seen, KubeError>> + use<>, KubeError> {
        let doing = format!("watch every {}", place.kind);
        let kind = self.kind(&place.api_version, &place.kind).await?;
        let path = KindPath { kind, namespace: place.namespace.as_deref() }.all();
        let query = query(&[
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("labelSelector", &place.selector),
            ("resourceVersion", from),
        ]);
        let request = request(&doing, Method::GET, &format!("{path}{query}"), Vec::new(), None)?;
        let opening = self.client.request_events::<Value>(request);
        let events = within(&doing, opening).await?;
        Ok(events.map(move |event| match event {
            Ok(WatchEvent::Added(value) | WatchEvent::Modified(value)) => {
                object(&doing, value).map(Seen::There)
            }
            Ok(WatchEvent::Deleted(value)) => object(&doing, value).map(Seen::Gone),
            Ok(WatchEvent::Bookmark(_)) => Ok(Seen::Bookmark),
            Ok(WatchEvent::Error(status)) => Err(told_apart(&doing, kube::Error::Api(status))),
            Err(error) => Err(told_apart(&doing, error)),
        }))
    }

    async fn path<'a>(&self, id: &'a ObjectId) -> Result<KindPath<'a>, KubeError> {
        let kind = self.kind(&id.api_version, &id.kind).await?;
        Ok(KindPath { kind, namespace: id.namespace.as_deref() })
    }

    /// Finds a kind by discovery. What was found is remembered; what was not is asked for again.
    pub(crate) async fn kind(&self, api_version: &str, kind: &str) -> Result<Kind, KubeError> {
        let known = || {
            let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
            kinds.get(api_version)?.iter().find(|k| k.name == kind).cloned()
        };
        if let Some(found) = known() {
            return Ok(found);
        }
        let missing =
            || KubeError::NoSuchKind { api_version: api_version.to_owned(), kind: kind.to_owned() };
        match self.kinds_of_version(api_version).await {
            Err(error) if error.is_not_found() => return Err(missing()),
            found => found?,
        };
        known().ok_or_else(missing)
    }

    /// Asks for the kinds of a group and version, and remembers them.
    pub(crate) async fn kinds_of_version(&self, api_version: &str) -> Result<Vec<Kind>, KubeError> {
        let doing = format!("ask for the kinds of {api_version}");
        let place = Kind::prefix(api_version);
        let reply = self.call(&doing, Method::GET, &place, Vec::new(), None).await?;
        let found = kinds_of(api_version, &reply);
        self.kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(api_version.to_owned(), found.clone());
        Ok(found)
    }

    pub(crate) async fn call(
        &self,
        doing: &str,
        method: Method,
        path: &str,
        body: Vec<u8>,
        media: Option<&str>,
    ) -> Result<Value, KubeError> {
        let request = request(doing, method, path, body, media)?;
        within(doing, self.client.request::<Value>(request)).await
    }
}

/// Asks `/readyz` of the API server at one address, over a connection made for this question alone.
///
/// # Errors
/// If it does not answer, is not verified by the castle's authority, or says that it is not ready.
pub async fn readyz(entry: &KubeEntry, address: Ipv4Addr) -> Result<(), KubeError> {
    let KubeEntry { connector, port } = entry;
    let doing = format!("ask https://{address}:{port}/readyz");
    let rest = Rest::over(connector.clone(), &format!("https://{address}:{port}"));
    let reply = rest
        .request(Method::GET, "/readyz", Vec::new(), Bytes::new())
        .await
        .map_err(|source| KubeError::Call { doing: doing.clone(), source: Box::new(source) })?;
    if reply.status == http::StatusCode::OK {
        return Ok(());
    }
    let refusal = Refusal {
        code: reply.status.as_u16(),
        reason: String::new(),
        message: reply.text().chars().take(500).collect(),
        wait: busy::seconds(&reply.headers).unwrap_or_default(),
    };
    Err(KubeError::Refused { doing, refusal })
}

fn request(
    doing: &str,
    method: Method,
    path: &str,
    body: Vec<u8>,
    media: Option<&str>,
) -> Result<Request<Vec<u8>>, KubeError> {
    let mut builder = Request::builder().method(method).uri(path);
    if let Some(media) = media {
        builder = builder.header(http::header::CONTENT_TYPE, media);
    }
    builder
        .header(ACCEPT, "application/json")
        .body(body)
        .map_err(|error| KubeError::Reply { doing: doing.to_owned(), why: error.to_string() })
}

async fn within<T>(
    doing: &str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, KubeError> {
    match timeout(CALL_DEADLINE, call).await {
        Ok(result) => result.map_err(|error| told_apart(doing, error)),
        Err(_) => Err(KubeError::Deadline { doing: doing.to_owned(), after: CALL_DEADLINE }),
    }
}

fn told_apart(doing: &str, error: kube::Error) -> KubeError {
    let doing = doing.to_owned();
    match error {
        kube::Error::Api(status) => {
            let wait = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            let refusal = Refusal {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
                wait,
            };
            KubeError::Refused { doing, refusal }
        }
        kube::Error::SerdeError(error) => KubeError::Reply { doing, why: error.to_string() },
        kube::Error::Service(source) => KubeError::Broken { doing, source },
        other => KubeError::Broken { doing, source: Box::new(other) },
    }
}

fn object(doing: &str, value: Value) -> Result<Object, KubeError> {
    Object::new(value).map_err(|why| KubeError::Reply { doing: doing.to_owned(), why })
}

#[cfg(test)]
mod tests;
