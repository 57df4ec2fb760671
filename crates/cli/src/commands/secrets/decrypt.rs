//! `castle secrets decrypt`: a SOPS file in clear, to standard output only.

use castle_sops::{Format, Sealed};

use super::text::{Text, not_opened, refused};
use crate::age;
use crate::args::Decrypt;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::settings::Settings;

/// Opens the file and prints it; as JSON if that is asked for.
pub(super) fn run(args: &Decrypt, json: bool, settings: &Settings) -> Result<Exit, Problem> {
    let Text { name, content, format } = Text::of(&args.input, settings)?;
    let hand = age::at_hand(settings)?.told();
    let what = format!("decrypt {name}");
    let sealed = Sealed::read(content.expose(), format).map_err(|error| refused(&what, &error))?;
    let tree = sealed.open(&hand.identities).map_err(|error| not_opened(&what, &error, &hand))?;
    let shown = tree.to_text(if json { Format::Json } else { format });
    output::data(shown.map_err(|error| refused(&what, &error))?.expose());
    Ok(Exit::Done)
}
