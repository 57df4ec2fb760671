//! Each diagnosis from the evidence that shows it, and none from a castle that is well.

use super::*;

fn node(number: u8, role: Role) -> NodeEvidence {
    let name = if role == Role::Worker { "worker" } else { "cp" };
    NodeEvidence {
        name: format!("{name}-0{number}").parse().unwrap(),
        role,
        address: [10, 0, 0, number].into(),
        sight: Sight::Ours,
        unmet: Vec::new(),
        services: vec![service("etcd", "Running", ""), service("kubelet", "Running", "")],
        addresses: vec![format!("10.0.0.{number}/24")],
        affiliates: Vec::new(),
        in_sync: Some(true),
        members: None,
        etcd_data: Some(false),
    }
}

fn plane(number: u8) -> NodeEvidence {
    node(number, Role::ControlPlane)
}

fn service(id: &str, state: &str, said: &str) -> Service {
    Service { id: id.to_owned(), state: state.to_owned(), healthy: None, said: said.to_owned() }
}

fn affiliate(id: &str, hostname: &str, address: &str) -> Affiliate {
    Affiliate {
        node_id: id.to_owned(),
        hostname: hostname.to_owned(),
        addresses: vec![address.to_owned()],
    }
}

fn member(id: u64) -> Member {
    Member { id, hostname: String::new(), peer_urls: Vec::new(), learner: false }
}

fn preparing(number: u8) -> NodeEvidence {
    NodeEvidence { services: vec![service("etcd", "Preparing", "")], ..plane(number) }
}

fn said(nodes: Vec<NodeEvidence>) -> String {
    let found = diagnose(&Evidence { nodes, vip: None });
    let lines: Vec<String> = found.iter().map(|found| found.what.clone()).collect();
    lines.join("\n")
}

#[test]
fn a_castle_that_is_well_has_no_diagnosis() {
    let mut one = plane(1);
    one.members = Some(vec![member(1), member(2)]);
    one.affiliates =
        vec![affiliate("aaa", "cp-01", "10.0.0.1"), affiliate("bbb", "cp-02", "10.0.0.2")];
    let mut two = plane(2);
    two.members = Some(vec![member(1), member(2)]);
    assert_eq!(said(vec![one, two, node(3, Role::Worker)]), "");
}

#[test]
fn a_clock_that_is_wrong_comes_before_all_it_causes() {
    let mut one = preparing(1);
    one.in_sync = Some(false);
    let text = said(vec![one]);
    assert!(text.starts_with("the clock is not in sync on cp-01"), "{text}");
    let mut two = plane(2);
    two.unmet = vec![Unmet { name: "time".to_owned(), reason: "not in sync".to_owned() }];
    assert!(said(vec![two]).contains("not in sync on cp-02"));
}

#[test]
fn where_every_clock_differs_ours_is_suspected_first() {
    let apart = |number| NodeEvidence {
        sight: Sight::Untimely("its certificate is not valid before 2027".to_owned()),
        ..plane(number)
    };
    let cure = |nodes| diagnose(&Evidence { nodes, vip: None })[0].cure.clone();
    assert!(cure(vec![apart(1), apart(2)]).starts_with("every machine differs"));
    assert!(cure(vec![apart(1), plane(2)]).starts_with("compare this computer's clock"));
    assert!(cure(vec![apart(1)]).starts_with("compare this computer's clock"));
}

#[test]
fn two_etcds_are_a_split_brain() {
    let with = |number, ids: &[u64]| NodeEvidence {
        members: Some(ids.iter().map(|id| member(*id)).collect()),
        ..plane(number)
    };
    let text = said(vec![with(1, &[1]), with(2, &[2, 3]), with(3, &[2, 3])]);
    assert_eq!(text, "there are two etcds: cp-01 and cp-02 share no member");
    assert_eq!(said(vec![with(1, &[1]), with(2, &[1, 2])]), "");
}

#[test]
fn two_identities_at_one_address_or_name_are_a_ghost() {
    let mut one = plane(1);
    one.affiliates = vec![
        affiliate("aaaaaaaaaa", "cp-01", "10.0.0.1"),
        affiliate("bbbbbbbbbb", "talos-x1y", "10.0.0.1"),
    ];
    let text = said(vec![one.clone()]);
    assert_eq!(
        text,
        "more than one machine claims, by name or address, to be cp-01 (identities aaaaaaaa, bbbbbbbb): one is a ghost"
    );
    let found = diagnose(&Evidence { nodes: vec![one], vip: None });
    assert!(found[0].cure.contains("30 minutes"));
    let mut two = plane(2);
    two.affiliates = vec![affiliate("a", "cp-02", "10.0.0.2"), affiliate("b", "cp-02", "10.0.0.9")];
    assert!(said(vec![two.clone()]).contains("to be cp-02 (identities a, b)"));
    // What a machine itself tells comes first: any machine that was replaced has a ghost for half an hour.
    let failed = service("kubelet", "Failed", "429 Too Many Requests");
    let text = said(vec![NodeEvidence { services: vec![failed], ..two }]);
    assert!(text.starts_with("kubelet on cp-02 is Failed"), "{text}");
    // The same identity, as two machines know it, is one machine.
    let mut three = plane(3);
    three.affiliates =
        vec![affiliate("a", "cp-03", "10.0.0.3"), affiliate("a", "cp-03", "10.0.0.3")];
    assert_eq!(said(vec![three]), "");
}

#[test]
fn limited_pulls_and_a_failed_kubelet_are_told_apart() {
    let limit = "failed to pull: 429 Too Many Requests - toomanyrequests: You have reached your pull rate limit";
    let mut one = plane(1);
    one.services = vec![service("kubelet", "Preparing", limit)];
    assert!(said(vec![one]).contains("kubelet on cp-01 is Preparing: its registry limits pulls"));
    let mut two = node(2, Role::Worker);
    two.services = vec![service("kubelet", "Failed", "")];
    assert_eq!(
        said(vec![two]),
        "kubelet on worker-02 is Failed: its image did not come (it does not say why)"
    );
}

#[test]
fn an_etcd_that_waits_is_explained_by_disk_address_or_discovery() {
    let stale = NodeEvidence { etcd_data: Some(true), ..preparing(1) };
    assert!(said(vec![stale]).starts_with("etcd does not start on cp-01, although data"));
    let lost = NodeEvidence { addresses: vec!["10.0.0.77/24".to_owned()], ..preparing(1) };
    assert_eq!(said(vec![lost]), "cp-01 does not hold its address 10.0.0.1 but 10.0.0.77/24");
    let alone = said(vec![preparing(1), preparing(2)]);
    assert_eq!(alone, "etcd waits on cp-01, cp-02, and the machines do not find each other");
    let mut known = preparing(2);
    known.affiliates = vec![affiliate("a", "cp-01", "10.0.0.1")];
    known.services = vec![service("etcd", "Preparing", "waiting to join the cluster")];
    assert_eq!(said(vec![plane(1), known]), "etcd waits on cp-02 (waiting to join the cluster)");
}

#[test]
fn machines_that_do_not_answer_are_told_with_what_others_know_of_them() {
    let quiet = |node: NodeEvidence| NodeEvidence {
        sight: Sight::Silent("no answer within 2 s".to_owned()),
        services: Vec::new(),
        addresses: Vec::new(),
        ..node
    };
    assert_eq!(said(vec![quiet(plane(1))]), "nothing answers at the address of cp-01");
    let mut knows = plane(1);
    knows.affiliates = vec![affiliate("b", "cp-02", "10.0.0.77")];
    assert_eq!(said(vec![knows, quiet(plane(2))]), "cp-02 is at 10.0.0.77, not at 10.0.0.2");
    let worker = quiet(node(4, Role::Worker));
    let planes_down = said(vec![NodeEvidence { sight: Sight::Maintenance, ..plane(1) }, worker]);
    assert!(
        planes_down.contains("worker-04 cannot answer yet: a worker's certificate"),
        "{planes_down}"
    );
    assert!(planes_down.contains("still in maintenance mode: cp-01"));
    let all_quiet = said(vec![quiet(plane(1)), quiet(node(4, Role::Worker))]);
    assert!(all_quiet.starts_with("nothing answers at the address of cp-01\n"), "{all_quiet}");
    assert!(all_quiet.contains("worker-04 cannot answer yet"), "{all_quiet}");
    let quiet_worker = said(vec![plane(1), quiet(node(4, Role::Worker))]);
    assert_eq!(quiet_worker, "nothing answers at the address of worker-04");
    let faulty = NodeEvidence { sight: Sight::Faulty("rpc error".to_owned()), ..quiet(plane(1)) };
    assert_eq!(said(vec![faulty]), "cp-01 answers, and with an error (rpc error)");
    let other = NodeEvidence { sight: Sight::Foreign("unknown authority".to_owned()), ..plane(1) };
    assert!(said(vec![other]).contains("answers a machine of another cluster"));
}

#[test]
fn the_shared_address_is_told_by_how_far_it_answers() {
    let vip: Ipv4Addr = [10, 0, 0, 9].into();
    let said = |seen: VipEvidence| {
        diagnose(&Evidence { nodes: Vec::new(), vip: Some((vip, seen)) })[0].what.clone()
    };
    assert_eq!(said(VipEvidence::Silent), "no machine holds the shared address 10.0.0.9");
    assert!(said(VipEvidence::Refuses).contains("no API server listens"));
    assert!(said(VipEvidence::NoTls("no handshake".to_owned())).contains("takes connections, but"));
}
