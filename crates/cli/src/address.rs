//! castle's own commands in advice, as whoever reads it has to type them.
//!
//! Rooms below know no command line: they say `` `castle down` ``. Where that would be another castle, or another world, the words that
//! come back to this one stand in its place: `` `castle rehearse -f castle.hcl down` ``.

use std::borrow::Cow;
use std::sync::OnceLock;

use castle_model::audit::Audit;
use castle_model::{Event, EventKind, Failure};
use serde_json::Value;

/// What a user types to come back to the castle that this process is about.
static COMMAND: OnceLock<String> = OnceLock::new();

/// How it begins where nothing more is needed.
const PLAIN: &str = "castle";

/// The commands that are about one castle.
const OF_A_CASTLE: [&str; 18] = [
    "attach",
    "audit",
    "check",
    "down",
    "graph",
    "history",
    "kubeconfig",
    "lock",
    "machineconfig",
    "plan",
    "rebirth",
    "report",
    "secrets",
    "status",
    "talosconfig",
    "up",
    "why",
    "wipe",
];

/// Those that need no datacenter, so that a rehearsal has none of them.
const NEVER_REHEARSED: [&str; 2] = ["check", "graph"];

/// From here on, advice leads back to the castle that is reached so.
pub(crate) fn lead_to(command: &str) {
    // A process is about one castle; what a story plays inside of it says `castle`, whoever plays it.
    COMMAND.set(command.to_owned()).ok();
}

/// A text whose commands can be typed as they stand.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    COMMAND.get().map_or(Cow::Borrowed(text), |command| led(text, command))
}

fn led<'a>(text: &'a str, command: &str) -> Cow<'a, str> {
    const BEGINNING: &str = "`castle ";
    if command == PLAIN || !text.contains(BEGINNING) {
        return Cow::Borrowed(text);
    }
    let mut led = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGINNING) {
        let words = &rest[at + BEGINNING.len()..];
        led.push_str(&rest[..=at]);
        let name = words.split(['`', ' ', '\n']).next().unwrap_or_default();
        led.push_str(if is_led(name, command) { command } else { PLAIN });
        led.push(' ');
        rest = words;
    }
    led.push_str(rest);
    Cow::Owned(led)
}

fn is_led(name: &str, command: &str) -> bool {
    let rehearsed = command.starts_with("castle rehearse");
    OF_A_CASTLE.contains(&name) && !(rehearsed && NEVER_REHEARSED.contains(&name))
}

/// The same in place.
pub(crate) fn change(told: &mut String) {
    if let Cow::Owned(led) = text(told) {
        *told = led;
    }
}

/// The same for a failure: its cures, and whatever else names a command.
pub(crate) fn failure(failure: &mut Failure) {
    failure.findings.iter_mut().for_each(|finding| change(&mut finding.cure));
    failure.hint.iter_mut().for_each(change);
}

/// The same for an event.
pub(crate) fn event(event: &Event) -> Cow<'_, Event> {
    let advises = matches!(
        event.kind,
        EventKind::StepFailed { .. }
            | EventKind::StepRetrying { .. }
            | EventKind::Leftover { .. }
            | EventKind::Notice { .. }
    );
    if !advises || COMMAND.get().is_none_or(|command| command == PLAIN) {
        return Cow::Borrowed(event);
    }
    let mut event = event.clone();
    match &mut event.kind {
        EventKind::StepFailed { failure: told, .. }
        | EventKind::StepRetrying { failure: told, .. } => failure(told),
        EventKind::Leftover { what, .. } => change(what),
        EventKind::Notice { text, .. } => change(text),
        _ => {}
    }
    Cow::Owned(event)
}

/// The same for what an audit found.
pub(crate) fn audit(audit: &mut Audit) {
    audit.items.iter_mut().for_each(|item| change(&mut item.advice));
}

/// The same for every text of an answer to a program.
pub(crate) fn value(told: &mut Value) {
    match told {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(value),
        Value::Object(keys) => keys.values_mut().for_each(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_leads_to_the_castle_that_it_is_about() {
        let command = "castle rehearse -f 'my castle.hcl'";
        for (told, led_to) in [
            ("`castle down` removes it", "`castle rehearse -f 'my castle.hcl' down` removes it"),
            (
                "`castle down`, then `castle up --yes`",
                "`castle rehearse -f 'my castle.hcl' down`, then `castle rehearse -f 'my castle.hcl' up --yes`",
            ),
        ] {
            assert_eq!(led(told, command), led_to);
            assert_eq!(led(led_to, command), led_to, "once is enough");
            assert_eq!(led(told, PLAIN), told);
        }
        for other in [
            "`castle rehearse inventory` looks",
            "`castle check` reads it again",
            "`castle -f a.hcl down`",
            "`castle` alone",
            "the castle down there",
            "`castle ",
        ] {
            assert_eq!(led(other, command), other);
        }
        assert_eq!(led("`castle check`", "castle -f a.hcl"), "`castle -f a.hcl check`");
    }

    #[test]
    fn whoever_is_about_one_castle_is_a_command() {
        use clap::CommandFactory;
        let cli = crate::args::Cli::command();
        for name in OF_A_CASTLE {
            assert!(cli.find_subcommand(name).is_some(), "{name}");
        }
        let rehearse = cli.find_subcommand("rehearse").unwrap();
        for name in OF_A_CASTLE {
            let there = rehearse.find_subcommand(name).is_some();
            assert_eq!(there, !NEVER_REHEARSED.contains(&name), "rehearse {name}");
        }
    }
}
