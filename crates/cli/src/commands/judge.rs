//! `castle judge`: the verdict of the gates' own judge on objects of a file or a stream.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use castle_kubernetes::judge::judge_among;
use castle_kubernetes::{Object, manifest};
use castle_model::Verdict;
use serde_json::json;

use crate::answer;
use crate::args::JudgeArgs;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::settings::Settings;

/// What to do where there is nothing to judge.
const HINT: &str = "give objects with their status, such as `kubectl get pods -o yaml` prints them";

/// Prints a line for each object. All ready is exit code 0, one that waits or has failed is 1, no object to judge is 2.
pub(crate) fn run(args: &JudgeArgs, json: bool, settings: &Settings) -> Result<Exit, Problem> {
    let path = args.file.as_deref().unwrap_or(Path::new("-"));
    let (name, text) = read(path, settings)?;
    let objects = manifest::shown(&name, &text).map_err(|error| {
        let mut problem = Problem::usage(format!("can not judge what is in {name}"))
            .hint("correct it at that place, or give what `kubectl get -o yaml` prints");
        problem.causes.push(tame(&error.to_string()));
        problem
    })?;
    if objects.is_empty() {
        return Err(Problem::usage(format!("there is no object in {name}")).hint(HINT));
    }
    let mut counts = [0_usize; 3];
    for object in &objects {
        let judged = Judged::of(object, &objects);
        counts[judged.place()] += 1;
        output::data(&if json { judged.json(object) } else { judged.text() });
    }
    let [ready, waiting, failed] = counts;
    if !json {
        output::talk(&format!(
            "{} objects: {ready} ready, {waiting} waiting, {failed} failed",
            objects.len()
        ));
    }
    Ok(if waiting + failed == 0 { Exit::Done } else { Exit::Failed })
}

/// A verdict in words.
struct Judged {
    word: &'static str,
    reason: String,
    hint: Option<String>,
}

impl Judged {
    fn of(object: &Object, around: &[Object]) -> Self {
        match judge_among(object, around) {
            Verdict::Ready(reason) => Self { word: "ready", reason, hint: None },
            Verdict::Waiting(reason) => Self { word: "waiting", reason, hint: None },
            Verdict::Failed(failure) => {
                let reason = format!("{}: {}", object.id(), failure.why);
                Self { word: "failed", reason, hint: failure.hint }
            }
        }
    }

    fn place(&self) -> usize {
        match self.word {
            "ready" => 0,
            "waiting" => 1,
            _ => 2,
        }
    }

    /// One line, whatever the object says.
    fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
        tame(&format!("{:<8} {}{hint}", self.word, self.reason))
    }

    fn json(&self, object: &Object) -> String {
        let id = object.id();
        let mut line = json!({
            "apiVersion": id.api_version, "kind": id.kind, "namespace": id.namespace, "name": id.name,
            "verdict": self.word, "reason": self.reason,
        });
        if let Some(hint) = &self.hint {
            line["hint"] = hint.as_str().into();
        }
        answer::line("verdict", &line)
    }
}

/// Words of others on one line: a terminal must not obey what somebody wrote into a status.
fn tame(words: &str) -> String {
    words.replace(char::is_control, " ")
}

/// The text and how it is called; a pipe is as good as a file.
fn read(path: &Path, settings: &Settings) -> Result<(String, String), Problem> {
    let limit = manifest::LARGEST_SHOWN as u64;
    let mut bytes = Vec::new();
    let (name, done) = if path == Path::new("-") {
        if settings.stdin_is_terminal {
            output::talk("reading from the terminal; end with Ctrl-D on a line of its own");
        }
        let done = std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes);
        ("standard input".to_owned(), done)
    } else {
        let done = File::open(settings.directory.join(path))
            .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes));
        (path.display().to_string(), done)
    };
    let refused = || Problem::usage(format!("can not read {name}"));
    done.map_err(|error| refused().because(&error))?;
    if bytes.len() as u64 > limit {
        let mut problem = refused().hint("give fewer objects at a time");
        problem.causes.push(format!("it is larger than {} MiB", limit >> 20));
        return Err(problem);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((name, text)),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.split(|byte| *byte == b'\n').count();
            let mut problem = refused();
            problem.causes.push(format!("{name}:{line}: it is not text (UTF-8)"));
            Err(problem)
        }
    }
}
