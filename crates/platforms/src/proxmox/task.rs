//! Following a Proxmox task to its end, in this run or from an earlier one that was killed.

use castle_engine::{Context, Pace};
use castle_model::{Bug, Failure, Verdict, VmId, planted};
use castle_proxmox::{Proxmox, TaskStatus, Upid, catalogue};

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

/// Waits for the end of a task whose name is durable already.
async fn finish(cx: &Context, client: &Proxmox, task: &Upid, what: &str) -> Result<(), Failure> {
    let warnings = cx
        .wait(pace(task), what, || async {
            let status = client.task_status(task).await.map_err(|error| error.failure(what))?;
            Ok(match status {
                TaskStatus::Running => {
                    Verdict::waiting(format!("Proxmox' task {} is running", task.kind()))
                }
                TaskStatus::Ok => Verdict::Ready(0),
                TaskStatus::Warnings(count) => Verdict::Ready(count),
                TaskStatus::Failed(_) if planted(Bug::TaskFailureIsSuccess) => Verdict::Ready(0),
                TaskStatus::Failed(text) => {
                    Verdict::Failed(catalogue::task_failure(&text, what).evidence(task.to_string()))
                }
            })
        })
        .await
        .map_err(|failure| or_end(failure, task))?;
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
    cx.wait(pace(&task), &what, || async {
        Ok(match client.task_status(&task).await {
            Ok(TaskStatus::Running) => {
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
