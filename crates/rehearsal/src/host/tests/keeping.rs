//! How a world is kept: who looks changes nothing, who cannot write says so, who holds it is named.

use std::fs;
use std::time::SystemTime;

use super::life::{boot, download};
use super::*;

/// Names, bytes and times of all files in a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>, SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            (name, fs::read(&path).unwrap(), modified)
        })
        .collect();
    files.sort();
    files
}

#[tokio::test(start_paused = true)]
async fn who_looks_leaves_no_mark() {
    let folder = private_folder();
    let (host, _) = life(folder.path(), async |host| register(host, SCHEMATIC).await).await;
    let live = host.read(Clone::clone);
    host.close().unwrap();
    let before = files(folder.path());
    for _ in 0..2 {
        let mut moved = spec(3, 2);
        moved.platform.proxmox_mut().unwrap().endpoint = "https://other.lan:8006".to_owned();
        let host = Host::look(Some(folder.path()), &moved, 9).unwrap();
        host.spawn_driver();
        assert_eq!(host.read(|world| world.opens), live.opens + 1);
        assert_eq!(host.read(|world| world.sources.clone()).schematics().count(), 1);
        assert!(host.dialer().dial("other.lan", 8006).await.is_ok());
        download(&host).await;
        boot(&host, &spec(3, 2).nodes[0]).await;
        host.close().unwrap();
        assert_eq!(files(folder.path()), before);
    }
    let (host, ()) = life(folder.path(), async |_| ()).await;
    assert_eq!(host.read(|world| world.opens), live.opens + 1, "looking is not counted");
}

#[tokio::test(start_paused = true)]
async fn a_world_that_is_not_there_is_looked_at_in_memory() {
    let folder = private_folder();
    let missing = folder.path().join("none");
    let host = Host::look(Some(&missing), &spec(3, 2), 9).unwrap();
    assert_eq!(register(&host, SCHEMATIC).await.status, 201);
    host.close().unwrap();
    assert!(!missing.exists());
}

#[tokio::test(start_paused = true)]
async fn one_may_look_while_another_hosts() {
    let folder = private_folder();
    let (host, _) = life(folder.path(), async |host| register(host, SCHEMATIC).await).await;
    let seen = Host::look(Some(folder.path()), &spec(3, 2), 9).unwrap();
    assert_eq!(seen.read(|world| world.sources.clone()), host.read(|world| world.sources.clone()));
    let Err(error) = Host::open(Some(folder.path()), &spec(3, 2), 9) else { panic!("it opened") };
    assert!(error.is_locked());
    let hint = error.hint().unwrap();
    assert!(hint.contains("castle status") && !hint.contains("reset"), "{hint}");
    let HostError::Store(StoreError::Locked { holder, .. }) = error else { panic!("{error}") };
    assert_eq!(holder.pid, Some(std::process::id()));
    assert!(holder.to_string().contains(" since 20"), "{holder}");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_written_is_heard_of_at_once() {
    let folder = private_folder();
    let (host, ()) = life(folder.path(), async |_| ()).await;
    let (early, before) = (host.trouble(), host.now());
    tokio::select! {
        biased;
        error = host.trouble() => panic!("{error}"),
        _ = register(&host, SCHEMATIC) => {}
    }
    host.shared.break_log();
    let other = "customization: {}\n";
    let rest = client(&host, "https://factory.talos.dev");
    let error = tokio::select! {
        biased;
        error = early => error,
        reply = rest.request(Method::POST, "/schematics", Vec::new(), other) => {
            panic!("somebody heard of a change that is not kept: {:?}", reply.map(|r| r.status))
        }
    };
    assert!(host.now() - before < 2_000, "at once");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.starts_with("cannot write to ") && cause.ends_with("world.log"), "{cause}");
    let again = host.trouble().await;
    assert_eq!(again.to_string(), error.to_string());
    assert!(matches!(host.close(), Err(HostError::Ended(_))));
}
