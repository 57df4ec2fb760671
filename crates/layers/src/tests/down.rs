//! The way down of a whole castle: by containment, side by side, and looked after in the world.

use castle_model::audit::Standing;
use castle_rehearsal::trouble::ProxmoxTrouble;

use super::*;

async fn raised(spec: Spec) -> Rehearsal {
    let mut rehearsal = Rehearsal::open(spec, 7);
    let report = rehearsal.up().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
    rehearsal
}

/// Razes it, and says how long that took in virtual milliseconds.
async fn razed(rehearsal: &mut Rehearsal) -> u64 {
    let began = rehearsal.host.now();
    let report = rehearsal.down().await;
    assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
    rehearsal.host.now() - began
}

#[test]
fn neither_talos_nor_kubernetes_is_asked_on_the_way_down() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = raised(castle_config::example()).await;
        let before = rehearsal.host.requests().len();
        razed(&mut rehearsal).await;
        let access = Access::to_infisical(rehearsal.identity());
        let world = rehearsal.host.world();
        let audit = crate::audit::audit(&rehearsal.spec, &world, &access, Some(true)).await;
        assert_eq!(audit.unwrap().items, []);
        let asked = &rehearsal.host.requests()[before..];
        let inside: Vec<String> = asked
            .iter()
            .filter(|r| !matches!(r.server.as_str(), "proxmox" | "infisical"))
            .map(|r| format!("{} {} {}", r.server, r.method, r.path))
            .collect();
        assert_eq!(inside, [""; 0]);
        assert!(asked.iter().any(|r| r.server == "proxmox"), "the names of servers are these");
    });
}

#[test]
fn five_machines_go_in_about_the_time_of_two() {
    runtime().unwrap().block_on(async {
        let few = razed(&mut raised(sized(1, 1)).await).await;
        let many = razed(&mut raised(castle_config::example()).await).await;
        // One after the other they would take two and a half times as long.
        assert!(many < 2 * few, "{many} ms for five, {few} ms for two");
    });
}

#[test]
fn an_audit_without_records_tells_what_stands_and_what_would_be_left() {
    runtime().unwrap().block_on(async {
        let rehearsal = raised(sized(1, 1)).await;
        let access = Access::to_infisical(rehearsal.identity());
        let world = rehearsal.host.world();
        let look = |gone| crate::audit::audit(&rehearsal.spec, &world, &access, gone);
        let found = look(None).await.unwrap();
        assert!(!found.gone && found.amiss().count() == 0, "{:#?}", found.items);
        let kinds: Vec<String> = found.items.iter().map(|item| item.kind.to_string()).collect();
        assert_eq!(kinds, ["guest", "guest", "image", "escrow", "escrow", "escrow"]);
        assert_eq!(look(Some(true)).await.unwrap().amiss().count(), 6);
        // Both machines are removed by hand: what is left of the castle is left over.
        for vmid in [421, 431] {
            rehearsal.host.cause(ProxmoxTrouble::Destroyed { vmid });
        }
        let found = look(None).await.unwrap();
        assert!(found.gone, "{:#?}", found.items);
        let left = found.items.iter().filter(|item| item.standing == Standing::Left).count();
        assert_eq!(left, 4, "{:#?}", found.items);
    });
}
