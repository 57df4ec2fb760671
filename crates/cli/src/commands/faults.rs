//! `castle rehearse --list-faults`: everything that can be broken, with an example of each.

use std::fmt::Write;

use castle_rehearsal::fault::{Kind, Phase, Who, kinds};
use serde_json::json;

use crate::answer;
use crate::exit::Exit;
use crate::output;

/// Prints all kinds of faults.
pub(crate) fn list(as_json: bool) -> Exit {
    if as_json {
        for kind in kinds() {
            output::data(&line(kind));
        }
    } else {
        output::page(&page());
    }
    Exit::Done
}

fn line(kind: &Kind) -> String {
    let who: Vec<&str> = kind.who.iter().map(|who| who.name()).collect();
    let kind = json!({
        "name": kind.name, "who": who, "form": kind.form(), "about": kind.about,
        "example": kind.example, "poke": kind.is_change(),
    });
    answer::line("fault-kind", &kind)
}

/// All kinds on one page of 80 columns.
fn page() -> String {
    let phases = Phase::ALL.map(Phase::name).join(", ");
    let mut page = format!(
        "A rule says who breaks, how, and when:\n\n  talos cp-02: dead from 0:40\n\n\
         Behind each kind may stand, in any order: on METHOD PATH (what the path ends\n\
         with; * is anything), the 3rd, once, twice, 5 times, from M:SS, until M:SS,\n\
         for M:SS, during PHASE ({phases}).\n\
         Times are those of the run from its first look on; the screen's clock begins\n\
         with the first step, some four seconds later.\n"
    );
    let most = kinds().map(|kind| kind.who.len()).max().unwrap_or_default();
    let wire = kinds().filter(|kind| kind.who.len() > 1);
    let (any, some): (Vec<&Kind>, Vec<&Kind>) = wire.partition(|kind| kind.who.len() == most);
    part(&mut page, "on the wire, for any server", &any);
    let names = |kind: &&Kind| kind.who.iter().map(|who| who.name()).collect::<Vec<_>>().join(", ");
    let servers = some.first().map(names).unwrap_or_default();
    part(&mut page, &format!("on the wire, for {servers}"), &some);
    for who in Who::ALL {
        let own: Vec<&Kind> = kinds().filter(|kind| kind.who == [who]).collect();
        part(&mut page, who.name(), &own);
    }
    page
}

fn part(page: &mut String, title: &str, kinds: &[&Kind]) {
    write!(page, "\n{title}\n").ok();
    for kind in kinds {
        writeln!(page, "  {}", kind.form()).ok();
        for line in wrapped(kind.about) {
            writeln!(page, "    {line}").ok();
        }
        for (name, words) in kind.words() {
            for line in wrapped(&format!("{name}: {}", words.join(", "))) {
                writeln!(page, "    {line}").ok();
            }
        }
        writeln!(page, "    {}", kind.example).ok();
    }
}

/// Breaks a list between words.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 76 && !line.is_empty() => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) if line.is_empty() => line.push_str(word),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_a_fault_on_the_wire_and_what_a_task_may_be_is_said() {
        let page = page();
        let some = "on the wire, for proxmox, kubernetes, infisical, git, downloads\n  SERVER [OBJECT]: drips TIME\n";
        assert!(page.contains(some), "{page}");
        assert!(page.contains("    TASK: download, qmcreate, qmstart, "), "{page}");
    }

    #[test]
    fn the_page_fits_a_terminal() {
        let page = page();
        let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, [""; 0]);
        assert!(kinds().count() >= 24);
    }
}
