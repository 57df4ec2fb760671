//! `castle secrets encrypt`: YAML or JSON in clear becomes a SOPS file. What is written is encrypted, or nothing is.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use castle_layers::secrets::files::{Disk, Files};
use castle_sops::{Pattern, Recipients, Rules, Selection, SopsError, Tree, seal};

use super::text::{Text, refused};
use crate::age;
use crate::args::{Encrypt, Rule};
use crate::exit::{Exit, Problem};
use crate::output;
use crate::real;
use crate::settings::Settings;

/// The rule of a pattern.
type Select = fn(Pattern) -> Selection;

/// How an encrypted value begins.
const ENCRYPTED: &str = "ENC[AES256_GCM,";

/// Encrypts the text and writes it to where it is wanted.
pub(super) fn run(args: &Encrypt, settings: &Settings) -> Result<Exit, Problem> {
    let from_input = args.input.path == Path::new("-");
    if args.in_place && from_input {
        return Err(Problem::usage("standard input has no place to write to")
            .hint("leave --in-place out, or name a file"));
    }
    let rules = rules(args)?;
    let recipients = recipients(args, settings)?;
    let Text { name, content, format } = Text::of(&args.input, settings)?;
    let what = format!("encrypt {name}");
    let world = real::world_without_roots();
    let tree = Tree::read(content.expose(), format).map_err(|error| refused(&what, &error))?;
    let mut fill = |buffer: &mut [u8]| world.entropy.fill(buffer);
    let sealed = seal(&tree, format, &recipients, &rules, world.clock.now(), &mut fill)
        .map_err(|error| refused(&what, &error))?;
    // The metadata of each document has one: the MAC.
    if sealed.matches(ENCRYPTED).count() <= tree.documents() {
        return Err(Problem::usage(format!(
            "nothing in {name} would be encrypted, so nothing was written"
        ))
        .hint("the rule leaves every value in clear: look at the keys that it should match"));
    }
    if args.in_place {
        replace(&args.input.path, &sealed, settings)?;
    } else {
        match &args.out {
            Some(out) => create(out, &sealed, settings)?,
            None => output::data(&sealed),
        }
        if !from_input {
            output::talk(&format!("notice: {name} still holds everything in clear; remove it"));
        }
    }
    let list: Vec<&str> = recipients.texts().collect();
    output::talk(&format!("encrypted for {}", list.join(", ")));
    Ok(Exit::Done)
}

/// For whom: those that were named, else whoever holds the identity at hand.
fn recipients(args: &Encrypt, settings: &Settings) -> Result<Recipients, Problem> {
    let wrong = |error: &SopsError| {
        Problem::usage("nobody can be encrypted for like this").because(error).hint(error.cure())
    };
    if !args.recipients.is_empty() {
        return Recipients::parse(&args.recipients.join("\n")).map_err(|error| wrong(&error));
    }
    let hand = age::at_hand(settings)?.told();
    let recipients = hand.identities.own_recipients();
    if recipients.is_empty() {
        let mut problem = wrong(&SopsError::NoRecipients);
        problem.causes.extend(hand.passed_over.iter().cloned());
        let usual = age::usual_file(settings).unwrap_or_default();
        return Err(problem.hint(format!(
            "make an identity first: `age-keygen -o {}`; or name a recipient with --recipient",
            usual.display()
        )));
    }
    Ok(recipients)
}

fn rules(args: &Encrypt) -> Result<Rules, Problem> {
    let Rule {
        encrypted_regex,
        unencrypted_regex,
        encrypted_suffix,
        unencrypted_suffix,
        encrypted_comment_regex,
        unencrypted_comment_regex,
    } = &args.rule;
    let mut rules = Rules { mac_only_encrypted: args.mac_only_encrypted, ..Rules::default() };
    if let Some(suffix) = encrypted_suffix {
        rules.selection = Selection::EncryptedSuffix(suffix.clone());
    }
    if let Some(suffix) = unencrypted_suffix {
        rules.selection = Selection::UnencryptedSuffix(suffix.clone());
    }
    let patterns: [(&str, &Option<String>, Select); 4] = [
        ("--encrypted-regex", encrypted_regex, Selection::EncryptedRegex),
        ("--unencrypted-regex", unencrypted_regex, Selection::UnencryptedRegex),
        ("--encrypted-comment-regex", encrypted_comment_regex, Selection::EncryptedCommentRegex),
        (
            "--unencrypted-comment-regex",
            unencrypted_comment_regex,
            Selection::UnencryptedCommentRegex,
        ),
    ];
    for (flag, text, select) in patterns {
        if let Some(text) = text {
            let pattern = Pattern::new(text).map_err(|_| {
                Problem::usage(format!("{flag}: `{text}` is not a regular expression"))
                    .hint("such as '^(data|stringData)$'")
            })?;
            rules.selection = select(pattern);
        }
    }
    Ok(rules)
}

/// Writes a new file; an old one is never overwritten.
fn create(path: &Path, sealed: &str, settings: &Settings) -> Result<(), Problem> {
    let whole = settings.directory.join(path);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(whole);
    let written = opened.and_then(|mut file| {
        file.write_all(sealed.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| {
        let problem =
            Problem::new(Exit::Failed, format!("{} could not be written", path.display()))
                .because(&error);
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                problem.hint("choose another name, or remove it first")
            }
            _ => problem,
        }
    })?;
    output::talk(&format!("{} written", path.display()));
    Ok(())
}

/// Puts the encrypted text in the place of the plain one, whole or not at all; behind a link, where the file itself is.
fn replace(path: &Path, sealed: &str, settings: &Settings) -> Result<(), Problem> {
    let failed = |why: String| {
        let mut problem =
            Problem::new(Exit::Failed, format!("{} could not be replaced", path.display()));
        problem.causes.push(why);
        problem.hint("it is as it was: in clear")
    };
    let whole = settings.directory.join(path).canonicalize().map_err(|e| failed(e.to_string()))?;
    let disk = Disk { project: settings.directory.clone(), home: None };
    disk.write(&whole.to_string_lossy(), sealed.as_bytes()).map_err(failed)?;
    output::talk(&format!("{} is encrypted now", path.display()));
    Ok(())
}
