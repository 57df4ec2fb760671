//! What the token may not: named one by one, before anything is made.

use castle_model::spec::ProxmoxSpec;

use super::super::inventory_id;
use super::super::privileges::{NEEDS, Need};
use super::*;

fn path_of(need: &Need, platform: &ProxmoxSpec) -> String {
    let ProxmoxSpec { storage, image_storage, node, bridge, .. } = platform;
    need.place.path(storage, image_storage, node, bridge)
}

/// Everything that was given at one path is given at others instead.
fn moved(from: &str, to: &[&str]) -> ProxmoxTrouble {
    let to = to.iter().map(|path| (*path).to_owned()).collect();
    ProxmoxTrouble::PrivilegesMoved { from: from.to_owned(), to }
}

#[tokio::test(start_paused = true)]
async fn every_privilege_that_is_missing_is_named_before_anything_is_made() {
    for need in NEEDS {
        let mut bench = Bench::new(4);
        let platform = bench.spec.platform.proxmox().unwrap();
        let path = path_of(need, platform);
        let privilege = need.privilege.to_owned();
        bench.cause(ProxmoxTrouble::PrivilegeTaken { path: path.clone(), privilege });
        let run = bench.up().await;
        let failures: Vec<&Failure> = run.report.failures.values().collect();
        assert_eq!(failures.len(), 1, "{}", run.told());
        let named = failures[0].findings.iter().any(|finding| {
            finding.place == format!("privileges at {path}")
                && finding.why.contains(need.privilege)
                && finding.cure.contains(&format!("pveum acl modify {path} "))
        });
        assert!(named && failures[0].findings.len() == 1, "{}", run.told());
        assert_eq!(bench.mutations(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_without_anything_is_told_everything() {
    let mut bench = Bench::new(4);
    for need in NEEDS {
        let platform = bench.spec.platform.proxmox().unwrap();
        let path = path_of(need, platform);
        bench.cause(ProxmoxTrouble::PrivilegeTaken { path, privilege: need.privilege.to_owned() });
    }
    let run = bench.up().await;
    let failure = &run.report.failures[&inventory_id()];
    assert_eq!(failure.findings.len(), NEEDS.len());
    insta::assert_snapshot!(told(&inventory_id(), failure).lines().take(3).collect::<Vec<_>>().join("\n"), @r"
    platform/inventory (denied): list the guests of https://pve.lan:8006: the token has no VM.Audit on /vms, so Proxmox would hide guests from us
      finding: privileges at /vms: the token lacks VM.Allocate, which is needed to make VMs and remove them; on the host: pveum role modify CastleGuests --append 1 --privs VM.Allocate; pveum acl modify /vms --roles CastleGuests --users USER@REALM; and the same with --tokens 'USER@REALM!ID' (the token has only what its user has, too; docs/reference/proxmox-role.md)
      finding: privileges at /vms: the token lacks VM.Audit, which is needed to see guests, their settings and their state; without it Proxmox hides them; on the host: pveum role modify CastleGuests --append 1 --privs VM.Audit; pveum acl modify /vms --roles CastleGuests --users USER@REALM; and the same with --tokens 'USER@REALM!ID' (the token has only what its user has, too; docs/reference/proxmox-role.md)
    ");
}

#[tokio::test(start_paused = true)]
async fn a_privilege_that_is_not_inherited_does_not_count() {
    for privilege in ["VM.Audit", "VM.Allocate"] {
        let mut bench = Bench::new(22);
        let (path, privilege) = ("/vms".to_owned(), privilege.to_owned());
        bench.cause(ProxmoxTrouble::PrivilegeNotInherited { path, privilege: privilege.clone() });
        let run = bench.up().await;
        let told = run.told();
        assert!(told.contains(&format!("the token has {privilege} only there")), "{told}");
        assert_eq!((run.report.failures.len(), bench.mutations()), (1, 0), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_given_for_each_vm_alone_is_as_good() {
    let mut bench = Bench::new(23);
    bench.cause(moved("/vms", &["/vms/421", "/vms/431"]));
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    let notices = bench.notices.lock().unwrap().join("; ");
    assert!(notices.contains("the token sees the declared VMs alone"), "{notices}");
    // One of them is forgotten.
    let mut bench = Bench::new(23);
    bench.cause(moved("/vms", &["/vms/421"]));
    let run = bench.up().await;
    let told = run.told();
    assert!(told.contains("privileges at /vms/431: the token lacks VM.Allocate"), "{told}");
    assert!(!told.contains("/vms/421"), "{told}");
    assert_eq!(bench.mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_for_a_pool_holds_for_the_vms_in_it() {
    let mut bench = Bench::new(24);
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    bench.cause(moved("/vms", &["/pool/castle"]));
    let run = bench.up().await;
    assert!(run.told().contains("no VM.Audit on /vms"), "{}", run.told());
    bench.cause(ProxmoxTrouble::Pooled { pool: "castle".to_owned(), vmids: vec![421, 431] });
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
}

#[tokio::test(start_paused = true)]
async fn a_bridge_may_be_used_by_whoever_has_it_or_anything_above() {
    let own = "/sdn/zones/localnetwork/vmbr0";
    for path in ["/sdn/zones/localnetwork", "/sdn/zones", "/sdn"] {
        let mut bench = Bench::new(25);
        bench.cause(moved(own, &[path]));
        let run = bench.up().await;
        assert!(run.is_done(), "{path}: {}", run.told());
    }
    // Where it is a vnet its own zone counts, and no other.
    let vnet = || ProxmoxTrouble::Vnet { name: "vmbr0".to_owned(), zone: "blue".to_owned() };
    for (path, good) in [
        ("/sdn/zones/blue", true),
        ("/sdn/zones/blue/vmbr0", true),
        ("/sdn", true),
        (own, false),
        ("/sdn/zones/blue/other", false),
    ] {
        let mut bench = Bench::new(25);
        bench.cause(vnet());
        bench.cause(moved(own, &[path]));
        let run = bench.up().await;
        assert_eq!(run.is_done(), good, "{path}: {}", run.told());
        if !good {
            assert!(run.told().contains("SDN.Use"), "{path}: {}", run.told());
            assert_eq!(bench.mutations(), 0);
        }
    }
}
