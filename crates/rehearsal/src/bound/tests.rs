//! Bounds of worlds whose durations are known: the longest chain, to the millisecond.

use super::*;

fn draw(what: Process, subject: &str, begun_at: u64, ms: u64) -> Draw {
    Draw { number: 0, what, subject: subject.to_owned(), begun_at, ms, after: None }
}

/// The bound of the platform, whenever it was reached.
fn platform(draws: &[Draw], since: u64, names: &BTreeMap<String, String>) -> Critical {
    longest(draws, &Question { since, until: u64::MAX, names, goals: &[PLATFORM] })
}

#[test]
fn waiting_does_not_count_and_chains_do() {
    let draws = [
        draw(Process::ImageDownload, "talos.qcow2", 0, 5000),
        draw(Process::VmCreate, "421", 9000, 1000),
        draw(Process::VmCreate, "422", 9000, 2000),
        draw(Process::VmStart, "421", 20_000, 3000),
        draw(Process::VmStart, "422", 20_000, 1000),
        draw(Process::Boot, "421", 23_000, 1000),
        draw(Process::Boot, "422", 23_000, 1000),
    ];
    let found = platform(&draws, 0, &BTreeMap::new());
    assert_eq!(found.ms, 0, "nothing of what the platform is for was reached");
    let boot = |ms| draw(Process::ApiServer, "421", 30_000, ms);
    let own = draw(Process::ControlPlanePull, "421", 24_000, 10_000);
    let found = platform(&[&draws[..], &[own, boot(2000)]].concat(), 0, &BTreeMap::new());
    // No edge leads from the boot to the images here: 10 + 2.
    assert_eq!(found.ms, 12_000);
    let joins = [
        draw(Process::ListenerLingers, "421", 0, 1),
        draw(Process::ListenerSwap, "421", 0, 1),
        draw(Process::Runtime, "421", 0, 1),
        draw(Process::EtcdPull, "421", 0, 1),
        draw(Process::EtcdBootstrap, "421", 0, 1),
        draw(Process::Election, "1", 0, 1),
    ];
    let found = platform(&[&draws[..], &joins].concat(), 0, &BTreeMap::new());
    // 5 + 1 + 3 + 1, and six times a millisecond, however late each of them began.
    assert_eq!(found.ms, 10_006);
    let chain: Vec<&str> = found.chain.iter().map(|draw| draw.what.name()).collect();
    assert_eq!(chain[..4], ["image-download", "vm-create", "vm-start", "boot"]);
}

#[test]
fn etcd_begins_when_every_control_plane_has_answered() {
    let draws = [
        draw(Process::ListenerSwap, "421", 0, 1000),
        draw(Process::ListenerSwap, "422", 0, 7000),
        draw(Process::ListenerSwap, "431", 0, 9000),
        draw(Process::EtcdPull, "421", 0, 100),
        draw(Process::EtcdPull, "422", 0, 100),
        draw(Process::EtcdBootstrap, "421", 0, 2000),
        draw(Process::Election, "1", 0, 1000),
    ];
    assert_eq!(platform(&draws, 0, &BTreeMap::new()).ms, 10_000, "a worker is not waited for");
}

#[test]
fn learners_come_one_after_the_other_and_nodes_have_names() {
    let draws = [
        draw(Process::EtcdBootstrap, "421", 0, 4000),
        draw(Process::EtcdJoin, "422", 0, 1000),
        draw(Process::EtcdPromotion, "422", 0, 6000),
        draw(Process::EtcdJoin, "423", 0, 1000),
        draw(Process::EtcdPromotion, "423", 0, 6000),
    ];
    assert_eq!(platform(&draws, 0, &BTreeMap::new()).ms, 18_000);
    let ended = [
        draw(Process::NodeReady, "1", 0, 2000),
        draw(Process::ProxyStart, "1 kube-proxy", 0, 2500),
    ];
    assert_eq!(platform(&ended, 0, &BTreeMap::new()).ms, 2500, "Ready nodes are not enough");
    let names = BTreeMap::from([("cp-01".to_owned(), "421".to_owned())]);
    let draws = [
        draw(Process::Register, "421", 0, 1000),
        draw(Process::NodeNetwork, "cp-01", 0, 2000),
        draw(Process::NodeReady, "cp-01", 0, 3000),
    ];
    assert_eq!(platform(&draws, 0, &names).ms, 6000);
    assert_eq!(platform(&draws, 1, &names).ms, 0, "what was drawn before does not count");
}

#[test]
fn what_follows_by_itself_follows_what_it_began_by() {
    let mut draws = vec![
        draw(Process::ApiServer, "421", 0, 1000),
        draw(Process::NodeNetwork, "w-01", 0, 5000),
        draw(Process::Rollout, "longhorn-system/longhorn-manager", 9000, 100),
        draw(Process::LonghornManagerPull, "w-01 longhorn-system/longhorn-manager-x", 9100, 2000),
        draw(Process::LonghornManagerStart, "w-01 longhorn-system/longhorn-manager-x", 0, 300),
        draw(Process::InstanceManagerPull, "w-01", 0, 40),
        draw(Process::LonghornDisk, "w-01", 0, 5),
    ];
    for (index, draw) in draws.iter_mut().enumerate() {
        draw.number = index as u64;
        draw.after = (index > 2).then(|| index as u64 - 1);
    }
    let names = BTreeMap::new();
    let asked = |until| Question { since: 0, until, names: &names, goals: &[CLUSTER] };
    // The rollout waits for the API server alone, the pull for the node's network, too.
    assert_eq!(longest(&draws, &asked(u64::MAX)).ms, 5000 + 2000 + 300 + 40 + 5);
    assert_eq!(longest(&draws, &asked(4)).ms, 0, "nothing was reached by then");
    draws[1].ms = 10;
    assert_eq!(longest(&draws, &asked(u64::MAX)).ms, 1000 + 100 + 2000 + 300 + 40 + 5);
}

#[test]
fn the_way_down_is_as_long_as_its_slowest_machine_and_the_image_after_it() {
    let draws = [
        draw(Process::VmStop, "421", 0, 1000),
        draw(Process::VmStop, "422", 0, 1500),
        draw(Process::VmDestroy, "421", 1000, 1400),
        draw(Process::VmDestroy, "422", 1500, 800),
        draw(Process::VolumeDelete, "image", 2400, 200),
    ];
    let names = BTreeMap::new();
    let asked = Question { since: 0, until: u64::MAX, names: &names, goals: &[GONE] };
    assert_eq!(longest(&draws, &asked).ms, 1000 + 1400 + 200);
}

#[test]
fn keys_come_before_the_first_vm_goes_and_are_kept_until_the_last_has() {
    let mut draws = vec![
        draw(Process::AnswerFar, far::KEYS, 0, 300),
        draw(Process::VmStop, "421", 300, 1000),
        draw(Process::VmDestroy, "421", 1300, 1000),
        draw(Process::VolumeDelete, "image", 2300, 200),
        draw(Process::AnswerFar, "secrets/remove", 2300, 100),
        draw(Process::AnswerFar, far::GONE, 2400, 50),
    ];
    for (number, draw) in draws.iter_mut().enumerate() {
        draw.number = number as u64;
    }
    draws[5].after = Some(4);
    let names = BTreeMap::new();
    let asked = Question { since: 0, until: u64::MAX, names: &names, goals: &[GONE] };
    assert_eq!(longest(&draws, &asked).ms, 300 + 1000 + 1000 + 200, "the image is the longer way");
    draws[5].ms = 150;
    assert_eq!(longest(&draws, &asked).ms, 300 + 1000 + 1000 + 100 + 150);
}

#[test]
fn a_name_tells_which_of_many_is_meant() {
    let draws = [
        draw(Process::Webhook, "longhorn-system/longhorn-admission-webhook", 0, 1000),
        draw(Process::Webhook, "external-secrets/external-secrets-webhook", 0, 3000),
        draw(
            Process::ExternalSecretsStart,
            "w external-secrets/external-secrets-webhook-a-b",
            0,
            2000,
        ),
        draw(Process::ExternalSecretsStart, "w external-secrets/external-secrets-a-b", 0, 4000),
        draw(Process::StoreCheck, "infisical", 0, 500),
        draw(Process::SecretSync, "external-secrets/castle-probe", 0, 2000),
        draw(Process::SecretSync, "flux-system/flux-system", 0, 4000),
        draw(Process::GitFetch, "flux-system/flux-system", 0, 100),
        draw(Process::NodeReady, "1", 0, 9000),
        draw(Process::FluxLevel, "flux-system/apps", 0, 50),
        draw(Process::FluxLevel, "flux-system/flux-system", 0, 10),
    ];
    let names = BTreeMap::new();
    let asked = |goals| Question { since: 0, until: u64::MAX, names: &names, goals };
    // The controller's own pod is waited for, not the one whose name begins alike.
    assert_eq!(longest(&draws[..8], &asked(&[CLUSTER])).ms, 4000 + 500 + 4000 + 100);
    // Without every node nothing is handed over, and the root alone is the handover.
    assert_eq!(longest(&draws, &asked(&[HANDOVER])).ms, 9000 + 10);
    assert_eq!(longest(&draws, &asked(&[CLUSTER])).ms, 9000 + 50);
}
