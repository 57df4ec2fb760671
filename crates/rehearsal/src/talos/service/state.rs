//! The resource service of one machine: resources are read, listed and followed; nobody writes them.

use std::collections::BTreeMap;

use castle_talos_proto::cosi::resource_definition_spec::{PrintColumn, Sensitivity};
use castle_talos_proto::cosi::state_server::State;
use castle_talos_proto::cosi::{
    Event, EventType, GetRequest, GetResponse, ListRequest, ListResponse, Metadata, Resource,
    ResourceDefinitionSpec, Spec, WatchRequest, WatchResponse,
};
use futures::stream::{self, StreamExt};
use prost::Message;
use tonic::{Code, Request, Response, Status};

use super::machine::Answers;
use super::{Caller, mixed_up};
use crate::talos::resource::{DEFINITIONS, DEFINITIONS_KIND};
use crate::talos::{Call, Reply, ResourceShown};

impl Caller {
    async fn resources(&self, namespace: &str, kind: &str) -> Result<Vec<ResourceShown>, Status> {
        let call = Call::Resources {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            admin: self.is_admin(),
        };
        let Reply::Resources(found) = self.put(call).await? else { return Err(mixed_up()) };
        Ok(found)
    }

    fn resource(&self, namespace: &str, kind: &str, shown: &ResourceShown) -> Resource {
        let yaml_spec = yaml_serde::to_string(&shown.spec).unwrap_or_default();
        let proto_spec = if kind == DEFINITIONS_KIND { definition(&shown.id) } else { Vec::new() };
        Resource {
            metadata: Some(Metadata {
                namespace: namespace.to_owned(),
                r#type: kind.to_owned(),
                id: shown.id.clone(),
                version: shown.version.to_string(),
                owner: shown.owner.to_owned(),
                phase: "running".to_owned(),
                created: Some(self.timestamp(shown.times.0)),
                updated: Some(self.timestamp(shown.times.1)),
                ..Metadata::default()
            }),
            spec: Some(Spec { proto_spec, yaml_spec }),
        }
    }
}

/// A definition as protobuf: talosctl reads it so.
fn definition(id: &str) -> Vec<u8> {
    let Some(definition) = DEFINITIONS.iter().find(|d| d.kind.to_lowercase() == id) else {
        return Vec::new();
    };
    let column = |(name, path): &(&str, &str)| PrintColumn {
        name: (*name).to_owned(),
        json_path: (*path).to_owned(),
    };
    let sensitivity =
        if definition.sensitive { Sensitivity::Sensitive } else { Sensitivity::NonSensitive };
    ResourceDefinitionSpec {
        resource_type: definition.kind.to_owned(),
        display_type: definition.display.to_owned(),
        default_namespace: definition.namespace.to_owned(),
        aliases: definition.short_aliases(),
        all_aliases: definition.all_aliases(),
        print_columns: definition.columns.iter().map(column).collect(),
        sensitivity: sensitivity.into(),
    }
    .encode_to_vec()
}

#[tonic::async_trait]
impl State for Caller {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let GetRequest { namespace, r#type, id } = request.into_inner();
        let missing = format!("resource {type}({namespace}/{id}@undefined) doesn't exist");
        let found = self.resources(&namespace, &r#type).await?;
        let shown = found.iter().find(|shown| shown.id == id);
        let shown = shown.ok_or_else(|| Status::new(Code::NotFound, missing))?;
        let resource = self.resource(&namespace, &r#type, shown);
        Ok(Response::new(GetResponse { resource: Some(resource) }))
    }

    type ListStream = Answers<ListResponse>;

    async fn list(
        &self,
        request: Request<ListRequest>,
    ) -> Result<Response<Answers<ListResponse>>, Status> {
        let ListRequest { namespace, r#type } = request.into_inner();
        let found = self.resources(&namespace, &r#type).await?;
        let answer = |shown: &ResourceShown| {
            Ok(ListResponse { resource: Some(self.resource(&namespace, &r#type, shown)) })
        };
        let answers: Vec<_> = found.iter().map(answer).collect();
        Ok(Response::new(stream::iter(answers).boxed()))
    }

    type WatchStream = Answers<WatchResponse>;

    /// Follows one resource or all of a type. First comes an answer without any event: the watch stands. Then what
    /// is there, if one resource is followed or if it was asked for, then every change.
    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Answers<WatchResponse>>, Status> {
        let request = request.into_inner();
        let contents = request.options.as_ref().is_some_and(|options| options.bootstrap_contents);
        if request.id.is_some() && contents {
            let text = "bootstrap contents is not implemented for resource watch";
            return Err(Status::unimplemented(text));
        }
        // The first look is made at once, so that a refusal is the answer to the call itself.
        let found = self.resources(&request.namespace, &request.r#type).await?;
        let mut watch = Watch { caller: self.clone(), request, known: BTreeMap::new() };
        let mut first = vec![WatchResponse::default()];
        let there = watch.changes(found);
        if let Some(id) = &watch.request.id {
            let absent = || {
                gone(Resource {
                    metadata: Some(Metadata {
                        namespace: watch.request.namespace.clone(),
                        r#type: watch.request.r#type.clone(),
                        id: id.clone(),
                        version: "undefined".to_owned(),
                        phase: "running".to_owned(),
                        ..Metadata::default()
                    }),
                    spec: Some(Spec::default()),
                })
            };
            first.push(there.into_iter().next().unwrap_or_else(absent));
        } else if contents {
            first.extend(there);
            if watch.request.api_version >= 1 {
                first.push(event(EventType::Bootstrapped, None, None));
            }
        }
        let later = stream::unfold((watch, Vec::new()), |(mut watch, mut ready)| async move {
            loop {
                if !ready.is_empty() {
                    let next = ready.remove(0);
                    return Some((Ok(next), (watch, ready)));
                }
                let changed = watch.caller.door.changed();
                let request = &watch.request;
                match watch.caller.resources(&request.namespace, &request.r#type).await {
                    Ok(found) => ready = watch.changes(found),
                    Err(status) => return Some((Err(status), (watch, ready))),
                }
                if ready.is_empty() {
                    changed.await;
                }
            }
        });
        Ok(Response::new(stream::iter(first.into_iter().map(Ok)).chain(later).boxed()))
    }
}

/// Resources that are followed, as they were seen last.
struct Watch {
    caller: Caller,
    request: WatchRequest,
    known: BTreeMap<String, ResourceShown>,
}

impl Watch {
    /// What has changed since the last look. Only that is put into words: most looks show nothing new.
    fn changes(&mut self, found: Vec<ResourceShown>) -> Vec<WatchResponse> {
        let wanted = self.request.id.as_deref();
        let found: BTreeMap<String, ResourceShown> = found
            .into_iter()
            .filter(|shown| wanted.is_none_or(|wanted| wanted == shown.id))
            .map(|shown| (shown.id.clone(), shown))
            .collect();
        let told =
            |shown| self.caller.resource(&self.request.namespace, &self.request.r#type, shown);
        let mut changes = Vec::new();
        for (id, shown) in &found {
            match self.known.get(id) {
                None => changes.push(event(EventType::Created, Some(told(shown)), None)),
                Some(old) if old != shown => {
                    let (new, old) = (Some(told(shown)), Some(told(old)));
                    changes.push(event(EventType::Updated, new, old));
                }
                Some(_) => {}
            }
        }
        let lost = self.known.iter().filter(|(id, _)| !found.contains_key(*id));
        changes.extend(lost.map(|(_, shown)| gone(told(shown))));
        self.known = found;
        changes
    }
}

fn gone(resource: Resource) -> WatchResponse {
    event(EventType::Destroyed, Some(resource), None)
}

fn event(kind: EventType, resource: Option<Resource>, old: Option<Resource>) -> WatchResponse {
    let event = Event { resource, event_type: kind.into(), old, error: None };
    WatchResponse { event: vec![event] }
}
