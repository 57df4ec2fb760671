//! Tasks: work that Proxmox does after it has answered, with an id to ask after it, a log and an end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::Change;
use super::download::Download;
use super::form::Parameters;
use super::reply::{Answer, Refusal};
use super::trouble::Snag;
use super::{Effect, Proxmox, Request, Turn, seconds};
use crate::durations::Process;

/// How many tasks are remembered; the oldest finished ones go first.
const KEPT: usize = 1000;
/// How long a task takes that fails before it does anything, in milliseconds.
const EARLY_END: u64 = 100;

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) upid: String,
    kind: String,
    id: String,
    user: String,
    pid: u64,
    pstart: u64,
    started: u64,
    ended: Option<u64>,
    exit: Option<String>,
    log: Vec<String>,
    work: Work,
    /// Known from the beginning to fail, and why.
    doomed: Option<String>,
    /// The maker of the guest that it works on: should that one go meanwhile, the next of its number is not meant.
    #[serde(default)]
    guest: Option<u64>,
    /// What is to go wrong with it.
    snag: Option<Snag>,
    /// The other node of the cluster that works on it, if so.
    #[serde(default)]
    pub(super) elsewhere: Option<String>,
    /// When it began and when it will end, in virtual milliseconds; one that hangs has no end.
    #[serde(default)]
    span: (u64, Option<u64>),
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Work {
    /// Makes a guest.
    Create { vmid: u32, options: Parameters, start: bool },
    /// Changes a guest's config.
    Configure { vmid: u32, change: Change },
    /// Switches a guest on.
    Start { vmid: u32 },
    /// Switches it off.
    Stop { vmid: u32 },
    /// Asks it to switch itself off.
    Shutdown { vmid: u32, force: bool, timeout: u64 },
    /// Switches it off and on.
    Reboot { vmid: u32 },
    /// Grows a disk.
    Resize { vmid: u32, disk: String, size: String },
    /// Removes a guest.
    Destroy { vmid: u32, purge: bool, sweep: bool },
    /// Fetches a file.
    Download(Download),
    /// Switches a container off.
    StopContainer { vmid: u32 },
    /// Removes a container.
    DestroyContainer { vmid: u32, sweep: bool },
    /// Removes a volume.
    DeleteVolume { storage: String, volid: String },
}

impl Work {
    fn kind(&self) -> &'static str {
        match self {
            Self::Create { .. } => "qmcreate",
            Self::Configure { .. } => "qmconfig",
            Self::Start { .. } => "qmstart",
            Self::Stop { .. } => "qmstop",
            Self::Shutdown { .. } => "qmshutdown",
            Self::Reboot { .. } => "qmreboot",
            Self::StopContainer { .. } => "vzstop",
            Self::DestroyContainer { .. } => "vzdestroy",
            Self::Resize { .. } => "resize",
            Self::Destroy { .. } => "qmdestroy",
            Self::Download(_) => "download",
            Self::DeleteVolume { .. } => "imgdel",
        }
    }

    fn id(&self) -> String {
        match self {
            Self::Create { vmid, .. }
            | Self::Configure { vmid, .. }
            | Self::Start { vmid }
            | Self::Stop { vmid }
            | Self::Shutdown { vmid, .. }
            | Self::Reboot { vmid }
            | Self::StopContainer { vmid }
            | Self::DestroyContainer { vmid, .. }
            | Self::Resize { vmid, .. }
            | Self::Destroy { vmid, .. } => vmid.to_string(),
            Self::Download(download) => download.filename.clone(),
            Self::DeleteVolume { storage, .. } => storage.clone(),
        }
    }

    /// The guest that it works on; none if it has to do with none, or makes it.
    fn guest(&self) -> Option<u32> {
        match self {
            Self::Configure { vmid, .. }
            | Self::Start { vmid }
            | Self::Stop { vmid }
            | Self::Shutdown { vmid, .. }
            | Self::Reboot { vmid }
            | Self::StopContainer { vmid }
            | Self::DestroyContainer { vmid, .. }
            | Self::Resize { vmid, .. }
            | Self::Destroy { vmid, .. } => Some(*vmid),
            Self::Create { .. } | Self::Download(_) | Self::DeleteVolume { .. } => None,
        }
    }

    /// What takes its time.
    fn process(&self) -> Process {
        match self {
            Self::Create { .. } => Process::VmCreate,
            Self::Configure { .. } => Process::VmConfigure,
            Self::Start { .. } => Process::VmStart,
            Self::Stop { .. } | Self::StopContainer { .. } => Process::VmStop,
            Self::Shutdown { .. } | Self::Reboot { .. } => Process::VmShutdown,
            Self::Resize { .. } => Process::DiskResize,
            Self::Destroy { .. } | Self::DestroyContainer { .. } => Process::VmDestroy,
            Self::Download(_) => Process::ImageDownload,
            Self::DeleteVolume { .. } => Process::VolumeDelete,
        }
    }
}

impl Task {
    /// Whose process it is.
    pub(super) fn pid(&self) -> u64 {
        self.pid
    }

    /// Whether it is known from the beginning to fail.
    pub(super) fn is_doomed(&self) -> bool {
        self.doomed.is_some()
    }

    /// When it began, in virtual milliseconds.
    pub(super) fn began(&self) -> u64 {
        self.span.0
    }

    /// Which part of something that goes evenly is done.
    pub(super) fn part_of(&self, whole: u64, now: u64) -> u64 {
        let (began, Some(due)) = self.span else { return 0 };
        let length = u128::from(due.saturating_sub(began).max(1));
        let passed = u128::from(now.saturating_sub(began)).min(length);
        u64::try_from(u128::from(whole) * passed / length).unwrap_or(whole)
    }
}

impl Proxmox {
    /// Starts a task and answers with its id.
    pub(super) fn begin(&mut self, turn: &mut Turn<'_>, request: &Request, work: Work) -> Answer {
        Answer::changed(json!(self.fork(turn, &request.caller.user, work)))
    }

    /// Starts a task for a user.
    pub(super) fn fork(&mut self, turn: &mut Turn<'_>, user: &str, work: Work) -> String {
        self.forked += 1;
        let number = self.forked;
        let (pid, pstart) = (1000 + number, 0x1000 + turn.now / 10);
        let started = seconds(turn.now);
        let (kind, id) = (work.kind(), work.id());
        let elsewhere = work.guest().and_then(|vmid| self.guests.get(&vmid)?.node.clone());
        let node = elsewhere.as_ref().unwrap_or(&self.node);
        let upid = format!("UPID:{node}:{pid:08X}:{pstart:08X}:{started:08X}:{kind}:{id}:{user}:");
        // What fails at the first look fails at once, so that nobody profits from a slow emulation.
        let snag = self.troubles.snag(kind);
        let doomed = match &snag {
            Some(Snag::Fails(words)) => Some(words.clone()),
            _ => self.judge(&work).err(),
        };
        let delay = match &doomed {
            Some(words) if words.contains("can't lock file") => Process::LockWait.usual(),
            Some(_) => EARLY_END,
            None => self.unwilling(&work).unwrap_or_else(|| turn.draw(work.process(), &id)),
        };
        let due = (snag != Some(Snag::Hangs)).then(|| turn.now + delay);
        if due.is_some() {
            turn.after(delay, Effect::TaskEnds { number });
        }
        let guest = self.maker(&work);
        let task = Task {
            guest,
            snag,
            upid: upid.clone(),
            kind: kind.to_owned(),
            id,
            user: user.to_owned(),
            pid,
            pstart,
            started,
            ended: None,
            exit: None,
            log: Vec::new(),
            work,
            doomed,
            elsewhere,
            span: (turn.now, due),
        };
        self.tasks.insert(number, task);
        self.forget_old_tasks();
        upid
    }

    fn maker(&self, work: &Work) -> Option<u64> {
        self.guests.get(&work.guest()?).map(|guest| guest.maker)
    }

    fn forget_old_tasks(&mut self) {
        while self.tasks.len() > KEPT {
            let old = self.tasks.iter().find(|(_, task)| task.exit.is_some());
            let Some(number) = old.map(|(number, _)| *number) else { return };
            self.tasks.remove(&number);
        }
    }

    /// Ends a task: does its work, or says why not.
    pub(super) fn end(&mut self, turn: &mut Turn<'_>, number: u64) {
        let running = self.tasks.get(&number).filter(|task| task.exit.is_none());
        let Some(task) = running.cloned() else { return };
        let (work, snag) = (&task.work, &task.snag);
        let mut log = Vec::new();
        let outcome = match &task.doomed {
            Some(text) => Err(text.clone()),
            None if *snag == Some(Snag::Lies) => Ok(()),
            None if task.guest != self.maker(work) => Err(self.no_config(task.id.as_str())),
            None => self.judge(work).and_then(|()| self.perform(turn, &task, &mut log)),
        };
        if let Work::Create { vmid, .. } = work
            && (outcome.is_err() || *snag == Some(Snag::Lies))
        {
            self.abandon_create(*vmid);
        }
        let good = match snag {
            Some(Snag::Warns(count)) => format!("WARNINGS: {count}"),
            _ => "OK".to_owned(),
        };
        log.push(match &outcome {
            Ok(()) => format!("TASK {good}"),
            Err(text) => format!("TASK ERROR: {text}"),
        });
        if let Some(task) = self.tasks.get_mut(&number) {
            task.log = log;
            task.ended = Some(seconds(turn.now));
            task.exit = Some(outcome.err().unwrap_or(good));
        }
    }

    /// Ends all tasks that run, as a power cut does: what they had begun stays as it is.
    pub(super) fn kill_tasks(&mut self, turn: &Turn<'_>) {
        for task in self.tasks.values_mut().filter(|task| task.exit.is_none()) {
            task.ended = Some(seconds(turn.now));
            task.exit = Some("unexpected status".to_owned());
        }
    }

    /// Says what stands against a piece of work now.
    fn judge(&self, work: &Work) -> Result<(), String> {
        match work {
            Work::Create { vmid, options, .. } => self
                .judge_create(options)
                .map_err(|text| format!("unable to create VM {vmid} - {text}")),
            Work::Configure { vmid, .. } => self.unlocked(*vmid).map(|_| ()),
            Work::Start { vmid } => self.judge_start(*vmid),
            Work::Stop { vmid } | Work::Shutdown { vmid, .. } | Work::Reboot { vmid } => {
                self.guest(*vmid).map(|_| ())
            }
            Work::StopContainer { vmid } | Work::DestroyContainer { vmid, .. } => {
                self.container(*vmid).map(|_| ())
            }
            Work::Resize { vmid, disk, size } => self.judge_resize(*vmid, disk, size),
            Work::Destroy { vmid, .. } => self.judge_destroy(*vmid),
            Work::Download(download) => self.judge_download(download),
            Work::DeleteVolume { .. } => Ok(()),
        }
    }

    fn perform(
        &mut self,
        turn: &mut Turn<'_>,
        task: &Task,
        log: &mut Vec<String>,
    ) -> Result<(), String> {
        match &task.work {
            Work::Create { vmid, options, start } => {
                self.finish_create(turn, *vmid, options, log)
                    .map_err(|text| format!("unable to create VM {vmid} - {text}"))?;
                if *start {
                    self.fork(turn, &task.user, Work::Start { vmid: *vmid });
                }
                Ok(())
            }
            Work::Configure { vmid, change } => self.finish_configure(turn, *vmid, change, log),
            Work::Start { vmid } => self.finish_start(turn, *vmid),
            Work::Stop { vmid } => self.finish_stop(turn, *vmid),
            Work::Shutdown { vmid, force, .. } => self.finish_shutdown(turn, *vmid, *force, log),
            Work::Reboot { vmid } => self.finish_reboot(turn, *vmid),
            Work::StopContainer { vmid } => self.finish_container_stop(*vmid),
            Work::DestroyContainer { vmid, sweep } => self.finish_container_destroy(*vmid, *sweep),
            Work::Resize { vmid, disk, size } => self.finish_resize(*vmid, disk, size, log),
            Work::Destroy { vmid, purge, sweep } => {
                self.finish_destroy(turn, *vmid, (*purge, *sweep), log)
            }
            Work::Download(download) => {
                self.finish_download(turn, task, download, log);
                Ok(())
            }
            Work::DeleteVolume { volid, .. } => {
                if self.volumes.remove(volid).is_none() {
                    log.push(format!("disk image '{}' does not exist", self.path_of(volid)));
                }
                log.push(format!("Removed volume '{volid}'"));
                Ok(())
            }
        }
    }

    /// The ids of tasks that still run.
    pub(super) fn running_tasks(&self) -> Vec<String> {
        let running = self.tasks.values().filter(|task| task.exit.is_none());
        running.map(|task| task.upid.clone()).collect()
    }

    /// `GET /nodes/N/tasks`.
    pub(super) fn list_tasks(&self, request: &Request) -> Answer {
        let parameters = &request.parameters;
        let source = parameters.get("source").map_or("archive", String::as_str);
        let number = |name: &str| parameters.get(name).and_then(|text| text.parse::<u64>().ok());
        let wanted = |task: &Task| {
            let seen = match source {
                "active" => task.exit.is_none(),
                "all" => true,
                _ => task.exit.is_some(),
            };
            let node = task.elsewhere.as_ref().unwrap_or(&self.node);
            let here = request.path.get("node") == Some(node);
            let own = here && (task.user == request.caller.user || self.is_auditor(request));
            let failed = task.exit.as_ref().is_some_and(|exit| exit != "OK");
            seen && own
                && parameters.get("vmid").is_none_or(|id| *id == task.id)
                && parameters.get("typefilter").is_none_or(|kind| *kind == task.kind)
                && number("since").is_none_or(|since| task.started >= since)
                && number("until").is_none_or(|until| task.started <= until)
                && parameters.get("userfilter").is_none_or(|user| task.user.contains(user))
                && (parameters.get("errors").is_none_or(|only| only != "1") || failed)
        };
        let all: Vec<&Task> = self.tasks.values().rev().filter(|task| wanted(task)).collect();
        let (start, limit) = window(parameters);
        let shown: Vec<Value> =
            all.iter().skip(start).take(limit).map(|task| self.listed(task)).collect();
        Answer::page(json!(shown), all.len())
    }

    /// `GET /cluster/tasks`: of all nodes, the newest first.
    pub(super) fn cluster_tasks(&self, request: &Request) -> Answer {
        // The list names users without tokens, so that a token does not even see its own.
        let own = |_: &&Task| request.caller.may("/", "Sys.Audit");
        let listed: Vec<Value> = self
            .tasks
            .values()
            .rev()
            .filter(own)
            .take(25)
            .map(|task| {
                let mut shown = self.listed(task);
                if let Some(object) = shown.as_object_mut() {
                    object.remove("pstart");
                    object.retain(|key, value| key != "status" || value != "RUNNING");
                    let saved = if task.exit.is_some() { "1" } else { "0" };
                    object.insert("saved".to_owned(), json!(saved));
                }
                shown
            })
            .collect();
        Answer::read(json!(listed))
    }

    fn listed(&self, task: &Task) -> Value {
        let mut shown = self.shown_task(task);
        if let (Some(exit), Some(ended)) = (&task.exit, task.ended) {
            shown["status"] = json!(exit);
            shown["endtime"] = json!(ended);
            return shown;
        }
        // As it stands in the list of the daemon, with user and token in one.
        shown["status"] = json!("RUNNING");
        shown["saved"] = json!("0");
        shown["user"] = json!(task.user);
        if let Some(object) = shown.as_object_mut() {
            object.remove("tokenid");
        }
        shown
    }

    fn shown_task(&self, task: &Task) -> Value {
        let (user, token) = task.user.split_once('!').unwrap_or((&task.user, ""));
        let mut shown = json!({
            "upid": task.upid,
            "node": task.elsewhere.as_ref().unwrap_or(&self.node),
            "pid": task.pid,
            "pstart": task.pstart,
            "starttime": task.started,
            "type": task.kind,
            "id": task.id,
            "user": user,
        });
        if !token.is_empty() {
            shown["tokenid"] = json!(token);
        }
        shown
    }

    /// `DELETE /nodes/N/tasks/UPID`: interrupts a task. What it had begun is taken back as after a failure.
    pub(super) fn stop_task(
        &mut self,
        turn: &Turn<'_>,
        request: &Request,
        upid: &str,
    ) -> Result<Answer, Refusal> {
        if !well_formed(upid) {
            return Err(Refusal::parameter("upid", "unable to parse worker upid"));
        }
        let written = self.task(upid).map(|task| self.written(task, turn.now));
        let found = self.tasks.values_mut().find(|task| task.upid == upid);
        let task = found.ok_or_else(|| Refusal::parameter("upid", "no such task"))?;
        if task.user != request.caller.user {
            request.caller.need(&format!("/nodes/{}", self.node), "Sys.Modify")?;
        }
        if task.exit.is_some() {
            return Ok(Answer::read(Value::Null));
        }
        let exit = match &task.work {
            Work::Download(_) => "download failed: received interrupt",
            _ => "received interrupt",
        };
        let exit = exit.to_owned();
        let begun = written.unwrap_or_default();
        task.ended = Some(seconds(turn.now));
        task.log = begun;
        task.log.push(format!("TASK ERROR: {exit}"));
        task.exit = Some(exit);
        if let Work::Create { vmid, .. } = task.work {
            self.abandon_create(vmid);
        }
        Ok(Answer::changed(Value::Null))
    }

    /// `GET /nodes/N/tasks/UPID/status`.
    pub(super) fn task_status(&self, request: &Request, upid: &str) -> Result<Answer, Refusal> {
        if !well_formed(upid) {
            return Err(Refusal::parameter("upid", "unable to parse worker upid"));
        }
        let task = self.task(upid).ok_or_else(|| Refusal::parameter("upid", "no such task"))?;
        self.may_see(request, task)?;
        let mut shown = self.shown_task(task);
        match &task.exit {
            None => shown["status"] = json!("running"),
            Some(exit) => {
                shown["status"] = json!("stopped");
                shown["exitstatus"] = json!(exit);
            }
        }
        Ok(Answer::read(shown))
    }

    /// `GET /nodes/N/tasks/UPID/log`.
    pub(super) fn task_log(
        &self,
        now: u64,
        request: &Request,
        upid: &str,
    ) -> Result<Answer, Refusal> {
        if !well_formed(upid) {
            return Err(Refusal::parameter("upid", "unable to parse worker upid"));
        }
        let lines = match self.task(upid) {
            None => vec!["unable to open file - No such file or directory".to_owned()],
            Some(task) => {
                self.may_see(request, task)?;
                let log = self.written(task, now);
                if log.is_empty() { vec!["no content".to_owned()] } else { log }
            }
        };
        let (start, limit) = window(&request.parameters);
        let numbered = lines.iter().enumerate().skip(start).take(limit);
        let shown: Vec<Value> =
            numbered.map(|(at, line)| json!({"n": at + 1, "t": line})).collect();
        Ok(Answer::page(json!(shown), lines.len()))
    }

    /// What a task has written so far.
    fn written(&self, task: &Task, now: u64) -> Vec<String> {
        match &task.work {
            Work::Download(download) if task.exit.is_none() => {
                self.download_log(task, download, now)
            }
            _ => task.log.clone(),
        }
    }

    fn task(&self, upid: &str) -> Option<&Task> {
        self.tasks.values().find(|task| task.upid == upid)
    }

    fn may_see(&self, request: &Request, task: &Task) -> Result<(), Refusal> {
        if task.user == request.caller.user {
            return Ok(());
        }
        request.caller.need(&format!("/nodes/{}", self.node), "Sys.Audit")
    }

    fn is_auditor(&self, request: &Request) -> bool {
        request.caller.may(&format!("/nodes/{}", self.node), "Sys.Audit")
    }
}

/// Where a page begins and how long it is.
fn window(parameters: &BTreeMap<String, String>) -> (usize, usize) {
    let number = |name: &str| parameters.get(name).and_then(|text| text.parse().ok());
    (number("start").unwrap_or(0), number("limit").unwrap_or(50))
}

fn well_formed(upid: &str) -> bool {
    let pieces: Vec<&str> = upid.split(':').collect();
    let hex = |text: &str| text.len() >= 8 && text.chars().all(|c| c.is_ascii_hexdigit());
    pieces.len() == 9 && pieces[0] == "UPID" && pieces[2..5].iter().all(|piece| hex(piece))
}
