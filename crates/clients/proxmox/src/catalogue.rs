//! The real messages of Proxmox and what each means for us.

use castle_model::{Class, Failure};

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

const fn row(parts: &'static [&'static str], class: Class, hint: Option<&'static str>) -> Row {
    Row { parts, meaning: Meaning { class, hint } }
}

/// Messages of answers and of tasks, the first that fits wins.
const ROWS: &[Row] = &[
    row(&["pool '", "does not exist"], Class::Invalid, Some("create the pool, or leave it out")),
    row(
        &["Permission check failed"],
        Class::Denied,
        Some(
            "give the token the privilege named; a token with privilege separation needs its own ACL",
        ),
    ),
    row(&["Only root can pass"], Class::Denied, None),
    row(
        &["already exists on node"],
        Class::Conflict,
        Some("somebody made it in between: run `castle plan` again"),
    ),
    row(&["config file already exists"], Class::Conflict, None),
    row(&["VM ", " already exists"], Class::Conflict, None),
    row(&["refusing to override existing file"], Class::Conflict, None),
    row(&["checksum mismatch (file change by other user?)"], Class::Conflict, None),
    row(&["is running - destroy failed"], Class::Conflict, None),
    row(
        &["protection mode enabled"],
        Class::Conflict,
        Some("take the protection off in Proxmox, if the VM may really go"),
    ),
    row(&["still in use by linked clone"], Class::Conflict, None),
    row(
        &["no quorum"],
        Class::Transient,
        Some("the Proxmox cluster has lost its quorum: bring its nodes back"),
    ),
    row(&["VM is locked"], Class::Transient, None),
    row(&["can't lock file", "got timeout"], Class::Transient, None),
    row(&["Configuration file '", "does not exist"], Class::Gone, None),
    row(&["unable to find configuration file for VM"], Class::Gone, None),
    row(&["no such task"], Class::Gone, None),
    row(&["unable to parse worker upid"], Class::Bug, None),
    row(
        &["hostname lookup '", "failed"],
        Class::Invalid,
        Some("compare `node` with the names that Proxmox shows"),
    ),
    row(
        &["No such storage"],
        Class::Invalid,
        Some("compare the storage's name with those that Proxmox shows"),
    ),
    row(
        &["storage '", "does not exist"],
        Class::Invalid,
        Some("compare the storage's name with those that Proxmox shows"),
    ),
    row(
        &["bridge '", "does not exist"],
        Class::Invalid,
        Some("compare `bridge` with the networks of the node"),
    ),
    row(&["volume '", "does not exist"], Class::Gone, None),
    row(&["shrinking disks is not supported"], Class::Invalid, None),
    row(&["checksum mismatch"], Class::Invalid, None),
    row(
        &["download failed: exit code 8"],
        Class::Gone,
        Some("the server behind the URL has no such file: compare the version and the schematic"),
    ),
    row(&["download failed"], Class::Transient, None),
    row(&["QEMU guest agent is not running"], Class::Transient, None),
    row(&["unexpected status"], Class::Transient, None),
    row(&["got timeout"], Class::Transient, None),
];

/// What an answer with this status and these words means.
#[must_use]
pub fn meaning(status: u16, text: &str) -> Meaning {
    let plain = |class| Meaning { class, hint: None };
    match status {
        401 => {
            return Meaning {
                class: Class::Denied,
                hint: Some(
                    "the token's name or secret is wrong, or the token has expired or was removed",
                ),
            };
        }
        // pveproxy cannot reach the daemon or the node behind it.
        595..=599 | 502..=504 | 429 => return plain(Class::Transient),
        _ => {}
    }
    if let Some(found) = words(text) {
        return found;
    }
    plain(match status {
        403 => Class::Denied,
        // Proxmox uses 500 for nearly everything that it refuses; words that we do not know are not worth a retry.
        _ => Class::Invalid,
    })
}

/// What the exit status of a failed task means.
#[must_use]
pub fn task(text: &str) -> Meaning {
    words(text).unwrap_or(Meaning { class: Class::Invalid, hint: None })
}

/// The failure behind an answer.
#[must_use]
pub fn failure(status: u16, text: &str, what: impl Into<String>) -> Failure {
    let meaning = meaning(status, text);
    let mut failure =
        Failure::new(meaning.class, what, format!("Proxmox answers {status}: {text}"));
    failure.hint = meaning.hint.map(str::to_owned);
    failure
}

/// The failure behind a task that ended badly.
#[must_use]
pub fn task_failure(text: &str, what: impl Into<String>) -> Failure {
    let meaning = task(text);
    let mut failure = Failure::new(meaning.class, what, format!("the task failed: {text}"));
    failure.hint = meaning.hint.map(str::to_owned);
    failure
}

fn words(text: &str) -> Option<Meaning> {
    ROWS.iter().find(|row| row.parts.iter().all(|part| text.contains(part))).map(|row| row.meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_they_mean() {
        use Class::{Bug, Conflict, Denied, Gone, Invalid, Transient};
        for (status, text, class) in [
            (401, "No ticket", Denied),
            (401, "Authentication failed!", Denied),
            (403, "Permission check failed (/nodes/pve1, Sys.Audit)", Denied),
            (403, "Permission check failed", Denied),
            (403, "Permission check failed (pool 'nosuch' does not exist)", Invalid),
            (
                400,
                "Parameter verification failed. vmid: type check ('integer') failed - got 'abc'",
                Invalid,
            ),
            (400, "Parameter verification failed. vmid: VM 421 already exists", Conflict),
            (400, "Parameter verification failed. storage: No such storage.", Invalid),
            (400, "Parameter verification failed. upid: no such task", Gone),
            (400, "Parameter verification failed. upid: unable to parse worker upid", Bug),
            (500, "unable to create VM 421 - VM 421 already exists on node 'pve1'", Conflict),
            (500, "unable to create VM 421: config file already exists", Conflict),
            (500, "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist", Gone),
            (500, "unable to find configuration file for VM 4711 on node 'pve1'", Gone),
            (500, "VM is locked (clone)", Transient),
            (500, "can't lock file '/var/lock/qemu-server/lock-601.conf' - got timeout", Transient),
            (500, "checksum mismatch (file change by other user?)", Conflict),
            (
                500,
                "hostname lookup 'nosuch' failed - failed to get address info for: nosuch: Name or service not known",
                Invalid,
            ),
            (500, "storage 'x' does not exist", Invalid),
            (500, "pool 'nosuch' does not exist", Invalid),
            (500, "VM 422 is running - destroy failed", Conflict),
            (500, "can't remove VM 423 - protection mode enabled", Conflict),
            (500, "Only root can pass arbitrary filesystem paths. at ...", Denied),
            (500, "cluster not ready - no quorum?", Transient),
            (500, "no options specified", Invalid),
            (501, "Method 'GET /nosuch' not implemented", Invalid),
            (595, "Connection refused", Transient),
            (596, "Connection timed out", Transient),
        ] {
            assert_eq!(meaning(status, text).class, class, "{status} {text}");
        }
    }

    #[test]
    fn tasks_fail_for_reasons() {
        use Class::{Conflict, Gone, Invalid, Transient};
        for (text, class) in [
            ("VM is locked (clone)", Transient),
            ("Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist", Gone),
            ("bridge 'vmbr0' does not exist", Invalid),
            ("refusing to override existing file '/var/lib/vz/import/x.qcow2'", Conflict),
            ("download failed: exit code 8", Gone),
            ("download failed: received interrupt", Transient),
            ("shrinking disks is not supported", Invalid),
            ("unexpected status", Transient),
            ("VM quit/powerdown failed - got timeout", Transient),
            (
                "base volume 'local:700/base-700-disk-0.qcow2' is still in use by linked cloned",
                Conflict,
            ),
        ] {
            assert_eq!(task(text).class, class, "{text}");
        }
    }
}
