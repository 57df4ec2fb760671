//! Tests of the desk: who asks is answered at the world's moment, and who does not leaves no trace.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;
use crate::host::desk::{Ask, DeskError, SOCKET, Told, ask};
use crate::trouble::{ProxmoxTrouble, TalosTrouble};

fn poke(trouble: impl Into<crate::trouble::Trouble>) -> Ask {
    Ask::Poke { rule: "a rule".into(), what: "it happened".into(), troubles: vec![trouble.into()] }
}

fn foreign(vmid: u32) -> Ask {
    let name = "theirs".to_owned();
    let trouble =
        ProxmoxTrouble::ForeignVm { vmid, name, tags: String::new(), running: true, node: None };
    poke(trouble)
}

/// Asks from another thread, as another process does, while the world's own thread turns.
async fn asked(folder: &Path, question: Ask) -> Result<Option<Told>, DeskError> {
    let folder = folder.to_owned();
    // A blocking task holds the paused clock, as the brake does.
    tokio::task::spawn_blocking(move || ask(&folder, &question)).await.unwrap()
}

fn changed(told: Result<Option<Told>, DeskError>) -> bool {
    match told {
        Ok(Some(Told::Poked(poked))) => poked.changed,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_pokes_and_sees_what_it_did() {
    let folder = private_folder();
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    assert!(changed(asked(folder.path(), foreign(700)).await));
    let Ok(Some(Told::Inventory(seen))) = asked(folder.path(), Ask::Inventory).await else {
        panic!("no inventory")
    };
    assert_eq!((seen.proxmox.guests[0].vmid, seen.proxmox.guests[0].running), (700, true));
    assert_eq!(*seen, host.inventory());
    // What is so already, or not there at all, is no change; the world says so.
    let stop = |vmid| poke(ProxmoxTrouble::Stopped { vmid });
    assert!(changed(asked(folder.path(), stop(700)).await));
    assert!(!changed(asked(folder.path(), stop(700)).await));
    assert!(!changed(asked(folder.path(), stop(701)).await));
    // Nobody's plug can be pulled, and a number that is taken is not taken twice.
    assert!(!changed(asked(folder.path(), poke(TalosTrouble::Dead(421))).await));
    assert!(!changed(asked(folder.path(), poke(TalosTrouble::Revived(421))).await));
    assert!(!changed(asked(folder.path(), foreign(700)).await));
    let container = ProxmoxTrouble::ForeignContainer { vmid: 700, name: "c".into(), running: true };
    assert!(!changed(asked(folder.path(), poke(container)).await));
    // A poke is an input like any other: the next process meets it.
    host.close().unwrap();
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    assert!(!host.inventory().proxmox.guests[0].running);
}

#[tokio::test(start_paused = true)]
async fn the_process_that_is_poked_is_told_of_it() {
    let folder = private_folder();
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let ear = told.clone();
    host.on_strike(move |strike| ear.lock().unwrap().push((strike.sort, strike.what.clone())));
    assert!(changed(asked(folder.path(), foreign(700)).await));
    // What changed nothing is told to nobody but its author.
    assert!(!changed(asked(folder.path(), foreign(700)).await));
    assert_eq!(*told.lock().unwrap(), [(crate::fault::Sort::Poke, "it happened".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_world_has_no_desk_and_a_stale_socket_is_taken_away() {
    let folder = private_folder();
    assert!(matches!(ask(folder.path(), &Ask::Inventory), Ok(None)));
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    let socket = folder.path().join(SOCKET);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&socket).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    host.close().unwrap();
    assert!(!socket.exists());
    // A process that was killed leaves its socket; nobody listens there.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(matches!(ask(folder.path(), &Ask::Inventory), Ok(None)));
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    assert!(matches!(asked(folder.path(), Ask::Inventory).await, Ok(Some(_))));
    drop(host);
    // Somebody's file of that name is left alone, and the world is hosted without a desk.
    std::fs::write(&socket, "mine").unwrap();
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    host.close().unwrap();
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "mine");
}

#[tokio::test(start_paused = true)]
async fn a_folder_with_a_long_path_has_a_desk_too() {
    let outer = private_folder();
    let folder = outer.path().join("a".repeat(120)).join("world");
    std::fs::create_dir(outer.path().join("a".repeat(120))).unwrap();
    let _host = Host::open(Some(&folder), &spec(1, 1), 1).unwrap();
    assert!(changed(asked(&folder, foreign(700)).await));
}

#[tokio::test(start_paused = true)]
async fn nonsense_and_strangers_are_told_so_and_the_slow_are_let_go() {
    let folder = private_folder();
    let _host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    let path = folder.path().join(SOCKET);
    let said = tokio::task::spawn_blocking(move || {
        let said = |line: &str| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(line.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let silent = UnixStream::connect(&path).unwrap();
        drop(silent);
        [said("nonsense\n"), said("{\"format\":1,\"message\":\"inventory\"}\n")]
    })
    .await
    .unwrap();
    assert!(said[0].contains("that is no message for it"), "{}", said[0]);
    assert!(said[1].contains("one castle speaks format 1, the other"), "{}", said[1]);
    assert!(matches!(asked(folder.path(), Ask::Inventory).await, Ok(Some(_))));
}

#[tokio::test(start_paused = true)]
async fn a_desk_that_nobody_asks_leaves_no_trace() {
    let run = async |folder: Option<&Path>| {
        let host = Host::open(folder, &spec(3, 2), 5).unwrap();
        host.spawn_driver();
        for _ in 0..3 {
            register(&host, SCHEMATIC).await;
        }
        (host.trace_hash(), host.now())
    };
    let folder = private_folder();
    assert_eq!(run(Some(folder.path())).await, run(None).await);
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "a person must feel a poke in real time")]
async fn a_poke_is_felt_at_once_while_the_clock_is_held() {
    let folder = private_folder();
    let host = Host::open(Some(folder.path()), &spec(1, 1), 1).unwrap();
    host.spawn_driver();
    let place = folder.path().to_owned();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        let began = std::time::Instant::now();
        let told = ask(&place, &poke(TalosTrouble::StaleEtcd(421)));
        sender.send((told.is_ok_and(|told| told.is_some()), began.elapsed())).unwrap();
    });
    // One virtual minute at speed 200: 300 ms, most of them in the brake.
    tokio::select! {
        biased;
        () = tokio::time::sleep(Duration::from_mins(1)) => {}
        () = crate::brake::hold(200) => {}
    }
    let (told, took) = receiver.try_recv().expect("the poke was answered while the clock was held");
    assert!(told && took < Duration::from_millis(100), "{took:?}");
    assert_eq!(host.inventory().wrong, ["machine 421 gets a disk with an etcd of an earlier life"]);
}
