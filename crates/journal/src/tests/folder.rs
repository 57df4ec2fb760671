//! The real folder: modes, links, pipes, locks and repositories.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use castle_model::StepId;
use castle_model::event::RunOutcome;
use castle_model::time::Moment;
use tempfile::TempDir;

use crate::{Holder, StateError, StateRoot};

use super::{intent, layer, outcome, start};

fn holder() -> Holder {
    Holder {
        pid: std::process::id(),
        host: "desk".into(),
        since: Moment(1_770_033_599_999),
        command: "castle up".into(),
        born: None,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refusal(path: &Path) -> StateError {
    match StateRoot::open(path, &holder()) {
        Ok(_) => panic!("{} was accepted", path.display()),
        Err(error) => error,
    }
}

/// A folder with one finished run in it.
fn used() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state/castle/blue");
    let mut root = StateRoot::open(&path, &holder()).unwrap();
    let journals = root.journals_mut();
    journals.start_run(Moment(1), start("r1")).unwrap();
    let step = StepId::new("platform", "image");
    journals.append(Moment(2), &layer("platform"), intent(&step)).unwrap();
    journals.append(Moment(3), &layer("platform"), outcome(&step)).unwrap();
    journals.end_run(Moment(4), RunOutcome::Done).unwrap();
    (place, path)
}

#[test]
fn only_the_owner_can_read_whatever_the_umask() {
    let (_place, path) = used();
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("layers")), 0o700);
    for file in ["lock", "run.journal", "layers/platform.journal"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    let mut root = StateRoot::open(&path, &holder()).unwrap();
    let journals = root.journals_mut();
    journals.start_run(Moment(5), start("r2")).unwrap();
    journals.end_run(Moment(6), RunOutcome::Done).unwrap();
    journals.compact(Moment(6)).unwrap();
    assert_eq!(mode(&path.join("layers/platform.journal")), 0o600);
    let files = fs::read_dir(path.join("layers")).unwrap().count();
    assert_eq!(files, 1, "compaction leaves no other file");
}

#[test]
fn what_others_could_read_is_refused() {
    let (_place, path) = used();
    for (file, open, closed) in [
        ("", 0o750, 0o700),
        ("layers", 0o701, 0o700),
        ("run.journal", 0o640, 0o600),
        ("layers/platform.journal", 0o604, 0o600),
    ] {
        set_mode(&path.join(file), open);
        let error = refusal(&path);
        assert!(matches!(error, StateError::Exposed { .. }), "{file}: {error}");
        assert!(error.hint().contains(&format!("chmod {closed:o}")), "{}", error.hint());
        set_mode(&path.join(file), closed);
    }
    assert!(StateRoot::open(&path, &holder()).is_ok());
}

#[test]
fn links_pipes_and_folders_in_the_place_of_files_are_refused() {
    let (place, path) = used();
    let elsewhere = place.path().join("elsewhere");
    for file in ["run.journal", "layers/platform.journal", "lock"] {
        let target = path.join(file);
        fs::rename(&target, &elsewhere).unwrap();
        let refused = || {
            let error = refusal(&path);
            assert!(matches!(error, StateError::WrongKind { .. }), "{file}: {error}");
            let peeked = StateRoot::peek(&path).unwrap_err();
            assert!(matches!(peeked, StateError::WrongKind { .. }), "{file}: {peeked}");
        };
        symlink(&elsewhere, &target).unwrap();
        refused();
        fs::remove_file(&target).unwrap();
        fs::hard_link(&elsewhere, &target).unwrap();
        refused();
        fs::remove_file(&target).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &target,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        refused();
        fs::remove_file(&target).unwrap();
        fs::create_dir(&target).unwrap();
        refused();
        fs::remove_dir(&target).unwrap();
        fs::rename(&elsewhere, &target).unwrap();
    }
    let linked = place.path().join("linked");
    symlink(&path, &linked).unwrap();
    assert!(matches!(refusal(&linked), StateError::WrongKind { found: "a symbolic link", .. }));
    assert!(StateRoot::open(&path, &holder()).is_ok());
}

#[test]
fn a_second_process_is_told_who_holds_the_folder() {
    let (_place, path) = used();
    let first = StateRoot::open(&path, &holder()).unwrap();
    let error = refusal(&path);
    let shown = error.to_string().replace(&*path.to_string_lossy(), "STATE");
    let shown = shown.replace(&std::process::id().to_string(), "PID");
    insta::assert_snapshot!(shown, @"the state folder STATE is in use by `castle up` (process PID on desk, since 2026-02-02T11:59:59.999Z)");
    assert_eq!(StateRoot::peek(&path).unwrap().unwrap().holder, Some(holder()));
    drop(first);
    assert_eq!(StateRoot::peek(&path).unwrap().unwrap().holder, None);
    assert!(StateRoot::open(&path, &holder()).is_ok());
}

#[test]
fn the_name_of_a_dead_holder_blocks_nobody() {
    let (_place, path) = used();
    let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    let dead = Holder { pid: 0x7fff_fff0, host, ..holder() };
    fs::write(path.join("lock"), serde_json::to_vec(&dead).unwrap()).unwrap();
    assert_eq!(StateRoot::peek(&path).unwrap().unwrap().holder, None);
    let taken = StateRoot::open(&path, &holder()).unwrap();
    assert_eq!(StateRoot::peek(&path).unwrap().unwrap().holder, Some(holder()));
    drop(taken);
}

#[test]
fn peeking_sees_what_is_durable_and_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("blue");
    assert!(StateRoot::peek(&path).unwrap().is_none());
    assert!(!path.exists());
    let mut root = StateRoot::open(&path, &holder()).unwrap();
    root.journals_mut().start_run(Moment(1), start("r1")).unwrap();
    let step = StepId::new("platform", "image");
    root.journals_mut().append(Moment(2), &layer("platform"), intent(&step)).unwrap();
    root.journals_mut().commit().unwrap();
    let peek = StateRoot::peek(&path).unwrap().unwrap();
    assert_eq!(&peek.records, root.journals().records());
    assert!(peek.problems.is_empty() && peek.notices.is_empty());
}

#[test]
fn a_state_folder_inside_a_repository_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    fs::create_dir_all(work.join(".git")).unwrap();
    assert!(matches!(refusal(&work.join("deep/er/state")), StateError::InsideGit { .. }));
    assert!(!work.join("deep").exists(), "nothing was made");

    let linked = place.path().join("linked");
    fs::create_dir_all(&linked).unwrap();
    fs::write(linked.join(".git"), "gitdir: ../tree/.git/worktrees/linked\n").unwrap();
    assert!(matches!(refusal(&linked), StateError::InsideGit { .. }));

    let bare = place.path().join("bare.git");
    fs::create_dir_all(bare.join("objects")).unwrap();
    fs::create_dir_all(bare.join("refs")).unwrap();
    fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    assert!(matches!(refusal(&bare.join("state")), StateError::InsideGit { .. }));

    let door = place.path().join("door");
    symlink(&work, &door).unwrap();
    assert!(matches!(refusal(&door.join("state")), StateError::InsideGit { .. }));
}

#[test]
fn a_stopped_compaction_leaves_nothing_behind() {
    let (_place, path) = used();
    let left = path.join("layers/.platform.journal.new");
    fs::write(&left, "half").unwrap();
    let root = StateRoot::open(&path, &holder()).unwrap();
    assert!(!left.exists());
    assert!(root.journals().problems().is_empty());
}

#[test]
fn a_torn_tail_is_cut_by_whoever_holds_the_folder_and_by_nobody_else() {
    let (_place, path) = used();
    let file = path.join("run.journal");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, [&whole[..], b"{\"v\":1,\"run\":\"r2\",\"se"].concat()).unwrap();
    let peek = StateRoot::peek(&path).unwrap().unwrap();
    assert_eq!(peek.notices.len(), 1);
    assert_ne!(fs::read(&file).unwrap(), whole);
    let mut root = StateRoot::open(&path, &holder()).unwrap();
    assert_eq!(root.journals().notices(), peek.notices);
    assert_eq!(fs::read(&file).unwrap(), whole);
    root.journals_mut().start_run(Moment(9), start("r2")).unwrap();
    drop(root);
    let peek = StateRoot::peek(&path).unwrap().unwrap();
    assert_eq!(peek.records.last_run.unwrap().ended, None);
}

#[test]
fn a_damaged_file_is_set_aside_with_its_content() {
    let (_place, path) = used();
    let file = path.join("layers/platform.journal");
    fs::write(&file, "nonsense\n").unwrap();
    let mut root = StateRoot::open(&path, &holder()).unwrap();
    let aside = root.journals_mut().set_aside(&layer("platform")).unwrap().kept_as.unwrap();
    assert!(!file.exists());
    assert_eq!(fs::read_to_string(path.join(aside)).unwrap(), "nonsense\n");
    root.journals_mut().start_run(Moment(9), start("r2")).unwrap();
    let step = StepId::new("platform", "image");
    root.journals_mut().append(Moment(9), &layer("platform"), intent(&step)).unwrap();
    root.journals_mut().end_run(Moment(9), RunOutcome::Failed).unwrap();
    drop(root);
    let root = StateRoot::open(&path, &holder()).unwrap();
    assert!(root.journals().problems().is_empty());
    assert_eq!(root.journals().records().step(&step).word(), "intended");
}

#[test]
fn a_dead_holder_s_lock_is_taken_over_whoever_has_its_number_now() {
    let (_place, path) = used();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let this = Holder::this(host, Moment(0), "castle up".into());
    // The name of a holder that was killed stays in the file; its number is that of another process by now.
    let reused = Holder { born: this.born.map(|born| born + 1), ..this.clone() };
    fs::write(path.join("lock"), serde_json::to_vec(&reused).unwrap()).unwrap();
    assert_eq!(StateRoot::holder(&path).unwrap(), None, "nobody is at work");
    assert_eq!(StateRoot::peek(&path).unwrap().unwrap().holder, None);
    let held = StateRoot::open(&path, &this).unwrap();
    assert_eq!(StateRoot::holder(&path).unwrap(), Some(this));
    // A lock that is held under a stale name: the one who waits is not sent after an innocent process.
    fs::write(path.join("lock"), serde_json::to_vec(&reused).unwrap()).unwrap();
    let error = refusal(&path);
    assert!(error.to_string().contains("is of one that has ended"), "{error}");
    assert!(!error.hint().contains("stop process"), "{}", error.hint());
    drop(held);
}

#[test]
fn a_clock_that_jumps_breaks_no_journal() {
    let (_place, path) = used();
    for (number, at) in [u64::MAX, 0, 1_770_033_599_999, 5].into_iter().enumerate() {
        let mut root = StateRoot::open(&path, &holder()).unwrap();
        let journals = root.journals_mut();
        let step = StepId::of("platform", "vm", &format!("n{number}"));
        journals.start_run(Moment(at), start(&format!("jump{number}"))).unwrap();
        journals.append(Moment(at / 2), &layer("platform"), intent(&step)).unwrap();
        journals.append(Moment(at / 3), &layer("platform"), outcome(&step)).unwrap();
        journals.end_run(Moment(at / 4), RunOutcome::Done).unwrap();
    }
    let peek = StateRoot::peek(&path).unwrap().unwrap();
    assert!(peek.problems.is_empty() && peek.notices.is_empty());
    assert_eq!(peek.records.steps.len(), 5);
    let mut root = StateRoot::open(&path, &holder()).unwrap();
    root.journals_mut().start_run(Moment(0), start("last")).unwrap();
    root.journals_mut().end_run(Moment(0), RunOutcome::Done).unwrap();
    root.journals_mut().compact(Moment(0)).unwrap();
    drop(root);
    assert!(StateRoot::open(&path, &holder()).unwrap().journals().problems().is_empty());
}

/// One castle holds the folder and has begun a run; somebody loses it; another castle begins where it was.
fn held_and_lost(lose: impl Fn(&Path)) {
    let (_place, path) = used();
    let step = StepId::new("platform", "image");
    let mut first = StateRoot::open(&path, &holder()).unwrap();
    first.journals_mut().start_run(Moment(5), start("r2")).unwrap();
    lose(&path);
    let journals = first.journals_mut();
    let mut record = |at| {
        journals.append(Moment(at), &layer("platform"), intent(&step))?;
        journals.commit()
    };
    let told = record(6).unwrap_err();
    let why = std::error::Error::source(&told).map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("somebody has moved or deleted the state folder"), "{told}: {why}");
    let second = StateRoot::open(&path, &holder()).unwrap();
    assert!(record(7).is_err(), "nor does it ever again");
    drop(first);
    assert!(matches!(refusal(&path), StateError::Locked { .. }), "the second holds it still");
    drop(second);
}

#[test]
fn whoever_lost_the_folder_records_nothing_more() {
    held_and_lost(|path| fs::remove_dir_all(path).unwrap());
    held_and_lost(|path| fs::rename(path, path.with_extension("old")).unwrap());
    held_and_lost(|path| fs::remove_file(path.join("lock")).unwrap());
    held_and_lost(|path| {
        fs::rename(path, path.with_extension("old")).unwrap();
        drop(StateRoot::open(path, &holder()).unwrap());
    });
}
