//! The real definitions of External Secrets, MetalLB, Longhorn and Flux, served by the real API server: it takes what
//! castle makes of these kinds, and what the emulated controllers make of them, field by field.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Context, Report, Step, Stop, Whole};
use castle_journal::Journals;
use castle_kubernetes::{Kubernetes, Mode, Object, Place, Seen, manifest};
use castle_layers::secrets::source::Access;
use castle_layers::{Credentials, engine, gitops, networking, storage};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::{Failure, Observed, RunId, StepDecl, StepId};
use castle_platforms::handed::CLUSTER;
use castle_reality::cluster::Cluster;
use castle_reality::{Real, alone, nap};
use castle_rehearsal::host::{Host, runtime};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;

/// The components that bring definitions.
const DEFINITIONS: [&str; 5] = [
    "external-secrets-crds",
    "longhorn-crds",
    "metallb-manifest",
    "flux-source-crds",
    "flux-kustomize-crds",
];

/// The kinds of these groups that a castle has.
const KINDS: [(&str, &str); 7] = [
    ("external-secrets.io/v1", "ClusterSecretStore"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("metallb.io/v1beta1", "IPAddressPool"),
    ("metallb.io/v1beta1", "L2Advertisement"),
    ("source.toolkit.fluxcd.io/v1", "GitRepository"),
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    ("longhorn.io/v1beta2", "Node"),
];

/// What a chart would put into the labels of Longhorn's definitions.
const LONGHORN_LABELS: &str = "{{- include \"longhorn.labels\" . | nindent 4 }}";

/// How long anything may take on a machine that is busy.
const LIMIT: Duration = Duration::from_mins(2);

#[test]
#[ignore = "a real cluster in a namespace of its own"]
fn the_real_definitions_take_what_castle_makes() {
    alone(async {
        let mut components = Vec::new();
        for name in DEFINITIONS {
            let Some(component) = Real::find(name) else { return };
            components.push(component);
        }
        let Some(cluster) = Cluster::start(&[]).await else { return };
        let made = std::thread::spawn(|| runtime().unwrap().block_on(raised())).join().unwrap();
        let client = cluster.client();
        define(&client, &components).await;
        for (api_version, kind) in KINDS {
            let of_kind =
                made.values().filter(|o| o.api_version() == api_version && o.kind() == kind);
            assert!(of_kind.count() > 0, "a castle has no {kind} of {api_version}");
        }
        let mut strange = Vec::new();
        for object in made.values() {
            taken(&client, object).await;
            strange.extend(status_refused(&client, object).await);
        }
        assert!(strange.is_empty(), "a status that no real controller writes: {strange:#?}");
    });
}

/// The releases that the rehearsal has stand-ins for.
const STAND_INS: [&str; 4] = [
    include_str!("../../../rehearsal/src/sources/external-secrets.yaml"),
    include_str!("../../../rehearsal/src/sources/flux.yaml"),
    include_str!("../../../rehearsal/src/sources/longhorn.yaml"),
    include_str!("../../../rehearsal/src/sources/metallb.yaml"),
];

#[test]
#[ignore = "needs real components: cargo xtask test"]
fn stand_ins_ask_for_the_columns_and_names_of_the_real_definitions() {
    let mut real = BTreeMap::new();
    for name in DEFINITIONS {
        let Some(component) = Real::find(name) else { return };
        for definition in definitions_of(&component) {
            real.insert(definition["metadata"]["name"].to_string(), definition);
        }
    }
    let mut compared = 0;
    for object in STAND_INS.iter().flat_map(|text| manifest::parse("stand-in", text).unwrap()) {
        let ours = object.into_value();
        // Flux' other controllers are no components of ours, so nobody holds their kinds to theirs.
        let Some(theirs) = real.get(&ours["metadata"]["name"].to_string()) else { continue };
        let name = &ours["metadata"]["name"];
        let ours_served = &ours["spec"]["versions"][0];
        let versions = theirs["spec"]["versions"].as_array().unwrap();
        let theirs_served =
            versions.iter().find(|version| version["name"] == ours_served["name"]).unwrap();
        assert_eq!(columns(ours_served), columns(theirs_served), "{name}");
        let short = |definition: &Value| definition["spec"]["names"]["shortNames"].clone();
        assert_eq!(short(&ours), short(theirs), "{name}");
        compared += 1;
    }
    assert!(compared > 25, "{compared} kinds");
}

/// What a version asks to be printed, without the words that explain it.
fn columns(version: &Value) -> Vec<Value> {
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    columns.map(|c| json!([c["name"], c["type"], c["jsonPath"], c["priority"]])).collect()
}

/// The definitions that a component brings.
fn definitions_of(component: &Real) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in fs::read_dir(component.folder()).unwrap() {
        let file = entry.unwrap().path();
        // Longhorn's are a chart's template, with one expression in the labels.
        let text = fs::read_to_string(&file).unwrap().replace(LONGHORN_LABELS, "");
        let objects = manifest::parse(&file.display().to_string(), &text).unwrap();
        let objects = objects.into_iter().filter(|o| o.kind() == "CustomResourceDefinition");
        found.extend(objects.map(Object::into_value));
    }
    found
}

/// Brings the definitions in and waits until they are served.
async fn define(client: &Kubernetes, components: &[Real]) {
    for mut value in components.iter().flat_map(definitions_of) {
        // A webhook that converts is not here, and what is served alone needs none.
        value["spec"].as_object_mut().unwrap().shift_remove("conversion");
        client.apply(&Object::new(value).unwrap(), Mode::Real).await.unwrap();
    }
    let served = async {
        for (api_version, kind) in KINDS {
            while client.list(api_version, kind, None, "").await.is_err() {
                nap(Duration::from_millis(50)).await;
            }
        }
    };
    timeout(LIMIT, served).await.unwrap();
}

/// The server takes an object as castle sends it, and keeps every field; one with a field too many it refuses.
async fn taken(client: &Kubernetes, object: &Object) {
    let id = object.id();
    if let Some(namespace) = object.namespace() {
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        client.apply(&Object::new(space).unwrap(), Mode::Real).await.unwrap();
    }
    let mut sent = object.value().clone();
    sent.as_object_mut().unwrap().shift_remove("status");
    let accepted = client
        .apply(&Object::new(sent.clone()).unwrap(), Mode::DryRun)
        .await
        .unwrap_or_else(|error| panic!("{id} is refused: {error}\n{sent:#}"));
    let lost = lost("", &sent["spec"], &accepted.value()["spec"]);
    assert!(lost.is_empty(), "{id} loses {lost:?}");
    let mut wrong = sent.clone();
    wrong["spec"]["aFieldOfNobody"] = 1.into();
    let refused = client.apply(&Object::new(wrong).unwrap(), Mode::DryRun).await.unwrap_err();
    assert!(refused.to_string().contains("field not declared in schema"), "{id}: {refused}");
}

/// Why the server would not take the status that an emulated controller has written.
async fn status_refused(client: &Kubernetes, object: &Object) -> Option<String> {
    let error = client.apply(object, Mode::DryRun).await.err()?;
    Some(format!("{}: {error}", object.id()))
}

/// Which fields are not kept as they were sent.
fn lost(place: &str, sent: &Value, kept: &Value) -> Vec<String> {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => sent
            .iter()
            .flat_map(|(name, value)| {
                lost(&format!("{place}/{name}"), value, kept.get(name).unwrap_or(&Value::Null))
            })
            .collect(),
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => (0..)
            .zip(sent.iter().zip(kept))
            .flat_map(|(number, (sent, kept))| lost(&format!("{place}/{number}"), sent, kept))
            .collect(),
        (sent, kept) if sent == kept => Vec::new(),
        (sent, kept) => vec![format!("{place}: {sent} became {kept}")],
    }
}

/// Raises a whole castle in the rehearsal, and gives every object of these kinds that was there at any time.
async fn raised() -> BTreeMap<String, Object> {
    let mut spec = castle_config::example();
    let host = Host::open(None, &spec, 7).unwrap();
    host.spawn_driver();
    if let Some(proxmox) = spec.platform.proxmox_mut() {
        proxmox.trust = Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
    }
    let (spec, world) = (Arc::new(spec), host.world());
    let (client_id, client_secret) = host.credentials();
    let access = Access::to_infisical(Credentials { client_id, client_secret });
    let mut graph = castle_layers::build(&spec, &world, access);
    let collected = Arc::default();
    let needs = vec![
        engine::proof_id(),
        networking::pool_id(),
        storage::volume_id(),
        gitops::handover_id(),
        gitops::convergence_id(),
    ];
    let decl = StepDecl::new(StepId::new("test", "collect"), "collect", "gitops", "it is done")
        .needs(needs);
    graph.add(decl, Collect(Arc::clone(&collected)));
    let clock = world.clock.clone();
    let (_, report): (_, Report) = Whole {
        castle: &spec.name,
        graph: &graph,
        journals: &mut Journals::in_memory().unwrap(),
        deadlines: &spec.deadlines,
        now: Arc::new(move || clock.now()),
        face: &mut |_| {},
        run: RunId::new("run-1"),
        stop: Stop::default(),
    }
    .go(Direction::Up)
    .await
    .unwrap();
    assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
    let objects = collected.lock().unwrap();
    objects.clone()
}

/// A step behind all others that looks at what they made.
struct Collect(Arc<Mutex<BTreeMap<String, Object>>>);

#[async_trait]
impl Step for Collect {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        if let Ok(client) = cx.outputs().get(&CLUSTER) {
            for (api_version, kind) in KINDS {
                let found = ever(&client, &Place::everywhere(api_version, kind)).await?;
                let mut all = self.0.lock().unwrap();
                all.extend(found.into_iter().map(|object| (object.id().to_string(), bare(object))));
            }
        }
        Ok(Observed::right("collected"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("collected".to_owned())
    }
}

/// All objects of a place that there are or were: probes are removed when they have passed.
async fn ever(client: &Kubernetes, place: &Place) -> Result<Vec<Object>, Failure> {
    let mut found = client.list(&place.api_version, &place.kind, None, "").await?.items;
    let mut events = Box::pin(client.watch(place, "1").await?);
    while let Ok(Some(Ok(seen))) = timeout(Duration::from_secs(5), events.next()).await {
        found.extend(match seen {
            Seen::There(object) | Seen::Gone(object) => Some(object),
            Seen::Bookmark => None,
        });
    }
    Ok(found)
}

/// An object without what the server has put on it.
fn bare(object: Object) -> Object {
    let mut value = object.into_value();
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata
        .retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "labels" | "annotations"));
    Object::new(value).unwrap()
}
