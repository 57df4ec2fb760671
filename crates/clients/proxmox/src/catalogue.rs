//! The real messages of Proxmox and what each means for us: whether it may be tried again, and what a person can do.

use castle_model::{Class, Failure};

#[cfg(test)]
mod tests;

/// What a message means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// Decides whether the same thing may be tried again.
    pub class: Class,
    /// What a person can do about it.
    pub hint: Option<&'static str>,
}

/// One row: a message that holds all of `parts` means this.
struct Row {
    parts: &'static [&'static str],
    meaning: Meaning,
}

const fn row(parts: &'static [&'static str], class: Class, hint: &'static str) -> Row {
    Row { parts, meaning: Meaning { class, hint: Some(hint) } }
}

const LOOK_AT_NODE: &str = "compare `node` with the names that Proxmox shows";
const LOOK_AT_STORAGE: &str =
    "compare the storage's name and content with those that Proxmox shows";
const MAKE_ROOM: &str = "make room on the storage, or name another one in the castle file";
const IN_PERSON: &str =
    "no token may do this, not even one of root: only the user root@pam in person";
const OVERTAKEN: &str = "somebody made it in between: run `castle plan` again";
const NOT_OURS: &str = "castle does not ask for this: somebody works on the same VM";
const REPORT: &str = "castle sent something that Proxmox does not take: please report it";
const WAIT: &str = "another task works on it: look at the tasks of the node; a lock that nobody holds any more is taken \
                    off with `qm unlock`";
const HALF_MADE: &str = "it is still being made, or whoever made it died on the way; if no task of the node works on it, on the \
                         host: qm unlock VMID, then qm destroy VMID --purge";
const LATER: &str = "the node is busy: run the same command again";

/// Messages of answers and of tasks, the first that fits wins.
const ROWS: &[Row] = &[
    // Who may.
    row(&["pool '", "does not exist"], Class::Invalid, "create the pool, or leave it out"),
    row(&["not available with API token"], Class::Denied, IN_PERSON),
    row(
        &["Permission check failed"],
        Class::Denied,
        "give the token the privilege named; a token with privilege separation needs its own ACL, and so does its user",
    ),
    row(&["Only root can pass"], Class::Denied, IN_PERSON),
    row(&["Only root may use"], Class::Denied, IN_PERSON),
    row(&["only root can "], Class::Denied, IN_PERSON),
    // What is there already, or in use.
    row(&["already exists on node"], Class::Conflict, OVERTAKEN),
    row(&["config file already exists"], Class::Conflict, OVERTAKEN),
    row(&["VM ", " already exists"], Class::Conflict, OVERTAKEN),
    row(&["pool '", "already exists"], Class::Conflict, OVERTAKEN),
    row(
        &["unable to get any free VMID"],
        Class::Conflict,
        "free some of the numbers, or name others in the castle file",
    ),
    row(
        &["refusing to override existing file"],
        Class::Conflict,
        "a file of that name lies there: look whether it is whole, and remove it if it is not",
    ),
    row(
        &["checksum mismatch (file change by other user?)"],
        Class::Conflict,
        "somebody changed the VM in between: run the same command again",
    ),
    row(
        &["is running - destroy failed"],
        Class::Conflict,
        "somebody started it: run the same command again",
    ),
    row(&["container is running"], Class::Conflict, NOT_OURS),
    row(
        &["protection mode enabled"],
        Class::Conflict,
        "take the protection off in Proxmox, if the VM may really go",
    ),
    row(
        &["still in use by linked clone"],
        Class::Conflict,
        "remove the clones first; castle makes none",
    ),
    row(
        &["a guest with VMID '", "exists"],
        Class::Conflict,
        "remove the guest first: its disks go with it",
    ),
    row(&["is not empty (contains VM"], Class::Conflict, NOT_OURS),
    row(&["already running"], Class::Conflict, NOT_OURS),
    row(&["if VM is running"], Class::Conflict, NOT_OURS),
    row(
        &["QEMU guest agent is not running"],
        Class::Transient,
        "the guest has not started its agent yet",
    ),
    row(&["VM ", " not running"], Class::Conflict, NOT_OURS),
    row(
        &["if it's a template"],
        Class::Conflict,
        "the VM is a template: castle makes none, so somebody else did",
    ),
    row(&["template to a template"], Class::Conflict, NOT_OURS),
    // What passes by itself.
    row(
        &["no quorum"],
        Class::Transient,
        "the Proxmox cluster has lost its quorum: bring its nodes back",
    ),
    row(&["VM is locked (create)"], Class::Conflict, HALF_MADE),
    row(&["VM is locked"], Class::Transient, WAIT),
    row(&["CT is locked"], Class::Transient, WAIT),
    row(&["can't lock file", "got timeout"], Class::Transient, WAIT),
    row(&["cfs-lock", "timeout"], Class::Transient, WAIT),
    row(&["Failed to get", "lock"], Class::Transient, WAIT),
    row(
        &["powerdown failed", "got timeout"],
        Class::Transient,
        "the guest does not listen to a shutdown: it is switched off instead",
    ),
    row(
        &["unexpected status"],
        Class::Transient,
        "the worker was killed: look at the node's log for the reason",
    ),
    row(
        &["storage '", "is not online"],
        Class::Transient,
        "the storage cannot be reached from the node: look at it there",
    ),
    // What is not there.
    row(
        &["Configuration file '", "does not exist"],
        Class::Gone,
        "the VM is gone: somebody removed it",
    ),
    row(
        &["unable to find configuration file for VM"],
        Class::Gone,
        "the VM is gone: somebody removed it",
    ),
    row(
        &["no such task"],
        Class::Gone,
        "Proxmox has forgotten the task: what it made is looked at instead",
    ),
    row(&["unable to parse worker upid"], Class::Bug, REPORT),
    row(&["hostname lookup '", "failed"], Class::Invalid, LOOK_AT_NODE),
    row(&["address lookup for '", "did not find"], Class::Invalid, LOOK_AT_NODE),
    row(&["no such cluster node"], Class::Invalid, LOOK_AT_NODE),
    row(&["No such storage"], Class::Invalid, LOOK_AT_STORAGE),
    row(&["storage '", "does not exist"], Class::Invalid, LOOK_AT_STORAGE),
    row(
        &["storage '", "is not configured for content-type"],
        Class::Invalid,
        "allow that content on the storage (Datacenter, Storage, Content), or name another one",
    ),
    row(
        &["storage '", "does not support"],
        Class::Invalid,
        "allow that content on the storage (Datacenter, Storage, Content), or name another one",
    ),
    row(
        &["storage '", "is disabled"],
        Class::Invalid,
        "switch the storage on, or name another one",
    ),
    row(
        &["storage '", "is not available on node"],
        Class::Invalid,
        "allow the storage on the node, or name another one",
    ),
    row(
        &["bridge '", "does not exist"],
        Class::Invalid,
        "compare `bridge` with the networks of the node",
    ),
    row(&["unable to parse", "volume name"], Class::Invalid, LOOK_AT_STORAGE),
    row(
        &["failed to stat '"],
        Class::Gone,
        "the image is not on the storage any more: run the same command again",
    ),
    row(&["volume_size_info on '", "failed"], Class::Gone, "the file is not on the storage"),
    row(&["volume '", "does not exist"], Class::Gone, "the volume is gone: somebody removed it"),
    row(&["disk '", "does not exist"], Class::Gone, "the VM has lost a disk: somebody changed it"),
    // Files and space.
    row(&["o space left"], Class::Invalid, MAKE_ROOM),
    row(&["free space in thin pool"], Class::Invalid, MAKE_ROOM),
    row(
        &["copy failed: command", "qemu-img convert"],
        Class::Invalid,
        "look at the task's log for what qemu-img says; mostly the storage is full",
    ),
    row(
        &["Image is not in", "format"],
        Class::Invalid,
        "the image on the storage is broken off or packed: remove it, and run the same command again",
    ),
    row(
        &["shrinking disks is not supported"],
        Class::Invalid,
        "disks never shrink: put the size in the castle file back",
    ),
    row(
        &["checksum mismatch"],
        Class::Invalid,
        "the file is not the one that is pinned: look who changed it, or remove its entry from castle.lock, and `castle lock` pins it anew",
    ),
    row(
        &["download failed: exit code 8"],
        Class::Gone,
        "the server behind the URL has no such file: compare the version and the schematic",
    ),
    row(
        &["download failed: exit code 5"],
        Class::Invalid,
        "the node does not trust the server behind the URL: look at its clock and its certificates",
    ),
    row(&["download failed: exit code 3"], Class::Invalid, MAKE_ROOM),
    row(
        &["download failed: received interrupt"],
        Class::Transient,
        "somebody stopped the download: run the same command again",
    ),
    row(
        &["download failed"],
        Class::Transient,
        "the node cannot reach the server behind the URL: look at its network and its DNS",
    ),
    row(
        &["invalid server response"],
        Class::Gone,
        "the server behind the URL has no such file: compare the version and the schematic",
    ),
    // Guests.
    row(&["No QEMU guest agent configured"], Class::Invalid, "the VM was made without an agent"),
    row(
        &["KVM virtualisation configured, but not available"],
        Class::Invalid,
        "switch virtualisation on in the host's firmware",
    ),
    row(&["start failed"], Class::Invalid, "look at the task's log for what QEMU says"),
    row(
        &["received interrupt"],
        Class::Transient,
        "somebody stopped the task: run the same command again",
    ),
    // What castle itself got wrong.
    row(&["no options specified"], Class::Bug, REPORT),
    row(&["invalid filename or wrong extension"], Class::Bug, REPORT),
    row(&["Unexpected content for method"], Class::Bug, REPORT),
    row(&["no formatter for uri"], Class::Bug, REPORT),
    row(&["at character offset"], Class::Bug, REPORT),
    row(&["not allowed for linked clones"], Class::Bug, REPORT),
    row(&["Linked clone feature is not supported"], Class::Bug, REPORT),
    row(&["snapshot feature is not available"], Class::Bug, REPORT),
    row(&["duplicate parameter (already defined in URI)"], Class::Bug, REPORT),
    row(&["requires special syntax"], Class::Bug, REPORT),
    row(
        &["Method '", "not implemented"],
        Class::Invalid,
        "this Proxmox does not know the call: castle is made for version 9.2",
    ),
    row(
        &["method '", "not available"],
        Class::Invalid,
        "this Proxmox does not know the call: castle is made for version 9.2",
    ),
    row(
        &["property is not defined in schema"],
        Class::Invalid,
        "this Proxmox does not know the setting: castle is made for version 9.2",
    ),
    row(
        &["Parameter verification failed"],
        Class::Invalid,
        "compare what is named with the castle file",
    ),
    row(&["got timeout"], Class::Transient, LATER),
];

/// What an answer with this status and these words means.
#[must_use]
pub fn meaning(status: u16, text: &str) -> Meaning {
    let known = |class, hint| Meaning { class, hint: Some(hint) };
    match status {
        401 => known(
            Class::Denied,
            "the token's name or secret is wrong, or the token has expired or was removed",
        ),
        // pveproxy cannot reach the daemon or the node behind it.
        595 => known(
            Class::Transient,
            "the node or its daemon does not answer its proxy: look at pvedaemon on the node",
        ),
        596..=599 => known(
            Class::Transient,
            "the node's daemon did not answer in time: whether it did what was asked is looked at next",
        ),
        502..=504 | 429 => Meaning { class: Class::Transient, hint: None },
        _ => words(text).unwrap_or(Meaning {
            class: if status == 403 { Class::Denied } else { Class::Invalid },
            // Proxmox uses 500 for nearly everything that it refuses; words that we do not know are not worth a retry.
            hint: None,
        }),
    }
}

/// What the exit status of a failed task means.
#[must_use]
pub fn task(text: &str) -> Meaning {
    words(text).unwrap_or(Meaning { class: Class::Invalid, hint: None })
}

/// What to do about an answer whose words nobody knows.
const UNKNOWN: &str = "the system log of the node says more about it; mend that there, then run the same command again";

/// The same for the end of a task.
const UNKNOWN_TASK: &str = "the task's log in Proxmox says more about it; mend that there, then run the same command again";

/// The failure behind an answer.
#[must_use]
pub fn failure(status: u16, text: &str, what: impl Into<String>) -> Failure {
    let meaning = meaning(status, text);
    let mut failure =
        Failure::new(meaning.class, what, format!("Proxmox answers {status}: {text}"));
    failure.hint = match denied(text) {
        Some(lack) => Some(lack.cure()),
        None => Some(meaning.hint.unwrap_or(UNKNOWN).to_owned()),
    };
    failure
}

/// The failure behind a task that ended badly.
#[must_use]
pub fn task_failure(text: &str, what: impl Into<String>) -> Failure {
    let meaning = task(text);
    let failure = Failure::new(meaning.class, what, format!("the task failed: {text}"));
    failure.hint(meaning.hint.unwrap_or(UNKNOWN_TASK))
}

/// A privilege that was missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Where, such as `/vms/421`.
    pub path: String,
    /// Which: one of them is enough.
    pub privileges: Vec<String>,
}

impl Lack {
    fn cure(&self) -> String {
        format!(
            "give the token and its user {} at {}: add it to their role, or run `pveum acl modify {} --tokens \
             'USER@REALM!TOKEN' --roles ROLE` and the same with `--users`",
            self.privileges.join(" or "),
            self.path,
            self.path
        )
    }
}

/// The privilege that a refusal names, if it names one.
#[must_use]
pub fn denied(text: &str) -> Option<Lack> {
    let (_, rest) = text.split_once("Permission check failed (")?;
    let (path, privileges) = rest.split_once(')')?.0.split_once(", ")?;
    path.starts_with('/').then(|| Lack {
        path: path.to_owned(),
        privileges: privileges.split('|').map(str::to_owned).collect(),
    })
}

fn words(text: &str) -> Option<Meaning> {
    ROWS.iter().find(|row| row.parts.iter().all(|part| text.contains(part))).map(|row| row.meaning)
}
