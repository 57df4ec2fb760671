//! Troubles of machines: each shows itself as it would in reality.

use super::*;

fn suffer(bench: &mut Bench, trouble: &TalosTrouble) {
    bench.turn(|talos, turn| talos.suffer(turn, trouble));
}

fn configured(seed: u64, trouble: &TalosTrouble) -> (Bench, Spec) {
    let spec = spec(1, 0);
    let mut bench = Bench::new(seed);
    suffer(&mut bench, trouble);
    bench.start(&spec);
    bench.configure(&spec, 421);
    bench.settle();
    (bench, spec)
}

fn unmet(bench: &Bench) -> Vec<String> {
    let status = &bench.talos.machines[&421].noted.status;
    let unmet = status["status"]["unmetConditions"].as_array().unwrap().iter();
    unmet
        .map(|u| format!("{}: {}", u["name"].as_str().unwrap(), u["reason"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_dead_machine_never_answers() {
    let spec = spec(1, 0);
    let mut bench = Bench::new(1);
    suffer(&mut bench, &TalosTrouble::Dead(421));
    bench.start(&spec);
    bench.settle();
    assert_eq!(bench.talos.listen(node(&spec, 421).address, 50_000), None);
}

#[test]
fn a_machine_that_reboots_by_itself_comes_back() {
    let (mut bench, _) = Bench::risen(1, 1, 0);
    suffer(&mut bench, &TalosTrouble::Reboots(421));
    assert!(!bench.talos.machines[&421].up);
    bench.settle();
    assert_eq!(unmet(&bench), [""; 0]);
}

#[test]
fn a_wrong_address_holds_until_the_config() {
    let spec = spec(1, 0);
    let wrong = Ipv4Addr::new(192, 168, 1, 77);
    let mut bench = Bench::new(1);
    suffer(&mut bench, &TalosTrouble::WrongAddress(421, wrong));
    bench.start(&spec);
    bench.settle();
    assert_eq!(bench.talos.listen(node(&spec, 421).address, 50_000), None);
    assert_eq!(bench.talos.listen(wrong, 50_000), Some(Listen::Maintenance { vmid: 421 }));
}

#[test]
fn a_clock_astray_holds_etcd_the_kubelet_and_trust() {
    let (mut bench, _) = configured(1, &TalosTrouble::ClockAstray(421, true));
    let refusal = Refusal::new(Code::FailedPrecondition, "time is not in sync yet");
    assert_eq!(bench.call(421, Call::Bootstrap), Err(refusal));
    assert_eq!(
        unmet(&bench),
        [
            "time: time is not synced",
            "services: kubelet not running, etcd not running, trustd not running",
            "nodeReady: node \"cp-01\" status is not available yet"
        ]
    );
    suffer(&mut bench, &TalosTrouble::ClockAstray(421, false));
    bench.settle();
    assert_eq!(bench.call(421, Call::Bootstrap), Ok(Reply::Done));
    bench.settle();
    assert_eq!(unmet(&bench), [""; 0]);
}

#[test]
fn data_of_an_earlier_etcd_keep_it_preparing_for_ever() {
    let (mut bench, _) = configured(1, &TalosTrouble::StaleEtcd(421));
    let refusal = Refusal::new(Code::AlreadyExists, "etcd data directory is not empty");
    assert_eq!(bench.call(421, Call::Bootstrap), Err(refusal));
    assert_eq!(bench.call(421, Call::EtcdMembers), Err(Refusal::Waits));
    assert_eq!(bench.talos.machines[&421].noted.services["etcd"].state, "Preparing");
}

#[test]
fn a_lost_answer_breaks_the_connection_after_the_deed() {
    let (mut bench, _) = configured(1, &TalosTrouble::BootstrapReplyLost(421));
    let before = bench.talos.machines[&421].generation;
    bench.call(421, Call::Bootstrap).unwrap();
    assert!(bench.talos.machines[&421].generation > before, "all connections break");
    bench.settle();
    assert_eq!(bench.members(421), [("cp-01".to_owned(), false)]);
}

#[test]
fn a_kubelet_without_an_image_gives_up() {
    let (bench, _) = configured(1, &TalosTrouble::PullsLimited(421));
    let kubelet = &bench.talos.machines[&421].noted.services["kubelet"];
    assert_eq!(kubelet.state, "Failed");
    let (_, _, words) = kubelet.events.last().unwrap();
    assert!(words.contains("429 Too Many Requests"), "{words}");
    assert!(unmet(&bench)[0].starts_with("services: kubelet not running"));
}

#[test]
fn a_shared_address_may_be_mute_and_an_address_somebody_elses() {
    let (mut bench, _) = Bench::risen(1, 1, 0);
    suffer(&mut bench, &TalosTrouble::MuteVip(true));
    assert_eq!(vip(&bench), Some(Listen::Mute { vmid: 421 }));
    suffer(&mut bench, &TalosTrouble::MuteVip(false));
    assert_eq!(vip(&bench), Some(Listen::KubeApi { vmid: 421 }));
    let address = Ipv4Addr::new(192, 168, 1, 212);
    suffer(&mut bench, &TalosTrouble::Foreign(address));
    let listen = bench.talos.listen(address, 50_000);
    assert!(matches!(listen, Some(Listen::Foreign { .. })), "{listen:?}");
}

#[test]
fn a_disk_that_takes_no_config_leaves_the_machine_in_maintenance_mode() {
    let (mut bench, spec) = configured(1, &TalosTrouble::Unwritable(421, true));
    let address = node(&spec, 421).address;
    assert_eq!(bench.talos.listen(address, 50_000), Some(Listen::Maintenance { vmid: 421 }));
    suffer(&mut bench, &TalosTrouble::Unwritable(421, false));
    bench.configure(&spec, 421);
    bench.settle();
    assert_eq!(bench.talos.listen(address, 50_000), Some(Listen::Secure { vmid: 421 }));
}

#[test]
fn a_dead_machine_that_is_mended_boots_with_what_its_disk_remembers() {
    let (mut bench, _) = Bench::risen(1, 1, 0);
    suffer(&mut bench, &TalosTrouble::Dead(421));
    bench.settle();
    assert!(!bench.talos.machines[&421].up);
    suffer(&mut bench, &TalosTrouble::Revived(421));
    bench.settle();
    assert_eq!(unmet(&bench), [""; 0]);
}

#[test]
fn a_machine_that_is_only_switched_off_has_no_power_when_it_is_mended() {
    let (mut bench, _) = Bench::risen(1, 1, 0);
    bench.heard(&Signal::VmStopped { vmid: 421 });
    suffer(&mut bench, &TalosTrouble::Revived(421));
    bench.settle();
    assert!(!bench.talos.machines[&421].up);
}

#[test]
fn a_ghost_is_known_for_half_an_hour_beside_the_machine_itself() {
    let spec = spec(1, 0);
    let mut bench = Bench::new(1);
    suffer(&mut bench, &TalosTrouble::Ghost(421, Ipv4Addr::new(192, 168, 1, 77)));
    bench.start(&spec);
    bench.configure(&spec, 421);
    let cluster = bench.talos.machines[&421].cluster().unwrap().to_owned();
    while bench.talos.affiliates(&cluster).is_empty() {
        assert!(bench.step(), "the machine never told of itself");
    }
    assert_eq!(bench.talos.affiliates(&cluster).len(), 2);
    assert_eq!(bench.talos.dead_ends(&cluster), 1);
    bench.settle();
    assert_eq!(bench.talos.affiliates(&cluster).len(), 1, "it is forgotten");
    assert_eq!(bench.talos.dead_ends(&cluster), 0);
}
