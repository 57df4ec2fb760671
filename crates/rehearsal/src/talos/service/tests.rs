//! The services of an emulated machine against the record of a real one, method by method.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use castle_model::time::Moment;
use castle_talos_proto::common::Metadata;
use castle_talos_proto::machine::{BootstrapResponse, VersionResponse};
use http::Request;
use prost::Message;
use tonic::Code;

use super::frame::{Frames, Next};
use super::methods::{EMULATED, Method, Mode};
use super::*;
use crate::talos::tests::Bench;
use crate::testing::spec;

/// A way into machines whose time stands still.
struct Still(Mutex<Bench>);

impl Door for Still {
    fn call(&self, vmid: u32, call: Call) -> Result<Reply, Refusal> {
        self.0.lock().unwrap().call(vmid, call)
    }

    fn time_of_day(&self, at: u64) -> Moment {
        Moment(at)
    }

    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

fn admin() -> Peer {
    peer("os:admin")
}

fn peer(organization: &str) -> Peer {
    Peer { common_name: String::new(), organizations: vec![organization.to_owned()] }
}

/// A machine in maintenance mode, or configured and not bootstrapped.
fn machine(mode: Mode) -> (Arc<Still>, Listen) {
    let spec = spec(1, 1);
    let mut bench = Bench::new(3);
    bench.start(&spec);
    let vmid = 421;
    match mode {
        Mode::Maintenance => bench.until_maintenance(&spec, vmid),
        Mode::Configured => {
            bench.configure(&spec, vmid);
            bench.configure(&spec, 431);
            bench.settle();
        }
    }
    let listen = match mode {
        Mode::Maintenance => Listen::Maintenance { vmid },
        Mode::Configured => Listen::Secure { vmid },
    };
    (Arc::new(Still(Mutex::new(bench))), listen)
}

async fn ask(
    door: &Arc<Still>,
    (vmid, listen, peer): (u32, Listen, Option<Peer>),
    path: &str,
    nodes: &[(&str, &str)],
) -> Frames {
    let mut request = Request::new(Body::from(Bytes::from_static(&[0, 0, 0, 0, 0])));
    *request.uri_mut() = path.parse().unwrap();
    *request.method_mut() = http::Method::POST;
    let kind = http::HeaderValue::from_static("application/grpc");
    request.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    for (name, value) in nodes {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    Frames::of(answer(door.clone(), vmid, listen, peer, request).await)
}

/// How an answer begins: code and words of a refusal, or OK. Nothing for three seconds is a deadline.
async fn outcome(frames: impl Future<Output = Frames>) -> (Code, String) {
    let first = async { frames.await.next().await };
    match tokio::time::timeout(Duration::from_secs(3), first).await {
        Err(_) => (Code::DeadlineExceeded, "context deadline exceeded".to_owned()),
        Ok(Next::Message(_)) => (Code::Ok, String::new()),
        Ok(Next::End(status)) => (status.code(), status.message().to_owned()),
    }
}

#[tokio::test(start_paused = true)]
async fn every_method_answers_as_a_real_machine_did() {
    let mut compared = 0;
    for mode in [Mode::Maintenance, Mode::Configured] {
        for method in Method::all() {
            let Some((code, words)) = method.recorded(mode) else { continue };
            // A call may change the machine, so each one gets its own.
            let (door, listen) = machine(mode);
            let who = (421, listen, (mode == Mode::Configured).then(admin));
            let got = outcome(ask(&door, who, method.path, &[])).await;
            if code == Code::Ok && !method.is_emulated() {
                assert_eq!(got.0, Code::Unimplemented, "{}", method.path);
                continue;
            }
            if method.path.ends_with("/Events") {
                // No past is told, and nothing happens here.
                assert_eq!(got.0, Code::DeadlineExceeded);
                continue;
            }
            assert_eq!(got, (code, words.to_owned()), "{} {mode:?}", method.path);
            compared += usize::from(method.is_emulated());
        }
    }
    assert!(compared >= 24, "{compared}");
    for path in EMULATED {
        assert!(Method::find(path).is_some(), "{path} is not in the record");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_services_and_methods_are_not_implemented() {
    for mode in [Mode::Maintenance, Mode::Configured] {
        let (door, listen) = machine(mode);
        let ask = |path: &'static str| outcome(ask(&door, (421, listen, Some(admin())), path, &[]));
        let refusal = |text: &str| (Code::Unimplemented, text.to_owned());
        assert_eq!(
            ask("/grpc.health.v1.Health/Check").await,
            refusal("unknown service grpc.health.v1.Health")
        );
        assert_eq!(
            ask("/machine.MachineService/Dance").await,
            refusal("unknown method Dance for service machine.MachineService")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_without_a_config_denies() {
    let (door, listen) = machine(Mode::Maintenance);
    for name in ["Bootstrap", "Reboot", "Reset", "Shutdown", "Kubeconfig", "EtcdLeaveCluster"] {
        let path = format!("/machine.MachineService/{name}");
        let got = outcome(ask(&door, (421, listen, None), &path, &[])).await;
        assert_eq!(got, (Code::PermissionDenied, "not authorized".to_owned()), "{name}");
    }
    let path = "/machine.MachineService/ApplyConfiguration";
    let got = outcome(ask(&door, (421, listen, None), path, &[])).await;
    assert_eq!(got, (Code::InvalidArgument, "config not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn roles_come_from_the_certificate() {
    let (door, listen) = machine(Mode::Configured);
    let codes = async |role: &str| {
        let mut codes = Vec::new();
        for name in ["Version", "Reboot", "Bootstrap"] {
            let path = format!("/machine.MachineService/{name}");
            let (door, _) = machine(Mode::Configured);
            codes.push(outcome(ask(&door, (421, listen, Some(peer(role))), &path, &[])).await.0);
        }
        codes
    };
    let (ok, no) = (Code::Ok, Code::PermissionDenied);
    assert_eq!(codes("os:admin").await, [ok, ok, ok]);
    assert_eq!(codes("os:operator").await, [ok, ok, no]);
    assert_eq!(codes("os:reader").await, [ok, no, no]);
    assert_eq!(codes("os:etcd:backup").await, [no, no, no]);
    assert_eq!(codes("system:masters").await, [no, no, no]);
    // A reader may not configure a machine that has a config.
    let path = "/machine.MachineService/ApplyConfiguration";
    let got = outcome(ask(&door, (421, listen, Some(peer("os:reader"))), path, &[])).await;
    assert_eq!(got.0, Code::PermissionDenied);
}

#[tokio::test(start_paused = true)]
async fn a_director_sends_on_by_its_metadata() {
    let (door, listen) = machine(Mode::Configured);
    let who = (421, listen, Some(admin()));
    let version = "/machine.MachineService/Version";
    let (first, worker, nobody) = ("192.168.1.211", "192.168.1.214", "192.168.1.99");
    let told = async |who: &(u32, Listen, Option<Peer>), path: &str, nodes: &[(&str, &str)]| {
        let mut frames = ask(&door, who.clone(), path, nodes).await;
        match frames.next().await {
            Next::Message(message) => message,
            Next::End(status) => panic!("{status}"),
        }
    };
    let many = [("nodes", first), ("nodes", worker), ("nodes", nobody)];
    let reply = VersionResponse::decode(told(&who, version, &many).await).unwrap();
    let from = |metadata: &Option<Metadata>| metadata.clone().unwrap();
    let heard: Vec<_> = reply.messages.iter().map(|m| from(&m.metadata)).collect();
    assert_eq!(
        heard.iter().map(|m| m.hostname.as_str()).collect::<Vec<_>>(),
        [first, worker, nobody]
    );
    assert_eq!(reply.messages[1].version.as_ref().unwrap().tag, "v1.13.9");
    assert_eq!(
        heard[2].error,
        "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp 192.168.1.99:50000: connect: no route to host\""
    );
    // An error of the one asked machine stands in the message, as talosctl expects it.
    let reply = told(&who, "/machine.MachineService/Bootstrap", &[("nodes", worker)]).await;
    let reply = BootstrapResponse::decode(reply).unwrap();
    let status = from(&reply.messages[0].metadata).status.unwrap();
    assert_eq!(Code::from_i32(status.code), Code::Unimplemented);

    let code = async |who: &(u32, Listen, Option<Peer>), path: &str, nodes: &[(&str, &str)]| {
        outcome(ask(&door, who.clone(), path, nodes)).await
    };
    assert_eq!(code(&who, version, &[("node", worker)]).await.0, Code::Ok);
    assert_eq!(code(&who, version, &[("node", "worker-01")]).await.0, Code::Ok);
    assert_eq!(code(&who, version, &[("node", nobody)]).await.0, Code::Unavailable);
    assert_eq!(
        code(&who, version, &[("node", first), ("node", worker)]).await.0,
        Code::InvalidArgument
    );
    assert_eq!(
        code(&who, "/cosi.resource.State/Get", &[("nodes", first)]).await,
        (
            Code::InvalidArgument,
            "one-2-many proxying is not supported for method /cosi.resource.State/Get".to_owned()
        )
    );
    // A worker has no certificate to call others with.
    let worker_caller = (431, Listen::Secure { vmid: 431 }, Some(admin()));
    let forwarding = (Code::PermissionDenied, "no request forwarding".to_owned());
    assert_eq!(code(&worker_caller, version, &[("node", first)]).await, forwarding);
    assert_eq!(code(&worker_caller, version, &[("nodes", first)]).await, forwarding);
    assert_eq!(code(&worker_caller, version, &[("node", worker)]).await.0, Code::Ok);
    assert_eq!(code(&worker_caller, version, &[("nodes", worker)]).await.0, Code::Ok);
    // Without a config nothing is sent on, and the metadata are not even looked at.
    let (blank, listen) = machine(Mode::Maintenance);
    let got = outcome(ask(&blank, (421, listen, None), version, &[("nodes", nobody)])).await;
    assert_eq!(got.0, Code::Ok);
}
