//! Tasks: long work that Proxmox does on its own and that is followed by its name.

use std::fmt;
use std::str::FromStr;

use castle_model::{Bug, VmId, planted};
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Proxmox, ProxmoxError};
use crate::form::segment;

/// The name of a task: `UPID:node:pid:pstart:starttime:type:id:user:`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Upid {
    text: String,
    node: String,
    kind: String,
    object: String,
    user: String,
}

impl Upid {
    /// The node that works on it.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What kind of work it is, such as `qmcreate`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What it works on: a guest's number, a file name, a storage.
    #[must_use]
    pub fn object(&self) -> &str {
        &self.object
    }
}

impl FromStr for Upid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        // Eight parts and a colon at the end.
        match parts.as_slice() {
            ["UPID", node, pid, pstart, start, kind, object, user, ""]
                if !node.is_empty()
                    && !kind.is_empty()
                    && !user.is_empty()
                    && [pid, pstart, start].iter().all(|p| u64::from_str_radix(p, 16).is_ok()) =>
            {
                Ok(Self {
                    text: text.to_owned(),
                    node: (*node).to_owned(),
                    kind: (*kind).to_owned(),
                    object: (*object).to_owned(),
                    user: (*user).to_owned(),
                })
            }
            _ => Err(format!("`{text}` is not the name of a Proxmox task")),
        }
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStatus {
    /// It is being worked on.
    Running,
    /// It is done.
    Ok,
    /// It is done, with this many warnings.
    Warnings(u32),
    /// It failed, in Proxmox' words.
    Failed(String),
}

#[derive(Deserialize)]
struct Status {
    status: String,
    exitstatus: Option<String>,
}

impl From<Status> for TaskStatus {
    fn from(status: Status) -> Self {
        if status.status != "stopped" {
            return Self::Running;
        }
        Self::ended(status.exitstatus.as_deref().unwrap_or("unexpected status"))
    }
}

impl TaskStatus {
    /// How a task stands that ended with these words.
    fn ended(exit: &str) -> Self {
        if exit == "OK" {
            return Self::Ok;
        }
        match exit.strip_prefix("WARNINGS: ").and_then(|count| count.parse().ok()) {
            Some(count) => Self::Warnings(count),
            None => Self::Failed(exit.to_owned()),
        }
    }
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes that are here.
    pub done: u64,
    /// Bytes of the whole.
    pub total: u64,
}

impl Fetched {
    /// Reads it from the log of a download, which wget writes in its style for large files: the length, then lines of dots, each
    /// of a mebibyte, with the kibibytes at which the line begins. Nothing if the log tells none of it (yet).
    fn read<'a>(log: impl DoubleEndedIterator<Item = &'a str> + Clone) -> Option<Self> {
        let number = |text: &str| -> Option<u64> {
            text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
        };
        let total = log.clone().find_map(|line| number(line.strip_prefix("Length: ")?))?;
        let row = |line: &str| -> Option<u64> {
            let (begin, dots) = line.trim_start().split_once("K ")?;
            let begin = begin.parse::<u64>().ok()?;
            let dots = dots.chars().take_while(|c| matches!(c, '.' | ' ')).filter(|c| *c == '.');
            let dots = u64::try_from(dots.count()).ok()?;
            begin.checked_mul(1 << 10)?.checked_add(dots << 20)
        };
        let done = log.rev().find_map(row).unwrap_or(0);
        (total > 0).then(|| Self { done: done.min(total), total })
    }
}

#[derive(Deserialize)]
struct Listed {
    upid: String,
    status: Option<String>,
}

#[derive(Deserialize)]
struct LogLine {
    t: String,
}

/// Lines of a log that are read: those of an image of 16 GB.
const LOG_LINES: usize = 512;

impl Proxmox {
    /// How a task stands.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the task.
    pub async fn task_status(&self, task: &Upid) -> Result<TaskStatus, ProxmoxError> {
        let name = segment(&task.text);
        let status: Status =
            self.get(&format!("/nodes/{}/tasks/{name}/status", segment(&task.node)), &[]).await?;
        Ok(status.into())
    }

    /// How far a download is, by its log; nothing if that does not tell.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn fetched(&self, task: &Upid) -> Result<Option<Fetched>, ProxmoxError> {
        let path = format!("/nodes/{}/tasks/{}/log", segment(&task.node), segment(&task.text));
        let log: Vec<LogLine> = self.get(&path, &[("limit", LOG_LINES.to_string())]).await?;
        Ok(Fetched::read(log.iter().map(|line| line.t.as_str())))
    }

    /// The tasks of a node that still run, those of our own token at least.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn running_tasks(&self, node: &str) -> Result<Vec<Upid>, ProxmoxError> {
        if planted(Bug::SecondDownload) {
            return Ok(Vec::new());
        }
        let path = format!("/nodes/{}/tasks", segment(node));
        let listed: Vec<Listed> = self.get(&path, &[("source", "active".to_owned())]).await?;
        Ok(listed.into_iter().filter_map(|task| task.upid.parse().ok()).collect())
    }
}

impl Proxmox {
    /// The newest making of a VM by a task of our own token that the node still knows, with how it stands. One that is newer
    /// and somebody else's hides it, if the token may see that.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn own_making(
        &self,
        node: &str,
        vmid: VmId,
    ) -> Result<Option<(Upid, TaskStatus)>, ProxmoxError> {
        let path = format!("/nodes/{}/tasks", segment(node));
        let query = [
            ("source", "all".to_owned()),
            ("typefilter", "qmcreate".to_owned()),
            ("vmid", vmid.to_string()),
        ];
        // The newest comes first.
        let listed: Vec<Listed> = self.get(&path, &query).await?;
        Ok(listed.into_iter().next().and_then(|newest| {
            let task: Upid = newest.upid.parse().ok()?;
            let own = task.kind == "qmcreate"
                && task.object == vmid.to_string()
                && task.user == self.token_name();
            let status = match newest.status.as_deref() {
                None | Some("RUNNING") => TaskStatus::Running,
                Some(exit) => TaskStatus::ended(exit),
            };
            own.then_some((task, status))
        }))
    }
}

/// The task that an answer names.
pub(crate) fn named(call: &str, data: &Value) -> Result<Upid, ProxmoxError> {
    let malformed = |why| ProxmoxError::Malformed { call: call.to_owned(), why };
    data.as_str()
        .ok_or_else(|| malformed("it names no task".to_owned()))?
        .parse()
        .map_err(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tasks_are_read() {
        let text = "UPID:pve1:00000173:0003B5D0:6AFA4CF0:qmcreate:422:root@pam!ci:";
        let task: Upid = text.parse().unwrap();
        assert_eq!((task.node(), task.kind(), task.object()), ("pve1", "qmcreate", "422"));
        assert_eq!(task.to_string(), text);
        // pstart grows to nine digits on a host that has been up long; an object may be empty.
        assert!(
            "UPID:pve:00000173:10003B5D0:6AFA4CF0:aptupdate::root@pam:".parse::<Upid>().is_ok()
        );
        for bad in
            ["", "UPID:", "UPID:pve1:1:2:3:qmcreate:422:root@pam", "UPID:pve1:x:2:3:a:4:root:"]
        {
            assert!(bad.parse::<Upid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_log_of_a_download_tells_how_far_it_is() {
        let mut log = vec![
            "downloading https://factory/image/a to /var/lib/vz/import/a.qcow2",
            "--2026-11-16 00:40:38--  https://factory/image/a",
            "HTTP request sent, awaiting response... 200 OK",
        ];
        let read = |log: &[&str]| Fetched::read(log.iter().copied()).map(|f| (f.done, f.total));
        assert_eq!(read(&log), None);
        log.push("Length: 104857600 (100M) [application/octet-stream]");
        log.push("Saving to: '/var/lib/vz/import/a.qcow2.tmp_dwnl.1701'");
        assert_eq!(read(&log), Some((0, 104_857_600)));
        log.push("     0K ........ ........ ........ ........ 32%  427M 0s");
        assert_eq!(read(&log), Some((32 << 20, 104_857_600)));
        // A line that is still being written has no percentage.
        log.push(" 32768K ........ ..");
        assert_eq!(read(&log), Some((42 << 20, 104_857_600)));
        log.push(" 98304K ........                           100%  1.08G=0.2s");
        log.push("2026-11-16 00:40:38 (427 MB/s) - 'a' saved [104857600/104857600]");
        assert_eq!(read(&log), Some((104_857_600, 104_857_600)));
        // What a server does not tell, or tells wrongly, is not invented.
        assert_eq!(read(&["Length: unspecified [text/html]", "     0K ...."]), None);
        assert_eq!(read(&["Length: 0", "     0K"]), None);
        assert_eq!(
            read(&["Length: 5 (5)", "99999999999999999999K ...", "18446744073709551615K ."]),
            Some((0, 5))
        );
    }

    #[test]
    fn warnings_are_success_and_other_words_are_not() {
        let judge = |status: &str, exit: Option<&str>| {
            TaskStatus::from(Status {
                status: status.to_owned(),
                exitstatus: exit.map(str::to_owned),
            })
        };
        assert_eq!(judge("running", None), TaskStatus::Running);
        assert_eq!(judge("stopped", Some("OK")), TaskStatus::Ok);
        assert_eq!(judge("stopped", Some("WARNINGS: 2")), TaskStatus::Warnings(2));
        assert_eq!(
            judge("stopped", Some("VM is locked (clone)")),
            TaskStatus::Failed("VM is locked (clone)".to_owned())
        );
        assert!(matches!(judge("stopped", None), TaskStatus::Failed(_)));
    }
}
