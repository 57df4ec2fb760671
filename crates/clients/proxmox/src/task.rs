//! Tasks: long work that Proxmox does on its own and that is followed by its name.

use std::fmt;
use std::str::FromStr;

use castle_model::{Bug, planted};
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
        let exit = status.exitstatus.unwrap_or_else(|| "unexpected status".to_owned());
        if exit == "OK" {
            return Self::Ok;
        }
        match exit.strip_prefix("WARNINGS: ").and_then(|count| count.parse().ok()) {
            Some(count) => Self::Warnings(count),
            None => Self::Failed(exit),
        }
    }
}

#[derive(Deserialize)]
struct Listed {
    upid: String,
}

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
