//! Our client against Talos' own API front, and the same questions to others who claim to answer like it.

use std::fs;
use std::net::Ipv4Addr;

use castle_model::Secret;
use castle_reality::{Real, outside};
use castle_talos::{Bundle, Presence, Talos, TalosAccess, TalosError};
use castle_talos_proto::cosi::GetRequest;
use castle_talos_proto::cosi::state_client::StateClient;
use castle_talos_proto::machine::machine_service_client::MachineServiceClient;
use castle_wire::tls::client_config;
use castle_wire::{ClientIdentity, Connector, Verify, World};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use crate::datacenter::{Datacenter, machines};
use crate::setting::{apid, folder, secrets, somebody};

/// A cluster to be asked: two control planes and a worker, all configured from one bundle, and nobody at `nobody`.
struct Configured {
    world: World,
    first: Ipv4Addr,
    second: Ipv4Addr,
    worker: Ipv4Addr,
    nobody: Ipv4Addr,
    administrator: TalosAccess,
    reader: TalosAccess,
    /// An administrator of another cluster.
    foreigner: TalosAccess,
}

/// What whoever serves Talos' API must answer when it is configured.
const CONFIGURED: &[&str] = &[
    "administrator: Version: OK",
    "administrator: Get MachineStatus: OK",
    "reader: Version: OK",
    "reader: ServiceList: OK",
    "reader: Bootstrap: PermissionDenied: not authorized",
    "nobody: Version: the machine ends the handshake: CertificateRequired",
    "administrator of another cluster: the machine's certificate is not believed",
    "another cluster's certificate: Version: the machine does not believe our certificate",
    "who is there, for the administrator: ours",
    "who is there, for the other one: foreign",
    "node=first: Version: OK from 1",
    "node=second: Version: OK from 1",
    "node=nobody: Version: Unavailable",
    "node=first,second: Version: InvalidArgument: node metadata must be single-valued",
    "nodes=first,second: Version: OK from 2",
    "nodes=first: Get MachineStatus: InvalidArgument: one-2-many proxying is not supported for method /cosi.resource.State/Get",
    "worker: Version: OK",
    "worker, node=worker: Version: OK from 1",
    "worker, node=first: Version: PermissionDenied: no request forwarding",
    "worker, nodes=first,worker: Version: PermissionDenied: no request forwarding",
];

/// What it must answer in maintenance mode.
const MAINTENANCE: &[&str] = &[
    "anybody: Version: OK",
    "anybody: MachineStatus: maintenance, ready true",
    "anybody: Bootstrap: PermissionDenied: not authorized",
    "the certificate is the same at the next look: true",
    "node=somewhere: Version: OK from 1",
    "nodes=somewhere: Version: OK from 1",
    "administrator: the machine's certificate is not believed",
    "who is there, for an administrator: maintenance",
];

/// Asks a configured cluster everything.
async fn configured(at: &Configured) -> Vec<String> {
    let Configured { world, first, .. } = at;
    let mut told = Vec::new();
    let administrator = Talos::secure(world, *first, &at.administrator).await.unwrap();
    told.push(format!("administrator: Version: {}", words(administrator.version().await)));
    let status = administrator.machine_status().await;
    told.push(format!("administrator: Get MachineStatus: {}", words(status)));
    let reader = Talos::secure(world, *first, &at.reader).await.unwrap();
    told.push(format!("reader: Version: {}", words(reader.version().await)));
    told.push(format!("reader: ServiceList: {}", words(reader.services().await)));
    told.push(format!("reader: Bootstrap: {}", words(reader.bootstrap().await)));

    told.push(format!(
        "nobody: Version: {}",
        words(version(Talos::maintenance(world, *first).await).await)
    ));
    let other = Talos::secure(world, *first, &at.foreigner).await;
    told.push(format!("administrator of another cluster: {}", words(version(other).await)));
    // Believes the machine, but is not believed.
    let half =
        TalosAccess { authority: at.administrator.authority.clone(), ..at.foreigner.clone() };
    let other = Talos::secure(world, *first, &half).await;
    told.push(format!("another cluster's certificate: Version: {}", words(version(other).await)));
    told.push(format!(
        "who is there, for the administrator: {}",
        who(world, *first, &at.administrator).await
    ));
    told.push(format!(
        "who is there, for the other one: {}",
        who(world, *first, &at.foreigner).await
    ));
    told.extend(routed(at).await);
    told
}

/// Asks by way of other machines.
async fn routed(at: &Configured) -> Vec<String> {
    let name = |address: Ipv4Addr| match address {
        a if a == at.first => "first",
        a if a == at.second => "second",
        a if a == at.worker => "worker",
        _ => "nobody",
    };
    let names =
        |to: &[Ipv4Addr]| to.iter().map(|&address| name(address)).collect::<Vec<_>>().join(",");
    let mut told = Vec::new();
    let channel = channel(&at.world, at.first, Some(&at.administrator)).await;
    let ways: [(&'static str, &[Ipv4Addr]); 5] = [
        ("node", &[at.first]),
        ("node", &[at.second]),
        ("node", &[at.nobody]),
        ("node", &[at.first, at.second]),
        ("nodes", &[at.first, at.second]),
    ];
    for (key, to) in ways {
        told.push(format!(
            "{key}={}: Version: {}",
            names(to),
            routed_version(&channel, key, to).await
        ));
    }
    let request = GetRequest {
        namespace: "runtime".to_owned(),
        r#type: "MachineStatuses.runtime.talos.dev".to_owned(),
        id: "machine".to_owned(),
    };
    let reply = StateClient::new(channel).get(to(request, "nodes", &[at.first])).await;
    told.push(format!("nodes=first: Get MachineStatus: {}", status_words(reply.map(|_| 1))));

    let worker = Talos::secure(&at.world, at.worker, &at.administrator).await.unwrap();
    told.push(format!("worker: Version: {}", words(worker.version().await)));
    let channel = self::channel(&at.world, at.worker, Some(&at.administrator)).await;
    let ways: [(&'static str, &[Ipv4Addr]); 3] =
        [("node", &[at.worker]), ("node", &[at.first]), ("nodes", &[at.first, at.worker])];
    for (key, to) in ways {
        let answer = routed_version(&channel, key, to).await;
        told.push(format!("worker, {key}={}: Version: {answer}", names(to)));
    }
    told
}

/// Asks a machine in maintenance mode everything.
async fn maintenance(world: &World, address: Ipv4Addr, administrator: &TalosAccess) -> Vec<String> {
    let machine = Talos::maintenance(world, address).await.unwrap();
    let mut told = vec![format!("anybody: Version: {}", words(machine.version().await))];
    let status = machine.machine_status().await.unwrap();
    told.push(format!("anybody: MachineStatus: {}, ready {}", status.stage, status.status.ready));
    told.push(format!("anybody: Bootstrap: {}", words(machine.bootstrap().await)));
    let again = Talos::maintenance(world, address).await.unwrap();
    let same = machine.fingerprint().is_some() && machine.fingerprint() == again.fingerprint();
    told.push(format!("the certificate is the same at the next look: {same}"));
    let channel = channel(world, address, None).await;
    let somewhere = Ipv4Addr::new(127, 0, 99, 99);
    for key in ["node", "nodes"] {
        let answer = routed_version(&channel, key, &[somewhere]).await;
        told.push(format!("{key}=somewhere: Version: {answer}"));
    }
    let secure = Talos::secure(world, address, administrator).await;
    told.push(format!("administrator: {}", words(version(secure).await)));
    told.push(format!(
        "who is there, for an administrator: {}",
        who(world, address, administrator).await
    ));
    told
}

async fn version(connected: Result<Talos, TalosError>) -> Result<String, TalosError> {
    connected?.version().await
}

async fn who(world: &World, address: Ipv4Addr, access: &TalosAccess) -> &'static str {
    match Presence::look(world, address, Some(access)).await {
        Presence::Silent { .. } => "silent",
        Presence::Maintenance(_) => "maintenance",
        Presence::Ours(_) => "ours",
        Presence::Untimely { .. } => "untimely",
        Presence::Foreign { .. } => "foreign",
    }
}

/// An answer as our client understands it.
fn words<T>(answer: Result<T, TalosError>) -> String {
    use castle_wire::connector::{ConnectError, End};
    use rustls::AlertDescription::{DecryptError, UnknownCA};
    match answer {
        Ok(_) => "OK".to_owned(),
        // Authorities of two clusters bear the same name. Go finds none that signed the certificate; rustls finds one
        // whose key does not fit. Both refuse.
        Err(TalosError::Refused { ended: Some(End::Alert(UnknownCA | DecryptError)), .. }) => {
            "the machine does not believe our certificate".to_owned()
        }
        Err(TalosError::Refused { ended: Some(End::Alert(alert)), .. }) => {
            format!("the machine ends the handshake: {alert:?}")
        }
        Err(TalosError::Refused { code, text, .. }) => format!("{code:?}: {text}"),
        Err(TalosError::Connect { source: ConnectError::Tls { .. }, .. }) => {
            "the machine's certificate is not believed".to_owned()
        }
        Err(other) => format!("{other:?}"),
    }
}

/// A channel of our own make, because our client never asks one machine by way of another.
async fn channel(world: &World, address: Ipv4Addr, access: Option<&TalosAccess>) -> Channel {
    let verify = access.map_or_else(
        || Verify::RecordOnly(std::sync::Arc::default()),
        |access| Verify::Authority(access.authority.clone()),
    );
    let identity =
        access.map(|access| ClientIdentity::from_pem(&access.certificate, &access.key).unwrap());
    let config = client_config(&verify, identity, world.clock.clone(), &[b"h2"]).unwrap();
    let connector = Connector::new(world.dialer.clone(), config);
    let endpoint = Endpoint::from_shared(format!("https://{address}:50000")).unwrap();
    endpoint.connect_with_connector(connector).await.unwrap()
}

fn to<T>(message: T, key: &'static str, nodes: &[Ipv4Addr]) -> Request<T> {
    let mut request = Request::new(message);
    for node in nodes {
        request.metadata_mut().append(key, node.to_string().parse().unwrap());
    }
    request
}

async fn routed_version(channel: &Channel, key: &'static str, nodes: &[Ipv4Addr]) -> String {
    let reply = MachineServiceClient::new(channel.clone()).version(to((), key, nodes)).await;
    status_words(reply.map(|reply| reply.into_inner().messages.len()))
}

fn status_words(answer: Result<usize, Status>) -> String {
    match answer {
        Ok(count) => format!("OK from {count}"),
        // The words are those of whatever network is between the machines.
        Err(status) if status.code() == Code::Unavailable => "Unavailable".to_owned(),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn the_real_front_of_a_configured_machine() {
    let (Some(real), Some(oracle)) = (Real::find("realapid"), Real::find("talosoracle-1.13"))
    else {
        return;
    };
    let place = folder();
    let ours = secrets(&oracle, place.path(), "ours.yaml").await;
    let theirs = secrets(&oracle, place.path(), "theirs.yaml").await;
    let at = Configured {
        world: outside(),
        first: Ipv4Addr::new(127, 0, 7, 1),
        second: Ipv4Addr::new(127, 0, 7, 2),
        worker: Ipv4Addr::new(127, 0, 7, 3),
        nobody: Ipv4Addr::new(127, 0, 7, 4),
        administrator: somebody(&oracle, &ours, "os:admin").await,
        reader: somebody(&oracle, &ours, "os:reader").await,
        foreigner: somebody(&oracle, &theirs, "os:admin").await,
    };
    let _first = apid(&real, at.first, &ours, "mtls").await;
    let _second = apid(&real, at.second, &ours, "mtls").await;
    let _worker = apid(&real, at.worker, &ours, "worker").await;
    assert_eq!(configured(&at).await, CONFIGURED);
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn the_real_front_of_a_machine_in_maintenance_mode() {
    let (Some(real), Some(oracle)) = (Real::find("realapid"), Real::find("talosoracle-1.13"))
    else {
        return;
    };
    let place = folder();
    let blank = secrets(&oracle, place.path(), "blank.yaml").await;
    let ours = secrets(&oracle, place.path(), "ours.yaml").await;
    let administrator = somebody(&oracle, &ours, "os:admin").await;
    let address = Ipv4Addr::new(127, 0, 7, 5);
    let _machine = apid(&real, address, &blank, "maintenance").await;
    assert_eq!(maintenance(&outside(), address, &administrator).await, MAINTENANCE);
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn an_emulated_machine_in_maintenance_mode_answers_like_the_real_front() {
    let Some(oracle) = Real::find("talosoracle-1.13") else { return };
    let place = folder();
    let ours = secrets(&oracle, place.path(), "ours.yaml").await;
    let administrator = somebody(&oracle, &ours, "os:admin").await;
    let datacenter = Datacenter::open(machines(82, 1, 0)).await;
    let address = datacenter.spec.nodes[0].address;
    datacenter.listens(address).await;
    assert_eq!(maintenance(&datacenter.world(), address, &administrator).await, MAINTENANCE);
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn emulated_machines_answer_like_the_real_front() {
    let Some(oracle) = Real::find("talosoracle-1.13") else { return };
    let place = folder();
    let ours = secrets(&oracle, place.path(), "ours.yaml").await;
    let theirs = secrets(&oracle, place.path(), "theirs.yaml").await;
    let datacenter = Datacenter::open(machines(83, 3, 1)).await;
    let bundle = Bundle::from_yaml(&Secret::new(fs::read_to_string(&ours).unwrap())).unwrap();
    let administrator = somebody(&oracle, &ours, "os:admin").await;
    datacenter.configure(&bundle, &administrator).await;
    let nodes = &datacenter.spec.nodes;
    let at = Configured {
        world: datacenter.world(),
        first: nodes[0].address,
        second: nodes[1].address,
        worker: nodes[3].address,
        nobody: Ipv4Addr::new(127, 0, 83, 99),
        administrator,
        reader: somebody(&oracle, &ours, "os:reader").await,
        foreigner: somebody(&oracle, &theirs, "os:admin").await,
    };
    assert_eq!(configured(&at).await, CONFIGURED);
}
