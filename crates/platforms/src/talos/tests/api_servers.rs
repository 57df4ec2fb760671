//! An API server that is down on one control plane alone: the shared address hides it, castle does not.

use castle_rehearsal::trouble::TalosTrouble;
use castle_rehearsal::turn::Listen;

use super::faults::told;
use super::*;

/// The control plane whose API server answers at the shared address.
fn shown(bench: &Bench) -> u32 {
    let vip = bench.spec.network.vip;
    match bench.host.read(|world| world.talos.listen(vip, 6443)) {
        Some(Listen::KubeApi { vmid }) => vmid,
        other => panic!("{other:?}"),
    }
}

fn assert_named(report: &Report, vmid: u32) {
    let (step, words) = told(report);
    assert_eq!(step, "platform/etcd", "{words}");
    let named = format!("the API server of cp-0{} does not answer", vmid - 420);
    assert!(words.contains(&named), "{words}");
}

#[tokio::test(start_paused = true)]
async fn it_is_named_by_the_first_run_and_by_the_next() {
    let mut bench = Bench::new(3, 3, 1);
    // The first control plane begins etcd and so holds the shared address.
    bench.host.cause(TalosTrouble::ApiServerDown(423, true));
    assert_named(&bench.up().await, 423);
    assert_ne!(shown(&bench), 423);
    assert_named(&bench.up().await, 423);
    bench.host.cause(TalosTrouble::ApiServerDown(423, false));
    assert_done(&bench.up().await);
}

#[tokio::test(start_paused = true)]
async fn it_is_named_on_a_castle_that_was_proven_before() {
    let mut bench = Bench::new(3, 3, 1);
    assert_done(&bench.up().await);
    let before = bench.host.mutations();
    let vmid = if shown(&bench) == 423 { 422 } else { 423 };
    bench.host.cause(TalosTrouble::ApiServerDown(vmid, true));
    assert_named(&bench.up().await, vmid);
    // The same with nothing remembered.
    bench.disk = MemoryDisk::new();
    assert_named(&bench.up().await, vmid);
    // One that comes back while castle waits is all that was waited for.
    let mended = TalosTrouble::ApiServerDown(vmid, false);
    assert_done(&bench.up_while(Duration::from_secs(40), mended).await);
    assert_eq!(bench.host.mutations(), before, "nothing was touched");
}
