//! Machines go down when asked: by reboot, shutdown and reset, with and without a goodbye.

use super::*;

fn reset(partitions: &[&str], graceful: bool) -> Call {
    Call::Reset(ResetCall {
        graceful,
        reboot: true,
        partitions: partitions.iter().map(|&label| label.to_owned()).collect(),
        system_disk: true,
        user_disks: Vec::new(),
    })
}

fn stage(bench: &Bench, vmid: u32) -> (String, bool) {
    let status = &bench.talos.machines[&vmid].noted.status;
    let stage = status["stage"].as_str().unwrap_or_default().to_owned();
    (stage, status["status"]["ready"] == true)
}

fn up(bench: &mut Bench, vmid: u32, api: Api) {
    bench.until("its API", |talos| {
        talos.machines[&vmid].api == api && talos.machines[&vmid].ending.is_none()
    });
}

#[test]
fn a_reboot_shows_itself_and_ends_at_the_secure_api() {
    let (mut bench, spec) = Bench::risen(7, 3, 0);
    let Ok(Reply::Begun(actor)) = bench.call(422, Call::Reboot) else { panic!("it refused") };
    assert_eq!(actor.len(), 36);
    assert_eq!(stage(&bench, 422), ("rebooting".to_owned(), true));
    let again = bench.call(422, apply(ConfigText(config(&spec, 422)), ApplyMode::Auto, false));
    let Err(Refusal::Status(Code::FailedPrecondition, text)) = again else { panic!("{again:?}") };
    assert!(text.starts_with("configuration was already applied and node is rebooting"), "{text}");
    bench.until("deafness", |talos| talos.machines[&422].deaf());
    let deaf = bench.call(422, Call::About);
    let Err(Refusal::Status(Code::Unavailable, text)) = deaf else { panic!("{deaf:?}") };
    assert!(text.contains("machine.sock: connect: no such file or directory"), "{text}");
    bench.until("silence", |talos| !talos.machines[&422].up);
    let address = node(&spec, 422).address;
    while bench.talos.machines[&422].api == Api::Down {
        assert!(bench.step());
        assert_ne!(bench.talos.listen(address, 50_000), Some(Listen::Maintenance { vmid: 422 }));
    }
    bench.settle();
    assert_eq!(stage(&bench, 422), ("running".to_owned(), true));
    assert_eq!(bench.members(422).len(), 3);
}

#[test]
fn a_kubelet_that_is_restarted_registers_its_node_again() {
    let (mut bench, _) = Bench::risen(7, 1, 1);
    let worker = bench.talos.machines[&431].hostname().to_owned();
    let restart = |id: &str| Call::ServiceRestart { id: id.to_owned() };
    assert_eq!(bench.call(431, restart("kubelet")), Ok(Reply::Done));
    assert!(!bench.talos.machines[&431].running.kubelet);
    let before = bench.signals.len();
    bench.settle();
    assert!(bench.talos.machines[&431].running.kubelet);
    let joins =
        |signal: &&Signal| matches!(signal, Signal::NodeJoined { name, .. } if *name == worker);
    assert_eq!(bench.signals[before..].iter().filter(joins).count(), 1);
    let unknown = bench.call(431, restart("nonsense"));
    assert_eq!(
        unknown,
        Err(Refusal::Status(Code::Unknown, "service \"nonsense\" not defined".into()))
    );
    let other = bench.call(421, restart("etcd"));
    assert!(matches!(other, Err(Refusal::Status(Code::Unimplemented, _))), "{other:?}");
}

#[test]
fn a_holder_that_goes_in_good_order_hands_the_shared_address_on_at_once() {
    let (mut bench, _) = Bench::risen(9, 3, 0);
    let Some(Listen::KubeApi { vmid: holder }) = vip(&bench) else { panic!("no holder") };
    bench.call(holder, Call::Reboot).unwrap();
    bench.until("its goodbye", |talos| !talos.machines[&holder].running.etcd);
    let at = bench.now;
    bench.until("a new holder", |talos| talos.etcds.values().any(|etcd| etcd.holder.is_some()));
    assert!(bench.now - at < 1000, "{}", bench.now - at);
    let Some(Listen::KubeApi { vmid: next }) = vip(&bench) else { panic!("no new holder") };
    assert_ne!(next, holder);
}

#[test]
fn a_reset_of_its_partitions_leads_back_to_maintenance() {
    let (mut bench, _) = Bench::risen(5, 3, 1);
    let identity = bench.talos.machines[&423].disk.identity.clone();
    let known = |bench: &Bench| bench.talos.affiliates(&bundle().cluster_id).len();
    assert_eq!(known(&bench), 4);
    bench.call(423, reset(&["STATE", "EPHEMERAL"], true)).unwrap();
    assert_eq!(stage(&bench, 423), ("resetting".to_owned(), true));
    up(&mut bench, 423, Api::Maintenance);
    assert_eq!(stage(&bench, 423), ("maintenance".to_owned(), true));
    assert_eq!(known(&bench), 3, "it took back what it said of itself");
    assert_eq!(bench.members(421).len(), 2, "it left etcd");
    // Configured again it joins as somebody new.
    let spec = spec(3, 1);
    bench.configure(&spec, 423);
    bench.settle();
    assert_eq!(bench.members(421).len(), 3);
    assert_ne!(bench.talos.machines[&423].disk.identity, identity);
}

#[test]
fn without_a_goodbye_a_member_stays_and_the_last_one_can_not_leave() {
    let (mut bench, _) = Bench::risen(5, 3, 0);
    bench.call(423, reset(&["STATE", "EPHEMERAL"], false)).unwrap();
    up(&mut bench, 423, Api::Maintenance);
    assert_eq!(bench.members(421).len(), 3, "a dead member is still one");

    let (mut bench, _) = Bench::risen(5, 1, 0);
    bench.call(421, reset(&["STATE", "EPHEMERAL"], true)).unwrap();
    bench.settle();
    assert_eq!(stage(&bench, 421), ("running".to_owned(), true), "nothing was wiped");
    let happened = &bench.talos.machines[&421].noted.happenings;
    let failed = happened.iter().any(|h| matches!(&h.what, What::Sequence { error: Some(_), .. }));
    assert!(failed, "{happened:?}");
    bench.call(421, reset(&["STATE", "EPHEMERAL"], false)).unwrap();
    up(&mut bench, 421, Api::Maintenance);
    assert!(bench.talos.etcds.is_empty());
    assert!(bench.signals.iter().any(|signal| matches!(signal, Signal::ClusterLost { .. })));
}

#[test]
fn a_wiped_disk_does_not_boot_and_a_partition_that_is_not_there_is_not_wiped() {
    let (mut bench, spec) = Bench::risen(5, 1, 0);
    let refused = bench.call(421, reset(&["ETCD"], false));
    let Err(Refusal::Status(Code::Unknown, text)) = refused else { panic!("{refused:?}") };
    assert!(text.starts_with("failed to get volume status with label \"ETCD\""), "{text}");
    bench.call(421, reset(&[], false)).unwrap();
    bench.until("silence", |talos| !talos.machines[&421].up);
    bench.settle();
    assert_eq!(bench.talos.listen(node(&spec, 421).address, 50_000), None);
    bench.heard(&Signal::VmStopped { vmid: 421 });
    bench.heard(&Signal::VmStarted(facts(&spec, 421, "disk-1")));
    bench.settle();
    assert_eq!(bench.talos.listen(node(&spec, 421).address, 50_000), None, "still nothing to boot");
}

#[test]
fn a_machine_that_switches_itself_off_tells_its_host() {
    let (mut bench, _) = Bench::risen(5, 1, 1);
    bench.call(431, Call::Shutdown).unwrap();
    assert_eq!(stage(&bench, 431), ("shutting-down".to_owned(), true));
    bench.until("its end", |talos| !talos.machines[&431].on);
    assert!(bench.signals.contains(&Signal::MachineHalted { vmid: 431 }));
}

#[test]
fn modes_of_apply_differ_in_when_they_hold() {
    let (mut bench, spec) = Bench::risen(5, 1, 0);
    let changed = config(&spec, 421)
        .replace("disableManifestsDirectory: true", "disableManifestsDirectory: false");
    let lasting = format!("{}\n", config(&spec, 421)).replacen(
        "  type: controlplane",
        "  type: controlplane\n  udev: {}",
        1,
    );
    let say = |bench: &mut Bench, text: &str, mode| {
        bench.call(421, apply(ConfigText(text.to_owned()), mode, false))
    };
    let text = |bench: &Bench| bench.talos.machines[&421].config().unwrap().text.0.clone();
    let Ok(Reply::Applied { mode, .. }) = say(&mut bench, &changed, ApplyMode::Auto) else {
        panic!("it refused");
    };
    assert_eq!((mode, text(&bench)), (ApplyMode::NoReboot, changed.clone()));
    assert!(lasting.contains("udev"), "{lasting}");
    let refused = say(&mut bench, &lasting, ApplyMode::NoReboot);
    let Err(Refusal::Status(Code::InvalidArgument, why)) = refused else { panic!("{refused:?}") };
    assert!(
        why.starts_with("this config change can't be applied in immediate mode\ndiff:\n"),
        "{why}"
    );
    say(&mut bench, &lasting, ApplyMode::Staged).unwrap();
    assert_eq!(text(&bench), changed, "it holds from the next boot on");
    let Ok(Reply::Applied { mode, details }) = say(&mut bench, &lasting, ApplyMode::Auto) else {
        panic!("it refused");
    };
    assert_eq!(mode, ApplyMode::Reboot);
    assert!(details.starts_with("Applied configuration with a reboot: this config"), "{details}");
    bench.settle();
    assert_eq!(text(&bench), lasting);
    assert_eq!(stage(&bench, 421), ("running".to_owned(), true));
    // What is tried is gone with the next boot.
    let Ok(Reply::Applied { details, .. }) =
        say(&mut bench, &lasting.replace("udev: {}", "udev: {} "), ApplyMode::Try)
    else {
        panic!("it refused");
    };
    assert!(details.ends_with("will be automatically reverted back in 1m0s"), "{details}");
    bench.call(421, Call::Reboot).unwrap();
    bench.settle();
    assert_eq!(text(&bench), lasting);
}

#[test]
fn members_are_removed_left_and_led() {
    let (mut bench, _) = Bench::risen(5, 3, 0);
    let status = |bench: &mut Bench, vmid| match bench.call(vmid, Call::EtcdStatus) {
        Ok(Reply::Status { member, leader, .. }) => (member, leader),
        other => panic!("{other:?}"),
    };
    let (first, leader) = status(&mut bench, 421);
    assert_eq!(first, leader, "whoever was first leads");
    assert_eq!(bench.call(421, Call::EtcdForfeit), Ok(Reply::Name("cp-02".to_owned())));
    let (second, leader) = status(&mut bench, 422);
    assert_eq!(second, leader);
    let missing =
        Refusal::new(Code::NotFound, "failed to remove member 4660: etcdserver: member not found");
    assert_eq!(bench.call(421, Call::EtcdRemove { member: 4660 }), Err(missing));
    bench.call(421, Call::EtcdRemove { member: second }).unwrap();
    bench.settle();
    assert_eq!(bench.members(421).len(), 2);
    assert_eq!(bench.call(422, Call::EtcdMembers), Err(Refusal::Waits), "it was put out");
    bench.call(423, Call::EtcdLeave).unwrap();
    bench.settle();
    assert_eq!(bench.members(421).len(), 1);
    assert_eq!(bench.talos.machines[&423].noted.services["etcd"].state, "Finished");
    let alone = bench.call(421, Call::EtcdForfeit);
    assert!(matches!(alone, Err(Refusal::Status(Code::Unknown, _))), "{alone:?}");
}

#[test]
fn affiliates_outlive_their_machines_by_half_an_hour() {
    let (mut bench, spec) = Bench::risen(5, 1, 1);
    let known = |bench: &Bench| bench.talos.affiliates(&bundle().cluster_id).len();
    let members = |bench: &Bench| bench.talos.cluster_members(&bundle().cluster_id);
    bench.heard(&Signal::VmDestroyed { vmid: 431 });
    let at = bench.now;
    bench.heard(&Signal::VmStarted(facts(&spec, 431, "disk-2")));
    bench.configure(&spec, 431);
    bench.until("the new one's word", |talos| talos.affiliates(&bundle().cluster_id).len() == 3);
    let shown = members(&bench);
    assert_eq!(shown.len(), 2, "the same name is shown once");
    let identity = bench.talos.machines[&431].disk.identity.clone().unwrap();
    assert_eq!(shown[1].1["nodeId"], identity.as_str(), "the later one");
    bench.until("oblivion", |talos| talos.affiliates(&bundle().cluster_id).len() == 2);
    assert_eq!(bench.now - at, 30 * 60 * 1000);
    assert_eq!(known(&bench), 2);
}
