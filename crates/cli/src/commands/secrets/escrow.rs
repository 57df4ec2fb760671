//! `castle secrets escrow`: what is kept of a castle, where, and of which life.

use castle_layers::secrets::look::KeptEntry;
use castle_model::Failure;
use castle_model::spec::EscrowPlace;
use castle_platforms::ways::Way;
use castle_view::secrets::{Entry, EntryState, Escrow, Writable};
use rustix::fs::{Access, access};

use super::Asked;
use crate::answer;
use crate::castle::Place;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::settings::Stream;
use crate::state;

/// Prints what is kept.
pub(super) async fn run(asked: &Asked<'_>) -> Result<Result<Exit, Problem>, Failure> {
    let escrow = kept(asked).await?;
    output::page(&if asked.json {
        answer::line("escrow", &escrow)
    } else {
        escrow.text(style(asked.settings, Stream::Data))
    });
    Ok(Ok(Exit::Done))
}

/// What is kept of the castle.
pub(super) async fn kept(asked: &Asked<'_>) -> Result<Escrow, Failure> {
    let spec = &asked.castle.spec;
    let (place, entries) = asked.sources.escrowed(spec).await?;
    Ok(Escrow {
        castle: spec.name.clone(),
        place,
        writable: writable(asked),
        after_down: spec.secrets.escrow.after_down,
        entries: entries.into_iter().map(entry).collect(),
    })
}

fn entry(entry: KeptEntry) -> Entry {
    let KeptEntry { key, what, kept } = entry;
    let state = match kept {
        None => EntryState::Absent,
        Some((_, Err(why))) => EntryState::Foreign { why },
        Some((text, Ok(life))) => {
            let way = Way::ALL.into_iter().find(|way| way.key() == key);
            let valid_until = way.and_then(|way| way.valid_until(&text));
            EntryState::Ours { life, valid_until }
        }
    };
    Entry { key: key.to_owned(), what, state }
}

/// Whether the place takes new entries. Nothing is written to find out.
fn writable(asked: &Asked<'_>) -> Writable {
    let EscrowPlace::File(escrow) = &asked.castle.spec.secrets.escrow.place else {
        let why = "Infisical tells by the first write; the identity needs create, edit and delete on secrets there".to_owned();
        return Writable::Unknown { why };
    };
    if let Err(failure) = asked.sources.keeps() {
        return Writable::No { why: failure.why };
    }
    let project = match asked.castle.place {
        Place::Real => asked.castle.folder.clone(),
        Place::Rehearsal => state::datacenter(asked.castle),
    };
    let path = project.join(&escrow.file);
    // A file is replaced, not changed: it is the folder that has to be writable. One that is not there yet is made.
    let mut above = path.ancestors().skip(1);
    let folder = above.find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(&project);
    match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Writable::Yes,
        Err(error) => {
            let error = std::io::Error::from(error);
            Writable::No { why: format!("the folder {}: {error}", folder.display()) }
        }
    }
}
