//! What the commands over SOPS files share: a text from a file or standard input, and the words when one is refused.

use std::io::Read;
use std::path::Path;

use castle_layers::secrets::files::{Content, Disk, Files, Privacy};
use castle_model::Secret;
use castle_sops::{Format, SopsError};

use crate::age::AtHand;
use crate::args::{Input, TextFormat};
use crate::exit::Problem;
use crate::output;
use crate::settings::Settings;

/// No more is read from standard input; a file has the same limit.
const MAX_BYTES: u64 = 8 << 20;

/// A text, and what it is called.
pub(super) struct Text {
    pub(super) name: String,
    pub(super) content: Secret,
    pub(super) format: Format,
}

impl Text {
    /// Reads what a command names.
    pub(super) fn of(input: &Input, settings: &Settings) -> Result<Self, Problem> {
        let given = input.format.map(|format| match format {
            TextFormat::Yaml => Format::Yaml,
            TextFormat::Json => Format::Json,
        });
        Self::read(&input.path, given, settings).map_err(|why| {
            Problem::usage(format!("{} can not be read: {why}", input.path.display()))
        })
    }

    /// Reads a file, or standard input for `-`.
    pub(super) fn read(
        path: &Path,
        given: Option<Format>,
        settings: &Settings,
    ) -> Result<Self, String> {
        if path == Path::new("-") {
            let content = standard_input(settings)?;
            let json = content.expose().trim_start().starts_with('{');
            let format = given.unwrap_or(if json { Format::Json } else { Format::Yaml });
            return Ok(Self { name: "standard input".to_owned(), content, format });
        }
        let format = match given {
            Some(format) => format,
            None => Format::of_path(path)
                .map_err(|error| format!("by its name, {error}; {}", error.cure()))?,
        };
        let disk = Disk { project: settings.directory.clone(), home: None };
        let content = disk.read(&path.to_string_lossy(), Privacy::Any)?;
        let content = content.ok_or("there is no such file")?;
        Ok(Self { name: path.display().to_string(), content: utf8(&content)?, format })
    }
}

fn standard_input(settings: &Settings) -> Result<Secret, String> {
    if settings.stdin_is_terminal {
        output::talk("reading from the terminal; end with Ctrl-D on a line of its own");
    }
    let mut content = Content::new(Vec::new());
    std::io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| error.to_string())?;
    if content.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    }
    utf8(&content)
}

fn utf8(content: &Content) -> Result<Secret, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not text (UTF-8)".to_owned())?;
    Ok(Secret::new(text))
}

/// Something that could not be done with a file.
pub(super) fn refused(what: &str, error: &SopsError) -> Problem {
    Problem::failure(&error.failure(what))
}

/// The same where identities were tried: which were at hand, and which were passed over.
pub(super) fn not_opened(what: &str, error: &SopsError, hand: &AtHand) -> Problem {
    let mut problem = refused(what, error);
    if let SopsError::NoIdentity { .. } | SopsError::NoIdentities = error {
        if !hand.places.is_empty() {
            problem.causes.push(format!("identities were found in {}", hand.places.join(", ")));
        }
        problem.causes.extend(hand.passed_over.iter().cloned());
    }
    problem
}
