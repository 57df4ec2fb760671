//! What an audit finds: everything of ours, whoever made our records, and nothing of others taken for ours.

use castle_model::audit::Standing;

use super::*;
use crate::audit::Auditor;

async fn audited(bench: &Bench, gone: bool) -> Vec<String> {
    audited_with(bench, gone, None).await
}

async fn audited_with(bench: &Bench, gone: bool, kept: Option<&Secret>) -> Vec<String> {
    let (spec, world, secrets) = (&bench.spec, bench.host.world(), bench.secrets());
    let auditor = Auditor { spec, world: &world, secrets: &secrets, kept, gone };
    let mut items = auditor.look().await;
    items.sort();
    let life = bench.life.incarnation.to_string();
    let line = |item: &castle_model::audit::Item| {
        format!("{} {} {}: {}", item.standing, item.kind, item.what, item.whose)
    };
    items.iter().map(|item| line(item).replace(&life, "…")).collect()
}

#[tokio::test(start_paused = true)]
async fn what_stands_is_expected_and_what_is_left_is_told() {
    let mut bench = Bench::raised(1).await;
    let standing = audited(&bench, false).await;
    insta::assert_snapshot!(standing.join("\n"), @r"
    expected guest VM 421 `blue-cp-01`: cp-01 of this castle, life …
    expected guest VM 431 `blue-worker-01`: worker-01 of this castle, life …
    expected image local:import/talos-1.13.9-88d1f7a5c4f1d3aba7df787c448c1d3d.qcow2: this castle's machines are made from it
    ");
    let gone = audited(&bench, true).await;
    assert!(gone.len() == 3 && gone.iter().all(|line| line.starts_with("left over")), "{gone:#?}");
    let before = bench.mutations();
    assert!(bench.down().await.is_done());
    assert!(bench.mutations() > before);
    assert_eq!(audited(&bench, true).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn strays_orphans_and_strangers_are_told_apart() {
    let mut bench = Bench::raised(2).await;
    bench.spec.nodes.pop();
    let foreign = |vmid: u32, tags: &str| ProxmoxTrouble::ForeignVm {
        vmid,
        name: format!("vm-{vmid}"),
        tags: tags.to_owned(),
        running: false,
        node: None,
    };
    bench.cause(foreign(425, ""));
    bench.cause(foreign(426, "castle;castle-blue;inc-1"));
    bench.cause(foreign(900, "castle;castle-blue;inc-1"));
    bench.cause(ProxmoxTrouble::ForeignContainer { vmid: 427, name: "dns".into(), running: true });
    for vmid in [421, 422, 425, 999] {
        bench.cause(ProxmoxTrouble::LostDisk { vmid, storage: "local-lvm".into() });
    }
    insta::assert_snapshot!(audited(&bench, false).await.join("\n"), @r"
    left over guest VM 426 `vm-426`: perhaps this castle's: it bears no mark of a castle
    left over guest VM 431 `blue-worker-01`: worker-01 of this castle, life …
    left over disk local-lvm:vm-421-disk-9 (1024 MiB): it bears the number of cp-01, and no guest has it
    left over disk local-lvm:vm-422-disk-9 (1024 MiB): it bears a number of this castle's range, and no guest has it
    expected guest VM 421 `blue-cp-01`: cp-01 of this castle, life …
    expected image local:import/talos-1.13.9-88d1f7a5c4f1d3aba7df787c448c1d3d.qcow2: this castle's machines are made from it
    not ours guest VM 425 `vm-425`: somebody else's: it bears no mark of a castle
    not ours guest VM 900 `vm-900`: somebody else's, by its number, with this castle's tag: it bears no mark of a castle
    not ours guest container 427 `dns`: somebody else's: castle makes no containers
    ");
}

#[tokio::test(start_paused = true)]
async fn whoever_answers_where_nothing_of_ours_runs_is_told_and_not_taken_for_ours() {
    let mut bench = Bench::raised(3).await;
    assert!(bench.down().await.is_done());
    bench.host.cause(TalosTrouble::Foreign(bench.wanted().nodes[1].address));
    let seen = audited(&bench, true).await;
    insta::assert_snapshot!(seen.join("\n"), @"not ours address address of worker-01: it answers still: a Talos machine answers that has a config of another cluster; nothing proves it ours");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_goes_on_is_left_over_and_what_does_not_answer_is_not_seen() {
    let mut bench = Bench::new(4);
    let cut = tokio::time::timeout(std::time::Duration::from_secs(7), bench.up()).await;
    assert!(cut.is_err());
    let seen = audited(&bench, true).await;
    assert!(
        seen.iter().any(|line| line.starts_with("left over task download of talos-")),
        "{seen:#?}"
    );
    bench.cause(ProxmoxTrouble::TokenRevoked);
    let (spec, world, secrets) = (&bench.spec, bench.host.world(), bench.secrets());
    let auditor = Auditor { spec, world: &world, secrets: &secrets, kept: None, gone: true };
    let items = auditor.look().await;
    assert!(!items.is_empty() && items.iter().all(|item| item.standing == Standing::Unseen));
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_ours_that_answers_still_is_left_over_where_the_keys_can_tell() {
    let mut bench = Bench::new(5);
    bench.whole = true;
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    // Proxmox does not tell them ours any more, and their machines answer.
    for vmid in [421, 431] {
        for option in ["tags", "description"] {
            bench.cause(ProxmoxTrouble::Edited { vmid, option: option.into(), value: None });
        }
    }
    let told = |seen: Vec<String>| {
        let of = |line: &String| line.contains(" address ");
        seen.into_iter().filter(of).collect::<Vec<_>>().join("\n")
    };
    let kept = bench.life.to_escrow(&bench.spec.name);
    insta::assert_snapshot!(told(audited_with(&bench, true, Some(&kept)).await), @r"
    left over address address of cp-01: a machine with this castle's own config answers
    left over address address of worker-01: a machine with this castle's own config answers
    left over address the VIP: a machine with this castle's own config answers
    ");
    insta::assert_snapshot!(told(audited(&bench, true).await), @r"
    not ours address address of cp-01: it answers still: a Talos machine answers that has a config of another cluster; nothing proves it ours
    not ours address address of worker-01: it answers still: a Talos machine answers that has a config of another cluster; nothing proves it ours
    not ours address the VIP: it answers still: a Talos machine answers that has a config of another cluster; nothing proves it ours
    ");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_off_is_not_seen() {
    let mut bench = Bench::raised(6).await;
    assert!(bench.down().await.is_done());
    bench.cause(ProxmoxTrouble::NodeDown);
    let seen = audited(&bench, true).await;
    let line = "not seen disk the disks and tasks: the node is offline: its disks and tasks can not be looked at";
    assert!(seen.iter().any(|item| item == line), "{seen:#?}");
}

#[tokio::test(start_paused = true)]
async fn guests_of_a_node_that_is_off_are_named_and_the_others_are_seen() {
    let bench = Bench::raised(8).await;
    super::machines::migrate(&bench, 431);
    bench.cause(ProxmoxTrouble::NodeDown);
    let seen = audited(&bench, true).await;
    let guests: Vec<&String> = seen.iter().filter(|item| item.contains(" guest ")).collect();
    assert_eq!(
        guests,
        [
            "left over guest VM 431 `blue-worker-01`: worker-01 of this castle, life …",
            "not seen guest VM 421 `blue-cp-01`: perhaps this castle's: its node is offline, so that nobody can look at it",
        ]
    );
}
