//! `castle rehearse poke`: something happens in the datacenter, at once, also while a run is going on in it.

use std::fmt::Write;

use castle_rehearsal::fault::{Kind, Names, Rule, RuleError, When, kinds};
use castle_rehearsal::host::desk::{self, Ask, Poked, Told};
use castle_rehearsal::trouble::Trouble;

use crate::answer;
use crate::args::{Everywhere, Poke};
use crate::commands::inventory::time;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::Which;
use crate::rehearsal::{Rehearsal, rehearse, runtime, unanswered};
use crate::settings::Settings;
use crate::state;

/// How often a process that is just coming or going is asked again.
const TRIES: u32 = 3;

/// Changes the world as one rule says.
pub(crate) fn run(
    which: &Which,
    args: &Poke,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    if args.list && everywhere.json {
        for kind in kinds().filter(|kind| kind.is_change()) {
            let line = serde_json::json!({"name": kind.name, "form": kind.form(), "about": kind.about,
                "example": now(kind), "mend": kind.can_end()});
            output::data(&answer::line("poke-kind", &line));
        }
        return Ok(Exit::Done);
    }
    if args.list {
        output::page(&list());
        return Ok(Exit::Done);
    }
    let rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
    let (rule, troubles) = read(args, &rehearsal)?;
    state::other_world(&rehearsal.castle)?;
    let no_more = if args.mend { ", no more" } else { "" };
    let what = format!("{}{no_more}", rule.sentence());
    let (poked, hosted) = poke(&rehearsal, (&rule, &what), &troubles)?;
    if everywhere.json {
        let told = serde_json::json!({"rule": rule.to_string(), "mended": args.mend, "what": what,
            "at": poked.at, "changed": poked.changed, "hosted": hosted});
        output::data(&answer::line("poke", &told));
    }
    let command = &rehearsal.castle.command;
    let look = format!("`{} inventory`", rehearse(command));
    if !poked.changed {
        let why = match rule.kind().name {
            "foreign vm" | "foreign container" => "that number is taken",
            _ => "it is so already, or there is no such thing in the datacenter",
        };
        return Err(Problem::refused(format!("nothing changed by `{rule}`: {why}"))
            .hint(format!("{look} shows what is there")));
    }
    if !everywhere.json {
        output::say(&format!("[{:>5}] {what}", time(poked.at)));
        output::say(&if hosted {
            format!("next: whoever works in it feels it at once; {look} shows the datacenter")
        } else {
            format!(
                "next: `{command} plan` shows what castle makes of it, `{command} up` mends what it can; {look} shows the datacenter"
            )
        });
    }
    Ok(Exit::Done)
}

/// The rule, and what it does to the world.
fn read(args: &Poke, rehearsal: &Rehearsal) -> Result<(Rule, Vec<Trouble>), Problem> {
    let list =
        format!("`{} poke --list` shows what is possible", rehearse(&rehearsal.castle.command));
    let text = args.words.join(" ");
    let rule = Rule::parse(&text, &Names::of(&rehearsal.castle.spec))
        .map_err(|error| Problem::usage(only_pokes(error).picture("poke", 1)).hint(list.clone()))?;
    if *rule.when() != When::default() {
        return Err(Problem::usage(format!("a poke happens now, and `{rule}` says when"))
            .hint("leave that out, or give the rule to `up` with --fault"));
    }
    let troubles = match (rule.troubles(), rule.mending()) {
        (None, _) => {
            return Err(Problem::usage(format!(
                "`{rule}` strikes calls while they are made: no poke can do that"
            ))
            .hint(format!("give it to `up` with --fault; {list}")));
        }
        (Some(_), None) if args.mend => {
            return Err(Problem::usage(format!("`{rule}` can not be undone by anybody")).hint(
                format!(
                    "`{0} up` may mend it, or begin anew with `{1} reset`",
                    rehearsal.castle.command,
                    rehearse(&rehearsal.castle.command)
                ),
            ));
        }
        (Some(_), Some(mending)) if args.mend => mending.to_vec(),
        (Some(troubles), _) => troubles.to_vec(),
    };
    Ok((rule, troubles))
}

/// The error with what a poke can do in place of all that a rule can.
fn only_pokes(mut error: RuleError) -> RuleError {
    let change = |name: &&str| kinds().any(|kind| kind.name == *name && kind.is_change());
    if let Some((before, list)) =
        error.help.as_deref().and_then(|help| help.split_once("there is: "))
    {
        let names: Vec<&str> = list.split(", ").filter(change).collect();
        // Where something else is listed than kinds, nothing is left out.
        if !names.is_empty() {
            error.help = Some(format!("{before}there is: {}", names.join(", ")));
        }
    }
    error
}

/// Lets it happen in the process that hosts the world, or here if there is none, and says whether there was one.
fn poke(
    rehearsal: &Rehearsal,
    (rule, what): (&Rule, &str),
    troubles: &[Trouble],
) -> Result<(Poked, bool), Problem> {
    let (rule, what) = (rule.to_string(), what.to_owned());
    let ask = Ask::Poke { rule, what, troubles: troubles.to_vec() };
    for left in (0..TRIES).rev() {
        let told = desk::ask(&rehearsal.datacenter, &ask).map_err(|error| unanswered(&error))?;
        if let Some(Told::Poked(poked)) = told {
            return Ok((poked, true));
        }
        let here = runtime()?.block_on(async {
            let host = rehearsal.host("poke")?;
            let poked = host.poke(troubles);
            host.close().map(|()| poked)
        });
        match here {
            Ok(Some(poked)) => return Ok((poked, false)),
            Ok(None) => break,
            // Somebody has begun to host it just now.
            Err(error) if error.is_locked() && left > 0 => {}
            Err(error) => return Err(rehearsal.unusable(&error)),
        }
    }
    Err(Problem::new(Exit::Failed, "the rehearsal's world has ended before it could be changed"))
}

/// Everything that a poke can do, in 80 columns.
fn list() -> String {
    let mut page = String::from(
        "Each of these happens at once. Those with a * are undone with --mend.\n\n  \
         castle rehearse poke 'talos cp-02: dead'\n  \
         castle rehearse poke --mend 'talos cp-02: dead'\n\n",
    );
    for kind in kinds().filter(|kind| kind.is_change()) {
        let star = if kind.can_end() { "*" } else { " " };
        writeln!(page, "{star} {}\n    {}\n    {}", kind.form(), kind.about, now(kind)).ok();
    }
    page
}

/// The example of a kind, without its time.
fn now(kind: &Kind) -> &'static str {
    let words = [" on ", " from ", " until ", " for ", " during ", " once", " twice", " the "];
    let time = words.iter().filter_map(|word| kind.example.find(word)).min();
    &kind.example[..time.unwrap_or(kind.example.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_can_be_poked_and_fits_a_terminal() {
        let page = list();
        let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(long, [""; 0]);
        let spec = castle_config::read(&castle_config::Sources {
            file: "castle.hcl".to_owned(),
            text: castle_config::EXAMPLE.as_bytes().to_vec(),
            environment: std::collections::BTreeMap::new(),
            files: std::collections::BTreeMap::new(),
            lock: None,
        })
        .spec
        .unwrap();
        for kind in kinds().filter(|kind| kind.is_change()) {
            let rule = Rule::parse(now(kind), &Names::of(&spec)).unwrap();
            assert_eq!(*rule.when(), When::default(), "{}", kind.example);
            assert!(rule.troubles().is_some_and(|troubles| !troubles.is_empty()), "{rule}");
            assert_eq!(rule.mending().is_some(), kind.can_end(), "{rule}");
        }
    }
}
