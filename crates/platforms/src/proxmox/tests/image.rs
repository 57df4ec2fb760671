//! The image: pinned or not, found or fetched, shared, and never overwritten.

use castle_model::VmId;
use castle_model::lock::ImagePin;

use super::super::image::{pin, volume};
use super::super::image_id;
use super::*;

/// A castle whose lock pins the image as the factory has it.
async fn pinned(seed: u64) -> Bench {
    let mut bench = Bench::new(seed);
    let (key, content) = pin(&bench.host.world(), &bench.spec, &mut |_, _| {}).await.unwrap();
    bench.spec.lock.images.insert(key, content);
    bench
}

fn title(bench: &Bench) -> String {
    let decls = super::super::declare(&bench.wanted());
    decls.into_iter().find(|decl| decl.id == image_id()).unwrap().title
}

fn file(bench: &Bench) -> String {
    let volume = volume(&bench.wanted()).unwrap();
    volume.rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_the_lock_pins_is_compared_once() {
    let mut bench = pinned(1).await;
    assert_eq!(title(&bench), "Talos 1.13.9 on local");
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    for _ in 0..2 {
        let before = bench.mutations();
        let run = bench.up().await;
        assert_eq!(run.verb(&image_id()), "leave");
        assert!(run.is_done() && bench.mutations() == before, "{}", run.told());
    }
    // Who knows nothing of the earlier runs compares again, and does not fetch again.
    bench.disk = MemoryDisk::new();
    let run = bench.up().await;
    assert_eq!((run.verb(&image_id()), run.is_done()), ("update", true), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.files.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_image_with_another_content_is_never_used() {
    let mut bench = pinned(2).await;
    let good = bench.spec.lock.clone();
    for content in bench.spec.lock.images.values_mut() {
        *content = ImagePin { sha256: "00".repeat(32), size: content.size };
    }
    let run = bench.up().await;
    assert!(run.told().contains("checksum mismatch"), "{}", run.told());
    assert!(!run.told().contains("pvesm free"), "there is nothing to remove: {}", run.told());
    assert!(run.told().contains("castle lock --images --check"), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.guests, []);
    assert_eq!(bench.inventory().proxmox.files, [""; 0]);
    bench.spec.lock = good;
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
}

#[tokio::test(start_paused = true)]
async fn half_a_file_is_named_and_left_alone() {
    let mut bench = pinned(3).await;
    let (storage, file) = ("local".to_owned(), file(&bench));
    bench.cause(ProxmoxTrouble::HalfFile { storage: storage.clone(), file });
    let run = bench.up().await;
    insta::assert_snapshot!(run.told(), @r"
    platform/image (conflict): use the image local:import/talos-1.13.9-88d1f7a5c4f1d3aba7df787c448c1d3d.qcow2: the file has 41943040 bytes, castle.lock says 8388608
      hint: castle never overwrites it: if nobody needs it, remove it on the host (pvesm free local:import/talos-1.13.9-88d1f7a5c4f1d3aba7df787c448c1d3d.qcow2), then run the same command again; if castle.lock is wrong, remove its entry there, and `castle lock` pins it anew
    ");
    assert_eq!(bench.inventory().proxmox.files.len(), 1);
    assert_eq!(bench.inventory().proxmox.guests, []);
}

#[tokio::test(start_paused = true)]
async fn a_download_tells_how_far_it_is_and_needs_nobody_to_know() {
    let mut bench = Bench::new(7);
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    let told = run.fetched;
    assert!(told.len() >= 4 && told.is_sorted(), "{told:?}");
    assert!(told.iter().all(|(done, total)| done <= total && *total == 8 << 20), "{told:?}");
    // What cannot be read is not told, and does no harm.
    let mut mute = Bench::new(7);
    for nth in 1..=64 {
        mute.break_call(("GET", "/log", nth), Moment::Before, Breakage::Reset);
    }
    let run = mute.up().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(run.fetched, []);
    mute.assert_stands();
}

#[tokio::test(start_paused = true)]
async fn an_image_that_nothing_pins_is_said_to_be_unverified() {
    let mut bench = Bench::new(4);
    assert_eq!(title(&bench), "Talos 1.13.9 on local, unverified");
    assert!(bench.up().await.is_done());
    let run = bench.up().await;
    let planned = run.plan.step(&image_id()).unwrap();
    assert!(
        planned.reason.contains("unverified: castle.lock does not pin it"),
        "{}",
        planned.reason
    );
}

#[tokio::test(start_paused = true)]
async fn the_image_goes_with_the_last_castle() {
    let mut bench = Bench::raised(5).await;
    let theirs = ProxmoxTrouble::ForeignVm {
        vmid: 900,
        name: "green-cp-01".to_owned(),
        tags: "castle;castle-green;inc-1".to_owned(),
        running: true,
        node: None,
    };
    bench.cause(theirs);
    let run = bench.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(bench.inventory().proxmox.files.len(), 1);
    insta::assert_snapshot!(bench.notices(), @r"image local:import/talos-1.13.9-88d1f7a5c4f1d3aba7df787c448c1d3d.qcow2 stays: it is shared with other castles (green)");
    // A copy of one of our own machines is not ours: the image that others share stays all the same.
    let mut copied = Bench::raised(5).await;
    for (vmid, tags) in [(900, "castle;castle-green;inc-1"), (901, "castle;castle-blue;inc-1")] {
        copied.cause(ProxmoxTrouble::ForeignVm {
            vmid,
            name: "copy".to_owned(),
            tags: tags.to_owned(),
            running: false,
            node: None,
        });
    }
    let run = copied.down().await;
    assert!(run.is_done(), "{}", run.told());
    assert_eq!(copied.inventory().proxmox.files.len(), 1);
    let mut alone = Bench::raised(5).await;
    assert!(alone.down().await.is_done());
    assert_eq!(alone.inventory().proxmox.files, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_download_of_somebody_else_is_waited_for() {
    let mut bench = Bench::new(6);
    let first = tokio::time::timeout(std::time::Duration::from_secs(7), bench.up()).await;
    assert!(first.is_err() && !bench.inventory().proxmox.running_tasks.is_empty());
    // Nothing of ours knows of it any more.
    bench.disk = MemoryDisk::new();
    let before = bench.mutations();
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    // Two creates, two resizes, two starts.
    assert_eq!(bench.mutations() - before, 6);
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_that_has_the_image_is_no_finding() {
    let mut bench = Bench::raised(7).await;
    bench.client().stop("pve", VmId(431)).await.unwrap();
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    bench.client().delete_vm("pve", VmId(431), false).await.unwrap();
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    bench.cause(ProxmoxTrouble::StorageFull { storage: "local".to_owned(), full: true });
    let run = bench.up().await;
    assert!(run.is_done(), "{}", run.told());
    bench.assert_stands();
}
