//! The ways in of a whole castle, kept in Infisical: how often it is asked for them, and what `down` leaves.

use castle_model::spec::EscrowAfterDown;
use castle_platforms::escrow::{BUNDLE_KEY, KUBECONFIG_KEY, TALOSCONFIG_KEY};
use castle_rehearsal::inventory::Inventory;

use super::*;

const LOGIN: &str = "POST /api/v1/auth/universal-auth/login";
const PROJECT: &str = "GET /api/v1/projects/slug/tazlab";
const LIST: &str = "GET /api/v4/secrets";
const UPSERT: &str = "PATCH /api/v4/secrets/batch";

impl Rehearsal {
    /// What Infisical was asked since so many requests.
    fn asked_since(&self, since: usize) -> Vec<String> {
        self.host.requests()[since..]
            .iter()
            .filter(|request| request.server == "infisical")
            .map(|request| format!("{} {}", request.method, request.path))
            .collect()
    }

    /// Which of the castle's own entries are there.
    fn entries(&self) -> Vec<&'static str> {
        let secrets = self.host.read(Inventory::of).secrets;
        [BUNDLE_KEY, KUBECONFIG_KEY, TALOSCONFIG_KEY]
            .into_iter()
            .filter(|key| secrets.iter().any(|secret| secret.ends_with(key)))
            .collect()
    }
}

#[test]
fn infisical_is_asked_once_for_everything_and_again_only_around_a_write() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        // The bundle, then both ways in at once: each looked at again, written, read back. Between them, before the first
        // config of a birth leaves, a look whether its secrets are still the ones that are kept.
        let kept_twice = [LIST, UPSERT, LIST, LIST, LIST, UPSERT, LIST];
        assert_eq!(rehearsal.asked_since(0), [&[LOGIN, PROJECT, LIST][..], &kept_twice].concat());
        let since = rehearsal.host.requests().len();
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        assert_eq!(rehearsal.asked_since(since), [LOGIN, PROJECT, LIST]);
    });
}

#[test]
fn down_leaves_nothing_of_ours_in_escrow_unless_it_is_to_be_kept() {
    for (after_down, left) in [
        (EscrowAfterDown::Remove, vec![]),
        (EscrowAfterDown::Keep, vec![BUNDLE_KEY, KUBECONFIG_KEY, TALOSCONFIG_KEY]),
    ] {
        let runtime = runtime().unwrap();
        runtime.block_on(async {
            let mut spec = sized(1, 1);
            spec.secrets.escrow.after_down = after_down;
            let mut rehearsal = Rehearsal::open(spec, 7);
            assert_eq!(rehearsal.entries(), Vec::<&str>::new());
            assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
            assert_eq!(rehearsal.entries(), [BUNDLE_KEY, KUBECONFIG_KEY, TALOSCONFIG_KEY]);
            assert_eq!(rehearsal.down().await.outcome, RunOutcome::Done);
            assert_eq!(rehearsal.entries(), left);
            // What was kept is of an earlier life: the next birth writes over it.
            let report = rehearsal.up().await;
            assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        });
    }
}
