//! One machine over the host's wires, as castle's own Talos client sees it.

use std::time::Duration;

use castle_model::Class;
use castle_talos::access::TalosAccess;
use castle_talos::resource::{MACHINE_STATUS, Told};
use castle_talos::{Bundle, Presence, Talos, TalosError, machine_config, without_secrets};
use tokio::io::AsyncReadExt;

use super::life::{boot, download, settle};
use super::*;
use crate::trouble::TalosTrouble;

const FIRST: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 211);

fn cluster(host: &Host) -> (Bundle, TalosAccess) {
    let world = host.world();
    let bundle = Bundle::generate(&*world.entropy, &*world.clock).unwrap();
    let access = TalosAccess::issue(&bundle, &*world.entropy, &*world.clock).unwrap();
    (bundle, access)
}

async fn look(host: &Host, access: &TalosAccess) -> &'static str {
    match Presence::look(&host.world(), FIRST, Some(access)).await {
        Presence::Silent { .. } => "silent",
        Presence::Maintenance(_) => "maintenance",
        Presence::Ours(_) => "ours",
        Presence::Untimely { .. } => "untimely",
        Presence::Foreign { .. } => "foreign",
    }
}

async fn configure(host: &Host, bundle: &Bundle) {
    let (world, spec) = (host.world(), spec(1, 0));
    let machine = Talos::maintenance(&world, FIRST).await.unwrap();
    let config =
        machine_config(&spec, &spec.nodes[0], bundle, "376567988ad37013", &without_secrets)
            .unwrap()
            .text;
    let applied = machine.apply(&config).await.unwrap();
    assert_eq!(applied.details, "Applied configuration without a reboot");
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_is_told_nobody_blank_ours_and_foreign_apart() {
    let host = memory(3);
    host.spawn_driver();
    let ((bundle, ours), (_, theirs)) = (cluster(&host), cluster(&host));
    assert_eq!(look(&host, &ours).await, "silent");
    download(&host).await;
    boot(&host, &spec(1, 0).nodes[0]).await;
    assert_eq!(look(&host, &ours).await, "maintenance");
    configure(&host, &bundle).await;
    settle().await;
    assert_eq!(look(&host, &ours).await, "ours");
    assert_eq!(look(&host, &theirs).await, "foreign");
}

#[tokio::test(start_paused = true)]
async fn a_blank_machine_lets_itself_be_read_and_configured_alone() {
    let host = memory(3);
    host.spawn_driver();
    download(&host).await;
    boot(&host, &spec(1, 0).nodes[0]).await;
    let machine = Talos::maintenance(&host.world(), FIRST).await.unwrap();
    assert_eq!(machine.version().await.unwrap(), "v1.13.9");
    assert_eq!(machine.machine_status().await.unwrap().stage, "maintenance");
    assert_eq!(machine.extensions().await.unwrap(), ["iscsi-tools", "schematic"]);
    assert_eq!(machine.addresses().await.unwrap(), ["192.168.1.211/24"]);
    assert!(machine.fingerprint().is_some());
    let refused = machine.bootstrap().await.unwrap_err();
    assert_eq!(refused.code(), Some(tonic::Code::PermissionDenied));
    assert_eq!(refused.failure("try").class, Class::Denied);
    let refused = machine.apply(&castle_model::Secret::new("machine: {nonsense: 1}")).await;
    assert_eq!(refused.unwrap_err().failure("try").class, Class::Invalid);
}

#[tokio::test(start_paused = true)]
async fn etcd_says_nothing_until_it_runs_and_a_watch_follows_the_stage() {
    let host = memory(3);
    host.spawn_driver();
    let (bundle, access) = cluster(&host);
    download(&host).await;
    boot(&host, &spec(1, 0).nodes[0]).await;
    configure(&host, &bundle).await;
    settle().await;
    let machine = Talos::secure(&host.world(), FIRST, &access).await.unwrap();
    let before = host.now();
    let silence = machine.etcd_members(Duration::from_secs(3)).await.unwrap_err();
    assert!(matches!(silence, TalosError::Deadline { .. }), "{silence}");
    assert_eq!(host.now() - before, 3000);
    let mut watch = machine.watch(MACHINE_STATUS, Some("machine")).await.unwrap();
    let Told::Says(first) = watch.told().await.unwrap().unwrap() else { panic!("gone") };
    assert_eq!(first.spec["stage"], "booting");
    machine.bootstrap().await.unwrap();
    let mut stages = Vec::new();
    while stages.last().is_none_or(|ready| !ready) {
        let Told::Says(seen) = watch.told().await.unwrap().unwrap() else { panic!("gone") };
        stages.push(seen.spec["status"]["ready"].as_bool().unwrap());
    }
    let members = machine.etcd_members(Duration::from_secs(3)).await.unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].hostname, "cp-01");
    assert!(machine.bootstrap().await.unwrap_err().is_already_there());
    assert_eq!(machine.etcd_status(Duration::from_secs(3)).await.unwrap().leader, members[0].id);
}

#[tokio::test(start_paused = true)]
async fn a_strangers_machine_is_foreign() {
    let host = memory(3);
    host.spawn_driver();
    let (_, ours) = cluster(&host);
    host.cause(TalosTrouble::Foreign(FIRST));
    assert_eq!(look(&host, &ours).await, "foreign");
    // It demands a certificate that nobody has, which shows with the first call.
    let stranger = Talos::maintenance(&host.world(), FIRST).await.unwrap();
    assert!(stranger.version().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_whose_answer_is_lost_has_happened() {
    let host = memory(3);
    host.spawn_driver();
    let (bundle, access) = cluster(&host);
    download(&host).await;
    boot(&host, &spec(1, 0).nodes[0]).await;
    configure(&host, &bundle).await;
    settle().await;
    host.cause(TalosTrouble::BootstrapReplyLost(421));
    let machine = Talos::secure(&host.world(), FIRST, &access).await.unwrap();
    let lost = machine.bootstrap().await.unwrap_err();
    assert_eq!(lost.failure("bootstrap").class, Class::Transient, "{lost}");
    let machine = Talos::secure(&host.world(), FIRST, &access).await.unwrap();
    let members = machine.etcd_members(Duration::from_mins(1)).await.unwrap();
    assert_eq!(members.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shared_address_that_is_mute_takes_connections_alone() {
    let host = memory(3);
    host.spawn_driver();
    let (bundle, access) = cluster(&host);
    download(&host).await;
    boot(&host, &spec(1, 0).nodes[0]).await;
    configure(&host, &bundle).await;
    settle().await;
    let machine = Talos::secure(&host.world(), FIRST, &access).await.unwrap();
    machine.bootstrap().await.unwrap();
    settle().await;
    host.cause(TalosTrouble::MuteVip(true));
    let mut stream = host.dialer().dial("192.168.1.210", 6443).await.unwrap();
    let (mut said, patience) = ([0; 1], Duration::from_mins(1));
    let silence = tokio::time::timeout(patience, stream.read(&mut said)).await;
    assert!(silence.is_err(), "it said something");
}
