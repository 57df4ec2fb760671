//! The `git` program, asked whether a file would stay out of a repository. It is started with an environment that
//! holds no secret.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::settings::Settings;

/// What a child may inherit: where programs are, and where a user's own rules on ignored files are.
const INHERITED: [&str; 3] = ["PATH", "HOME", "XDG_CONFIG_HOME"];

/// Why a file with secrets must not be made at a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exposed {
    /// It is part of the repository.
    Tracked,
    /// The next `git add` takes it.
    NotIgnored,
    /// Nobody could say.
    Unknown(String),
}

/// Whether a file in a folder would get into a repository: none if the folder is in no work tree, or if it is ignored there.
/// The folder's path is real, without links.
pub(crate) fn exposed(folder: &Path, name: &Path, settings: &Settings) -> Option<Exposed> {
    folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())?;
    match judged(folder, name, settings) {
        Ok(judged) => judged,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Exposed::Unknown(
            "the program `git`, which knows what is ignored there, was not found".to_owned(),
        )),
        Err(error) => Some(Exposed::Unknown(format!("`git` could not be asked: {error}"))),
    }
}

fn judged(folder: &Path, name: &Path, settings: &Settings) -> io::Result<Option<Exposed>> {
    let tracked =
        git(folder, &["--literal-pathspecs", "ls-files", "--error-unmatch"], name, settings)?;
    if tracked.success() {
        return Ok(Some(Exposed::Tracked));
    }
    // Whatever `ls-files` could not do, `check-ignore` can not do either: it ends with another code then.
    let ignored = git(folder, &["check-ignore", "--quiet"], name, settings)?;
    Ok(match ignored.code() {
        Some(0) => None,
        Some(1) => Some(Exposed::NotIgnored),
        _ => Some(Exposed::Unknown(format!("`git check-ignore` ended with {ignored}"))),
    })
}

/// Asks about one file. It is given by its path, so that its name is never taken for an option or a pattern.
fn git(folder: &Path, words: &[&str], name: &Path, settings: &Settings) -> io::Result<ExitStatus> {
    let mut command = Command::new("git");
    command.env_clear();
    for name in INHERITED {
        command.envs(settings.get(name).map(|value| (name, value)));
    }
    // A repository may name a program that watches its files; nothing of it is started for a question.
    command.args(["--no-optional-locks", "-c", "core.fsmonitor=false"]);
    command.args(words).arg("--").arg(Path::new(".").join(name)).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
}
