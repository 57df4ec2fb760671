//! What the token may not: named one by one, before anything is made.

use super::super::inventory_id;
use super::super::privileges::NEEDS;
use super::*;

#[tokio::test(start_paused = true)]
async fn every_privilege_that_is_missing_is_named_before_anything_is_made() {
    for need in NEEDS {
        let mut bench = Bench::new(4);
        let platform = bench.spec.platform.proxmox().unwrap();
        let path = need.place.path(&platform.storage, &platform.image_storage, &platform.node);
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
        let path = need.place.path(&platform.storage, &platform.image_storage, &platform.node);
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
    for (path, privilege) in
        [("/vms", "VM.Audit"), ("/vms", "VM.Allocate"), ("/sdn/zones/localnetwork", "SDN.Use")]
    {
        let mut bench = Bench::new(22);
        let (path, privilege) = (path.to_owned(), privilege.to_owned());
        bench.cause(ProxmoxTrouble::PrivilegeNotInherited { path, privilege: privilege.clone() });
        let run = bench.up().await;
        let told = run.told();
        assert!(told.contains(&format!("the token has {privilege} only there")), "{told}");
        assert_eq!((run.report.failures.len(), bench.mutations()), (1, 0), "{told}");
    }
}
