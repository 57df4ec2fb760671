//! The system's browser, asked to show a page: a program that castle starts, with an environment that holds no secret.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::exit::{Exit, Problem};
use crate::settings::Settings;

/// Who knows the browser of a system.
const OPENERS: [&str; 2] =
    if cfg!(target_os = "macos") { ["open", "xdg-open"] } else { ["xdg-open", "open"] };

/// What a browser needs of the environment: where programs and settings are, and where the screen is.
const INHERITED: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "BROWSER",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "XDG_RUNTIME_DIR",
    "XDG_CURRENT_DESKTOP",
    "XDG_SESSION_TYPE",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
];

/// Opens a page. The browser lives on by itself; only whether it could be asked is known.
pub(crate) fn open(page: &Path, settings: &Settings) -> Result<(), Problem> {
    let mut refused = Vec::new();
    for opener in OPENERS {
        match ask(opener, page, settings) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused.push(format!("`{opener}`: {error}")),
        }
    }
    let nobody = || "neither `xdg-open` nor `open` is on this system".to_owned();
    let why = refused.into_iter().next().unwrap_or_else(nobody);
    let problem = Problem::new(Exit::Failed, "no browser could be opened");
    let problem = Problem { causes: vec![why], ..problem };
    Err(problem.hint(format!("open {} yourself", page.display())))
}

fn ask(opener: &str, page: &Path, settings: &Settings) -> io::Result<()> {
    let mut command = Command::new(opener);
    command.env_clear();
    for name in INHERITED {
        command.envs(settings.get(name).map(|value| (name, value)));
    }
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ended with {status}")))
}
