//! Work that goes on without its terminal: castle started once more, in a session of its own.
//!
//! ```text
//!   castle up --detach          survey, plan, consent in the terminal; gives the locks back
//!     └─ castle detached        reads who it is from standard input, leaves the session, takes the locks, surveys again,
//!          │                    does nothing that was not agreed to
//!          └─ answer            one line on its standard output once the run has begun, or why it did not
//! ```
//!
//! The variables of the environment, which may hold secrets, go through the pipe alone: the child's own environment is
//! empty, and its arguments are one word.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use castle_model::{RunId, StepId};
use serde::{Deserialize, Serialize};

use crate::answer;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::session::Consent;
use crate::settings::{Launch, Looks, Settings};

/// The word that the child is started with.
pub(crate) const WORD: &str = "detached";

/// What the child is told, on its standard input. No `Debug`: there are secrets in an environment.
#[derive(Serialize, Deserialize)]
struct Errand {
    words: Vec<String>,
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    host: String,
    stderr_is_terminal: bool,
    stdout_is_terminal: bool,
    agreed: BTreeSet<StepId>,
}

/// What the child answers, once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// The run goes on by itself from here.
    Begun(RunId),
    /// It ended before a run began.
    Ended { exit: u8, text: Option<String> },
}

/// The child's side.
#[derive(Default)]
pub(crate) struct Detached {
    agreed: BTreeSet<StepId>,
    answered: AtomicBool,
}

impl Detached {
    /// What somebody at the terminal has agreed to.
    pub(crate) fn consent(&self) -> Consent {
        Consent::Agreed(self.agreed.clone())
    }

    /// Tells the terminal that the run has begun. Only the first word counts.
    pub(crate) fn begun(&self, run: &RunId) {
        self.answer(&Answer::Begun(run.clone()));
    }

    /// Tells the terminal how it ended, if no run began.
    pub(crate) fn ended(&self, result: &Result<Exit, Problem>) {
        let (exit, text) = match result {
            Ok(exit) => (*exit, None),
            Err(problem) => (problem.exit, Some(problem.to_string())),
        };
        self.answer(&Answer::Ended { exit: exit as u8, text });
    }

    fn answer(&self, answer: &Answer) {
        if self.answered.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut out = std::io::stdout().lock();
        // Nobody may be there any more to hear it; the work goes on all the same.
        serde_json::to_writer(&mut out, answer).ok();
        out.write_all(b"\n").and_then(|()| out.flush()).ok();
    }
}

/// Starts the work again in a process of its own, and waits until its run has begun or it has said why not.
pub(crate) fn start(
    agreed: BTreeSet<StepId>,
    command: &str,
    json: bool,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let failed = |what: &str, error: &dyn std::error::Error| {
        Problem::new(Exit::Failed, what.to_owned()).because(error)
    };
    let mut child = spawn().map_err(|e| failed("castle could not be started once more", &e))?;
    let errand = Errand {
        words: settings.launch.words.clone(),
        environment: settings.environment.clone(),
        directory: settings.directory.clone(),
        host: settings.host.clone(),
        stderr_is_terminal: settings.stderr_is_terminal,
        stdout_is_terminal: settings.stdout_is_terminal,
        agreed,
    };
    let told = serde_json::to_vec(&errand).map_err(std::io::Error::other).and_then(|bytes| {
        let pipe = child.stdin.take();
        pipe.map_or(Ok(()), |mut pipe| pipe.write_all(&bytes))
    });
    told.map_err(|e| failed("the detached process could not be told what to do", &e))?;
    match answer(&mut child) {
        Some(Answer::Begun(run)) => {
            let pid = child.id();
            if json {
                let begun = serde_json::json!({ "detached": { "pid": pid, "run": run } });
                output::data(&answer::line("detached", &begun));
            } else {
                output::say(&format!(
                    "detached: process {pid} goes on with it (run {run}), whatever becomes of this terminal"
                ));
                output::say(&format!(
                    "next: `{command} attach` shows it, `{command} status` tells where it stands, `kill -INT {pid}` asks it to stop"
                ));
            }
            Ok(Exit::Done)
        }
        Some(Answer::Ended { exit, text }) => {
            if let Some(text) = text {
                output::say(&text);
            }
            Ok(Exit::of_code(exit))
        }
        None => {
            let status = child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
            Err(Problem::new(
                Exit::Failed,
                format!("the detached process ended before its run began ({status})"),
            )
            .hint(format!(
                "`{command} status` tells what is known; run the command again without --detach"
            )))
        }
    }
}

/// The second of the two places that start a program: castle itself, with an empty environment.
fn spawn() -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(WORD).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

fn answer(child: &mut Child) -> Option<Answer> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// The other side: leaves the terminal's session and becomes the process that was asked for.
pub(crate) fn take_over() -> Result<(Vec<String>, Settings), Problem> {
    let stray = || {
        Problem::usage(format!("`castle {WORD}` is how castle starts itself"))
            .hint("use `castle up --detach`")
    };
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|_| stray())?;
    let errand: Errand = serde_json::from_slice(&bytes).map_err(|_| stray())?;
    // A terminal that is closed signals its own session: we are in none of its kind any more.
    rustix::process::setsid().map_err(|e| {
        Problem::new(Exit::Failed, "the terminal could not be left")
            .because(&std::io::Error::from(e))
    })?;
    output::mute();
    let detached = Detached { agreed: errand.agreed, answered: AtomicBool::new(false) };
    let launch = Launch { words: errand.words.clone(), detached: Some(Arc::new(detached)) };
    let settings = Settings {
        environment: errand.environment,
        directory: errand.directory,
        host: errand.host,
        stderr_is_terminal: errand.stderr_is_terminal,
        stdout_is_terminal: errand.stdout_is_terminal,
        stdin_is_terminal: false,
        launch,
        looks: Looks::default(),
    };
    Ok((errand.words, settings))
}
