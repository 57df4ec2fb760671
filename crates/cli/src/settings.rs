//! Everything that the environment may say to castle, read once in `main` and documented in one place.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use castle_model::RunId;
use castle_view::Signs;
use rustix::termios::tcgetwinsize;

use crate::args::{Colour, Everywhere};
use crate::detach::Detached;

/// One environment variable that castle looks at.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
}

/// Every environment variable that castle looks at, besides those that a castle file names with `env()`.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable { name: "CASTLE_STATE", what: "the state root, where `--state` does not say" },
    Variable {
        name: "XDG_STATE_HOME",
        what: "the folder that holds state roots by default, as `castle/NAME`, for rehearsals `castle/rehearsal/NAME`, for the built-in castle `castle/example/NAME` (else `~/.local/state`)",
    },
    Variable {
        name: "XDG_CACHE_HOME",
        what: "the folder that keeps downloaded manifests by their content, in `castle/manifests` (else `~/.cache`); a rehearsal keeps none",
    },
    Variable {
        name: "INFISICAL_CLIENT_ID",
        what: "the machine identity (universal auth) that reads the secret source; never needed by a rehearsal",
    },
    Variable { name: "INFISICAL_CLIENT_SECRET", what: "its secret" },
    Variable {
        name: "SOPS_AGE_KEY",
        what: "an age identity (private key) that opens SOPS files and the escrow file; every identity that is at hand is tried",
    },
    Variable {
        name: "SOPS_AGE_KEY_FILE",
        what: "a file of age identities; the usual one, `sops/age/keys.txt` in the folder of configurations, is read as well",
    },
    Variable {
        name: "SOPS_AGE_SSH_PRIVATE_KEY_FILE",
        what: "an ssh private key to use as an age identity (else `~/.ssh/id_ed25519`, else `~/.ssh/id_rsa`)",
    },
    Variable {
        name: "XDG_CONFIG_HOME",
        what: "the folder of configurations (else `~/.config`), where the usual file of age identities is",
    },
    Variable {
        name: "SSL_CERT_FILE",
        what: "a file with the PEM certificates of authorities to trust, in place of the system's list",
    },
    Variable { name: "HOME", what: "the home folder" },
    Variable {
        name: "NO_COLOR",
        what: "anything in it switches colour off; `--color` says otherwise",
    },
    Variable {
        name: "CI",
        what: "anything in it: no colour, no live screen, no pacing, as without a terminal",
    },
    Variable { name: "TERM", what: "`dumb`: no colour and no live screen" },
    Variable {
        name: "LC_ALL",
        what: "the locale, else `LC_CTYPE`, else `LANG`; unless it names UTF-8, screens have signs of ASCII alone",
    },
    Variable { name: "LC_CTYPE", what: "the locale of characters" },
    Variable { name: "LANG", what: "the locale of everything else" },
    Variable {
        name: "COLUMNS",
        what: "the width of the terminal, where the terminal does not say",
    },
];

/// The widest that a text is laid out for.
pub(crate) const WIDEST: usize = 200;

/// A width that no line reaches.
const UNBROKEN: usize = 100_000;

/// What the surroundings of the process say. No `Debug`: there are secrets in an environment.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
    pub(crate) host: String,
    pub(crate) stderr_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) launch: Launch,
    /// What the command line says about the looks of text.
    pub(crate) looks: Looks,
}

/// How text is to look, as the command line says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Looks {
    pub(crate) plain: bool,
    pub(crate) colour: Colour,
}

/// Which of the two streams a text goes to: each may be a terminal, a file or a pipe of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output: pages, lists, answers.
    Data,
    /// Standard error: what is told besides.
    Talk,
}

/// How this process came to be.
#[derive(Clone, Default)]
pub(crate) struct Launch {
    /// The words of its command line.
    pub(crate) words: Vec<String>,
    /// Who waits for its first word, if it goes on without a terminal.
    pub(crate) detached: Option<Arc<Detached>>,
}

impl Settings {
    /// Reads the surroundings. Called once, by `main`.
    pub(crate) fn read() -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            environment,
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            host,
            stderr_is_terminal: std::io::stderr().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            launch: Launch {
                words: std::env::args_os()
                    .map(|word| word.to_string_lossy().into_owned())
                    .collect(),
                detached: None,
            },
            looks: Looks::default(),
        }
    }

    /// With what the command line says.
    pub(crate) fn asked(self, everywhere: &Everywhere) -> Self {
        let looks = Looks { plain: everywhere.plain, colour: everywhere.color };
        Self { looks, ..self }
    }

    /// Tells whoever waits for it that a run has begun.
    pub(crate) fn begun(&self, run: &RunId) {
        if let Some(detached) = &self.launch.detached {
            detached.begun(run);
        }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a person watches.
    pub(crate) fn interactive(&self) -> bool {
        self.read_by_people(Stream::Talk)
    }

    /// Whether a live screen is wanted, and can be painted.
    pub(crate) fn live(&self) -> bool {
        self.interactive()
            && !self.looks.plain
            && self.get("TERM").is_some_and(|terminal| terminal != "dumb")
    }

    fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Data => self.stdout_is_terminal,
            Stream::Talk => self.stderr_is_terminal,
        }
    }

    /// Whether a person reads what goes to a stream.
    fn read_by_people(&self, stream: Stream) -> bool {
        self.is_terminal(stream) && self.get("CI").is_none()
    }

    /// Whether colour is wanted on a stream.
    pub(crate) fn colour(&self, stream: Stream) -> bool {
        match self.looks.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                self.read_by_people(stream)
                    && self.get("NO_COLOR").is_none()
                    && self.get("TERM") != Some("dumb")
            }
        }
    }

    /// The signs that a person's terminal can show. What nobody watches is a log, and UTF-8.
    pub(crate) fn signs(&self, stream: Stream) -> Signs {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| self.get(name));
        let locale = locale.unwrap_or("C").to_ascii_lowercase();
        let unicode = locale.contains("utf-8") || locale.contains("utf8");
        if unicode || !self.read_by_people(stream) { Signs::Unicode } else { Signs::Ascii }
    }

    /// How many columns a line of a stream may have. Where no terminal breaks lines, neither do we: logs are searched.
    pub(crate) fn width(&self, stream: Stream) -> usize {
        let told = self.get("COLUMNS").and_then(|c| c.parse().ok());
        let window = match stream {
            Stream::Data => tcgetwinsize(std::io::stdout()),
            Stream::Talk => tcgetwinsize(std::io::stderr()),
        };
        let columns = window.map(|window| usize::from(window.ws_col)).ok();
        let seen = columns.filter(|columns| self.is_terminal(stream) && *columns > 0);
        match seen.or(told) {
            Some(width) => width.clamp(40, WIDEST),
            None => UNBROKEN,
        }
    }

    /// The folder that holds state roots by default.
    pub(crate) fn state_home(&self) -> Option<PathBuf> {
        let given = self.get("XDG_STATE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        given
            .or_else(|| self.get("HOME").map(|home| PathBuf::from(home).join(".local/state")))
            .map(|home| home.join("castle"))
    }
    /// The folder that keeps downloaded manifests by their content.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        let given = self.get("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        given
            .or_else(|| self.get("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .map(|home| home.join("castle/manifests"))
    }
}
