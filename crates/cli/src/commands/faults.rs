//! `castle rehearse --list-faults`: everything that can be broken, with an example of each.

use std::fmt::Write;

use castle_rehearsal::fault::{Kind, Phase, Who, kinds};
use serde_json::json;

use crate::exit::Exit;
use crate::output;

/// Prints all kinds of faults.
pub(crate) fn list(as_json: bool) -> Exit {
    if as_json {
        for kind in kinds() {
            output::data(&line(kind));
        }
    } else {
        output::data(&page());
    }
    Exit::Done
}

fn line(kind: &Kind) -> String {
    let who: Vec<&str> = kind.who.iter().map(|who| who.name()).collect();
    json!({
        "name": kind.name, "who": who, "form": kind.form(), "about": kind.about,
        "example": kind.example, "poke": kind.is_change(),
    })
    .to_string()
}

/// All kinds on one page of 80 columns.
fn page() -> String {
    let phases = Phase::ALL.map(Phase::name).join(", ");
    let mut page = format!(
        "A rule says who breaks, how, and when:\n\n  talos cp-02: dead from 0:40\n\n\
         Behind each kind may stand, in any order: on METHOD PATH (what the path ends\n\
         with; * is anything), the 3rd, once, twice, 5 times, from M:SS, until M:SS,\n\
         for M:SS, during PHASE ({phases}).\n\
         Times are those of the run, as the screen shows them.\n"
    );
    let servers: Vec<&Kind> = kinds().filter(|kind| kind.who.len() > 1).collect();
    part(&mut page, "on the wire, for any server", &servers);
    for who in Who::ALL {
        let own: Vec<&Kind> = kinds().filter(|kind| kind.who == [who]).collect();
        part(&mut page, who.name(), &own);
    }
    page
}

fn part(page: &mut String, title: &str, kinds: &[&Kind]) {
    write!(page, "\n{title}\n").ok();
    for kind in kinds {
        write!(page, "  {}\n    {}\n    {}\n", kind.form(), kind.about, kind.example).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_fits_a_terminal() {
        let page = page();
        let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, [""; 0]);
        assert!(kinds().count() >= 24);
    }
}
