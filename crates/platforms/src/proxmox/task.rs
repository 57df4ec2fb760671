//! Following a Proxmox task to its end, in this run or from an earlier one that was killed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use castle_engine::{Context, Pace};
use castle_model::{Bug, Class, Failure, Verdict, VmId, planted};
use castle_proxmox::{Fetched, Proxmox, TaskStatus, Upid, catalogue};

/// Makes a task's name durable and waits for its end.
pub(super) async fn follow(
    cx: &Context,
    client: &Proxmox,
    task: &Upid,
    what: &str,
) -> Result<(), Failure> {
    if !planted(Bug::TaskUnnamed) {
        cx.task(&task.to_string()).await?;
    }
    finish(cx, client, task, what).await
}

/// How often a task is asked for: what Proxmox only switches off or throws away is over soon.
fn pace(task: &Upid) -> Pace {
    match task.kind() {
        "qmstop" | "vzstop" | "qmdestroy" | "vzdestroy" | "imgdel" => Pace::BRIEF_TASK,
        _ => Pace::TASK,
    }
}

/// Tells how far a download is. Nothing depends on it: what the log does not tell, or an answer that does not come, is no failure.
struct Meter {
    asked: AtomicU32,
    told: AtomicU64,
}

impl Meter {
    /// The log is read at each second question about the task, which comes each half second by then.
    const EACH: u32 = 2;

    fn new() -> Self {
        Self { asked: AtomicU32::new(0), told: AtomicU64::new(u64::MAX) }
    }

    async fn read(&self, cx: &Context, client: &Proxmox, task: &Upid) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if task.kind() != "download" || !asked.is_multiple_of(Self::EACH) {
            return;
        }
        let Ok(Some(Fetched { done, total })) = client.fetched(task).await else { return };
        // By whole percents, so that a large file does not fill the events of a run.
        let percent = done.saturating_mul(100) / total;
        if self.told.swap(percent, Ordering::Relaxed) != percent {
            cx.fetched(done, total);
        }
    }
}

/// Waits for the end of a task whose name is durable already.
async fn finish(cx: &Context, client: &Proxmox, task: &Upid, what: &str) -> Result<(), Failure> {
    let meter = Meter::new();
    let meter = &meter;
    let warnings = cx
        .wait(pace(task), what, || async move {
            let status = client.task_status(task).await.map_err(|error| error.failure(what))?;
            Ok(match status {
                TaskStatus::Running => {
                    meter.read(cx, client, task).await;
                    Verdict::waiting(format!("Proxmox' task {} is running", task.kind()))
                }
                TaskStatus::Ok => Verdict::Ready(Ok(0)),
                TaskStatus::Warnings(count) => Verdict::Ready(Ok(count)),
                TaskStatus::Failed(_) if planted(Bug::TaskFailureIsSuccess) => {
                    Verdict::Ready(Ok(0))
                }
                TaskStatus::Failed(text) => Verdict::Ready(Err(text)),
            })
        })
        .await
        .map_err(|failure| or_end(failure, task))?;
    // What has ended does not hang, whatever may be tried again.
    let warnings =
        warnings.map_err(|text| catalogue::task_failure(&text, what).evidence(task.to_string()))?;
    if warnings > 0 {
        cx.notice(format!("{what}: done with {warnings} warnings, see the log of {task}"));
    }
    Ok(())
}

/// Waits for the end of what an earlier run had begun. How it ended does not matter: the world is looked at next.
pub(super) async fn settle(cx: &Context, client: &Proxmox) -> Result<(), Failure> {
    let Some(task) = cx.unfinished_task().and_then(|text| text.parse::<Upid>().ok()) else {
        return Ok(());
    };
    let what = format!("{} of an earlier run", task.kind());
    let meter = Meter::new();
    cx.wait(pace(&task), &what, || async {
        Ok(match client.task_status(&task).await {
            Ok(TaskStatus::Running) => {
                meter.read(cx, client, &task).await;
                Verdict::waiting(format!("Proxmox' task {} is running", task.kind()))
            }
            Ok(_) => Verdict::Ready(()),
            // Proxmox forgets old tasks.
            Err(error) if error.is_missing() => Verdict::Ready(()),
            Err(error) => return Err(error.failure(&what)),
        })
    })
    .await
    .map_err(|failure| or_end(failure, &task))
}

/// A wait that was in vain, with how a task that hangs is ended: nobody but a person can know that it does.
fn or_end(failure: Failure, task: &Upid) -> Failure {
    if !failure.is_transient() {
        return failure;
    }
    let node = task.node();
    failure.hint(format!(
        "run the same command again to go on waiting for it; if it hangs, end it in Proxmox (Stop in the list of tasks, or on the \
         host: pvesh delete /nodes/{node}/tasks/{task}) before that"
    ))
}

/// Kinds of tasks after which a guest is another one than before, or gone. Others, such as a backup, may take hours and
/// change nothing.
const CHANGING: [&str; 10] = [
    "qmclone",
    "qmcreate",
    "qmdestroy",
    "qmigrate",
    "qmreboot",
    "qmrestore",
    "qmrollback",
    "qmshutdown",
    "qmstart",
    "qmstop",
];

/// The task that is changing a guest, whoever began it: what is seen of the guest meanwhile does not hold for long.
pub(super) async fn at_work(
    client: &Proxmox,
    node: &str,
    vmid: VmId,
) -> Result<Option<Upid>, Failure> {
    Ok(changing(client, node).await?.into_iter().find(|task| task.object() == vmid.to_string()))
}

/// All tasks of a node that are changing guests.
pub(super) async fn changing(client: &Proxmox, node: &str) -> Result<Vec<Upid>, Failure> {
    let running = client.running_tasks(node).await;
    let running = running.map_err(|error| error.failure(format!("list the tasks of {node}")))?;
    Ok(running.into_iter().filter(|task| CHANGING.contains(&task.kind())).collect())
}

/// A look that is in vain while a task makes a VM: with that task, and how it is ended if it hangs.
pub(super) async fn in_the_making(
    client: &Proxmox,
    (node, vmid): (&str, VmId),
    doing: String,
) -> Failure {
    let why = "it is just being made, and bears no mark yet";
    let failure = Failure::new(Class::Transient, doing, why);
    // Without the list there is only less to tell.
    let tasks = changing(client, node).await.unwrap_or_default();
    match tasks.into_iter().find(|task| task.object() == vmid.to_string()) {
        Some(task) => or_end(failure.evidence(format!("task {task}")), &task),
        None => failure,
    }
}

/// Waits until no task is changing a guest.
pub(super) async fn idle(
    cx: &Context,
    client: &Proxmox,
    (node, vmid): (&str, VmId),
    named: &str,
) -> Result<(), Failure> {
    let Some(task) = at_work(client, node, vmid).await? else { return Ok(()) };
    let what = format!("{} on {named}, which somebody has begun", task.kind());
    cx.wait(pace(&task), &what, || async {
        Ok(match at_work(client, node, vmid).await? {
            Some(task) => Verdict::waiting(format!("Proxmox' task {} is running", task.kind())),
            None => Verdict::Ready(()),
        })
    })
    .await
    .map_err(|failure| or_end(failure, &task))
}
