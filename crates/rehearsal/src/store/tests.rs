//! Tests of the store: what was applied comes back, and what was damaged is refused with its place.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;
use crate::birth::Birth;
use crate::testing::{private_folder, spec};
use crate::turn::{HttpCall, Server};

fn born() -> Datacenter {
    Datacenter::new(Birth::of(&spec(1, 1), 4))
}

fn call(server: Server, method: &str, host: &str, path: &str, body: &[u8]) -> Input {
    Input::Http {
        server,
        call: HttpCall {
            method: method.to_owned(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            headers: Vec::new(),
            body: body.to_vec(),
            peer: None,
        },
    }
}

/// Inputs of all sorts; the number picks one.
fn some_input(pick: u8) -> Input {
    let schematic = |arguments: &str| format!("customization: {{extraKernelArgs: [{arguments}]}}");
    match pick % 7 {
        0 => Input::Fire,
        1 => Input::Open { birth: None, dawn: Some(5) },
        6 => Input::Rest,
        2 => Input::Open { birth: Some(Box::new(Birth::of(&spec(3, 2), 4))), dawn: None },
        3 => call(Server::Sources, "POST", "factory.talos.dev", "/schematics", b"\xff\xfe"),
        4 => call(Server::Proxmox, "POST", "pve.lan", "/api2/json/nodes/pve/qemu", b"vmid=100"),
        _ => {
            let body = schematic(&format!("a{pick}"));
            call(Server::Sources, "POST", "factory.talos.dev", "/schematics", body.as_bytes())
        }
    }
}

/// Applies inputs as the host does, and gives the live world.
fn run(folder: &Path, picks: &[u8]) -> Datacenter {
    let (mut store, mut live) = Store::open(folder, "", born).unwrap();
    for (index, pick) in picks.iter().enumerate() {
        let at = live.now + index as u64;
        let input = some_input(*pick);
        if live.input(at, &input).changed {
            store.append(at, &input).unwrap();
        }
        if pick % 7 == 0 {
            store.snapshot(&live).unwrap();
        }
    }
    live
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_replayed_world_is_the_live_one(picks: Vec<u8>) {
        let folder = private_folder();
        let live = run(folder.path(), &picks);
        let (_, replayed) = Store::open(folder.path(), "", born).unwrap();
        prop_assert_eq!(replayed, live);
    }
}

#[test]
fn a_torn_last_line_is_cut_wherever_it_tore() {
    let folder = private_folder();
    run(folder.path(), &[1, 5, 12]);
    let log = folder.path().join(LOG);
    let whole = fs::read(&log).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for length in last..whole.len() {
        fs::write(&log, &whole[..length]).unwrap();
        let (store, world) = Store::open(folder.path(), "", born).unwrap();
        // All but the line's end: the entry is provably whole, and is kept.
        let kept = if length == whole.len() - 1 { 3 } else { 2 };
        assert_eq!(store.number, kept, "cut at {length}");
        assert_eq!(world.opens, 1);
        drop(store);
        let expected = if kept == 3 { &whole[..] } else { &whole[..last] };
        assert_eq!(fs::read(&log).unwrap(), expected);
    }
}

#[test]
fn a_flipped_bit_is_refused_with_its_place() {
    let folder = private_folder();
    run(folder.path(), &[1, 5, 12]);
    let log = folder.path().join(LOG);
    let whole = fs::read(&log).unwrap();
    for at in (0..whole.len()).step_by(3).chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&log, &bytes).unwrap();
        let error = Store::open(folder.path(), "", born).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "byte {at}: {error}");
        let line = whole[..at].split(|byte| *byte == b'\n').count();
        assert!(error.to_string().contains(&format!("line {line}")), "byte {at}: {error}");
        assert_eq!(fs::read(&log).unwrap(), bytes, "what is refused is left as it is");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_flipped_bit_and_no_cut_goes_unseen(place: prop::sample::Index, bit in 0..8_u32, cut: bool, snapshot: bool) {
        let folder = private_folder();
        let live = run(folder.path(), &[1, 5, 12, 19]);
        let path = folder.path().join(if snapshot { SNAPSHOT } else { LOG });
        let mut bytes = fs::read(&path).unwrap();
        let at = place.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= 1 << bit }
        fs::write(&path, &bytes).unwrap();
        match Store::open(folder.path(), "", born) {
            // Refused, with its place, and left as it is.
            Err(error) => {
                let text = error.to_string();
                prop_assert!(text.contains(&path.display().to_string()), "{}", text);
                prop_assert_eq!(fs::read(&path).unwrap(), bytes);
            }
            // Or whole: only a log may have lost its tail, as when its process is killed.
            Ok((store, world)) => {
                prop_assert!(cut, "the flip of bit {} in byte {} went unseen", bit, at);
                prop_assert!(world == live || !snapshot && store.number < 4);
            }
        }
    }
}

#[test]
fn what_is_no_world_is_refused_with_what_it_is() {
    let told = |text: &str| {
        let folder = private_folder();
        place::write(&folder.path().join(SNAPSHOT), &[text]).unwrap();
        let error = Store::open(folder.path(), "", born).unwrap_err().to_string();
        assert!(Store::look(folder.path()).is_err());
        error.split_once("world.json ").unwrap().1.to_owned()
    };
    assert_eq!(told(""), "is damaged at line 1: it is empty");
    assert_eq!(told("{}"), "is damaged at line 1: it has no end");
    assert_eq!(
        told("{\"name\": \"somebody's\"}\n"),
        "is damaged at line 1: missing field `format` at line 1 column 22"
    );
    let older = format!("{{\"format\":{},\"number\":0,\"sum\":\"\"}}\n{{}}\n", FORMAT - 1);
    let (was, is) = (FORMAT - 1, FORMAT);
    assert_eq!(told(&older), format!("has format {was}, this castle reads {is} only"));
}

#[test]
fn who_comes_second_is_told_who_was_first() {
    let folder = private_folder();
    let _held = Store::open(folder.path(), "castle rehearse serve", born).unwrap();
    let error = Store::open(folder.path(), "castle rehearse up", born).unwrap_err();
    let (text, pid) = (error.to_string(), std::process::id());
    let holder = format!("is in use by `castle rehearse serve` (process {pid} since 20");
    assert!(text.contains(&holder), "{text}");
    assert!(error.hint().unwrap().contains("castle rehearse poke"));
}

#[test]
fn a_damaged_or_newer_snapshot_is_refused() {
    let folder = private_folder();
    run(folder.path(), &[1]);
    let path = folder.path().join(SNAPSHOT);
    let text = fs::read_to_string(&path).unwrap();
    let open = |text: String| {
        fs::write(&path, text).unwrap();
        Store::open(folder.path(), "", born).unwrap_err()
    };
    let error = open(text.replace("pve.lan", "pve.lam"));
    assert!(error.to_string().ends_with("is damaged at line 2: its check sum is wrong"), "{error}");
    let (now, next) = (format!("\"format\":{FORMAT}"), format!("\"format\":{}", FORMAT + 1));
    let error = open(text.replacen(&now, &next, 1));
    assert!(matches!(error, StoreError::Newer { found, .. } if found == FORMAT + 1), "{error}");
    fs::remove_file(&path).unwrap();
    let error = Store::open(folder.path(), "", born).unwrap_err();
    assert!(error.to_string().contains("it is missing, and its log is not"), "{error}");
}

#[test]
fn a_missing_entry_is_noticed() {
    let folder = private_folder();
    run(folder.path(), &[1, 5, 12]);
    let log = folder.path().join(LOG);
    let text = fs::read_to_string(&log).unwrap();
    let without: String =
        text.split_inclusive('\n').enumerate().filter(|(n, _)| *n != 1).map(|(_, l)| l).collect();
    fs::write(&log, without).unwrap();
    let error = Store::open(folder.path(), "", born).unwrap_err();
    assert!(error.to_string().contains("line 2: entry 3 follows entry 1"), "{error}");
}

#[test]
fn files_are_private() {
    let folder = private_folder();
    let folder = folder.path().join("world");
    run(&folder, &[1, 5]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in [SNAPSHOT, LOG, LOCK] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
}

#[test]
fn what_is_no_private_file_is_refused_and_never_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let folder = private_folder();
    let folder = folder.path().join("world");
    run(&folder, &[1, 5]);
    let refused = |words: &str| {
        let error = Store::open(&folder, "", born).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    for name in [SNAPSHOT, LOG, LOCK] {
        let (path, kept) = (folder.join(name), folder.join("kept"));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        refused(&format!("{name} has mode 0640: others could read or change it"));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::rename(&path, &kept).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        refused(&format!("{name} is a pipe, where a file of its own should be"));
        if name != LOCK {
            assert!(matches!(Store::look(&folder), Err(StoreError::WrongKind { .. })), "{name}");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&kept, &path).unwrap();
        refused(&format!("{name} is a symbolic link"));
        fs::rename(&kept, &path).unwrap();
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    refused("world has mode 0755");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    Store::open(&folder, "", born).unwrap();
}

#[test]
fn a_look_sees_what_an_opening_sees_and_leaves_a_torn_line_alone() {
    let folder = private_folder();
    let live = run(folder.path(), &[1, 5, 12]);
    assert_eq!(Store::look(folder.path()).unwrap(), Some(live));
    let log = folder.path().join(LOG);
    let whole = fs::read(&log).unwrap();
    let torn = &whole[..whole.len() - 9];
    fs::write(&log, torn).unwrap();
    let seen = Store::look(folder.path()).unwrap();
    assert_eq!(fs::read(&log).unwrap(), torn);
    assert_eq!(Some(Store::open(folder.path(), "", born).unwrap().1), seen);
}

#[test]
fn what_the_operating_system_refuses_is_no_reason_to_throw_the_world_away() {
    use std::io::{Error, ErrorKind};
    let hint = |kind: ErrorKind| {
        let path = "/srv/castle/lock".into();
        StoreError::Io { doing: "open", path, source: Error::from(kind) }.hint().unwrap()
    };
    let writable = "/srv/castle must be writable for you, or choose another place for the state";
    assert_eq!(hint(ErrorKind::ReadOnlyFilesystem), writable);
    assert_eq!(hint(ErrorKind::PermissionDenied), writable);
    for kind in [ErrorKind::FileTooLarge, ErrorKind::StorageFull, ErrorKind::Other] {
        assert!(hint(kind).ends_with("then run the same command again"), "{}", hint(kind));
    }
}
