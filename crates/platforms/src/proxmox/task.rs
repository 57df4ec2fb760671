//! Following a Proxmox task to its end, in this run or from an earlier one that was killed.

use castle_engine::{Context, Pace};
use castle_model::{Bug, Failure, Verdict, planted};
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
        .await?;
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
}
