//! `castle secrets verify`: whether SOPS files are whole, and nothing in them stands in clear that should not.

use std::path::Path;

use castle_sops::{Sealed, SopsError};
use castle_view::secrets::{Mac, Verified};

use super::text::Text;
use crate::age::{self, AtHand};
use crate::answer;
use crate::args::Verify;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::settings::{Settings, Stream};

/// Judges every file; one that is wrong, or could not be judged, is exit code 1.
pub(super) fn run(args: &Verify, json: bool, settings: &Settings) -> Result<Exit, Problem> {
    let hand = if args.clear_only { None } else { Some(age::at_hand(settings)?.told()) };
    let mut exit = Exit::Done;
    for path in &args.files {
        let verified = verify(path, hand.as_ref(), settings);
        if !verified.is_right() {
            exit = Exit::Failed;
        }
        output::page(&if json {
            answer::line("verified", &verified)
        } else {
            verified.text(style(settings, Stream::Data))
        });
    }
    Ok(exit)
}

fn verify(path: &Path, hand: Option<&AtHand>, settings: &Settings) -> Verified {
    let mut verified = Verified::new(path.display().to_string());
    let text = match Text::read(path, None, settings) {
        Ok(text) => text,
        Err(why) => {
            verified.wrong = Some(why);
            return verified;
        }
    };
    let sealed = match Sealed::read(text.content.expose(), text.format) {
        Ok(sealed) => sealed,
        Err(error) => {
            verified.wrong = Some(match error {
                SopsError::NotSealed if promises(path) => {
                    format!("its name says that it is encrypted, and {error}")
                }
                _ => error.to_string(),
            });
            verified.cure = Some(error.cure().to_owned());
            return verified;
        }
    };
    verified.keys = sealed.keys().count();
    verified.recipients = sealed.recipients().map(str::to_owned).collect();
    verified.in_clear = sealed.in_clear();
    let Some(hand) = hand else { return verified };
    match sealed.open(&hand.identities) {
        Ok(_) => verified.mac = Mac::Right,
        // Told already, with the places of comments too.
        Err(SopsError::InClear { .. }) => {}
        Err(error @ (SopsError::NoIdentities | SopsError::NoIdentity { .. })) => {
            verified.mac = Mac::Unknown { why: error.to_string() };
            verified.cure = Some(error.cure().to_owned());
        }
        Err(error) => {
            verified.mac = Mac::Wrong;
            verified.wrong = Some(error.to_string());
            verified.cure = Some(error.cure().to_owned());
        }
    }
    verified
}

/// Whether a file's name says that it is encrypted.
fn promises(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".enc.") || name.contains(".sops.")
}
