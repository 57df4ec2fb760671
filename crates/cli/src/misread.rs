//! A command line that can not be read, in the form of every other error: what, what was written wrong, what to write.

use clap::{ColorChoice, CommandFactory};

use crate::args::Cli;
use crate::exit::Problem;

/// What is wrong with these words, from what clap says of them.
pub(crate) fn problem(error: &clap::Error, words: &[String]) -> Problem {
    use clap::error::ErrorKind;
    let help = format!("`{} --help` explains it", command(words));
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Problem::usage("it is not said what is to be done").hint(help);
    }
    let text = error.render().to_string();
    let mut said = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = said.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let (mut named, mut cures, mut forms) = (Vec::new(), Vec::new(), Vec::new());
    for line in said.take_while(|line| !line.starts_with("For more information")) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            cures.extend(visible(tip, words));
        } else if let Some(form) = line.strip_prefix("Usage: ") {
            forms.push(format!("write `{form}`"));
        } else if let Some(values) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            cures.push(values.to_owned());
        } else {
            named.push(line.to_owned());
        }
    }
    if cures.is_empty() {
        cures = forms;
    }
    cures.push(help);
    let mut problem = match first.strip_suffix(':') {
        Some(first) => Problem::usage(format!("{first}: {}", named.join(", "))),
        None => Problem { causes: named, ..Problem::usage(first) },
    };
    problem.hint = Some(cures.join("; "));
    problem
}

/// The command that was meant, as far as its words are known.
fn command(words: &[String]) -> String {
    meant(words).1
}

fn meant(words: &[String]) -> (clap::Command, String) {
    let (mut at, mut path) = (Cli::command(), "castle".to_owned());
    for word in words.iter().skip(1) {
        if let Some(inner) = at.find_subcommand(word).filter(|inner| !inner.is_hide_set()) {
            path = format!("{path} {word}");
            at = inner.clone();
        }
    }
    (at, path)
}

/// A tip of clap's without the commands that are hidden; none if nothing is left of it.
fn visible(tip: &str, words: &[String]) -> Option<String> {
    if !tip.contains("similar subcommand") {
        return Some(tip.to_owned());
    }
    let (at, _) = meant(words);
    let shown = |name: &&str| at.find_subcommand(name).is_none_or(|inner| !inner.is_hide_set());
    let names: Vec<&str> = tip.split('\'').skip(1).step_by(2).filter(shown).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("a similar subcommand exists: '{one}'")),
        more => Some(format!("some similar subcommands exist: '{}'", more.join("', '"))),
    }
}

/// Whether clap paints what it says itself (help, the version): as `--color` says, wherever it stands.
pub(crate) fn colour(words: &[String]) -> ColorChoice {
    let mut words = words.iter().map(String::as_str).take_while(|word| *word != "--");
    let mut said = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("--color=") {
            Some(value) => said = Some(value),
            None if word == "--color" => said = words.next(),
            None => {}
        }
    }
    match said {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&words).err().unwrap();
        problem(&error, &words).to_string()
    }

    #[test]
    fn what_clap_says_is_said_as_everything_else_is() {
        let lines = [
            "castle upp",
            "castle nope",
            "castle rehearse repet",
            "castle up --jso",
            "castle up --color blue",
            "castle machineconfig",
            "castle down --layer storage --detach",
            "castle wipe --detach",
            "castle up --speed 0",
            "castle history now",
            "castle rehearse",
        ];
        let all: Vec<String> =
            lines.iter().map(|line| format!("$ {line}\n{}", told(line))).collect();
        insta::assert_snapshot!(all.join("\n"), @"
        $ castle upp
        error: unrecognized subcommand 'upp'
          hint: a similar subcommand exists: 'up'; `castle --help` explains it
        $ castle nope
        error: unrecognized subcommand 'nope'
          hint: write `castle [OPTIONS] <COMMAND>`; `castle --help` explains it
        $ castle rehearse repet
        error: unrecognized subcommand 'repet'
          hint: some similar subcommands exist: 'report', 'reset'; `castle rehearse --help` explains it
        $ castle up --jso
        error: unexpected argument '--jso' found
          hint: a similar argument exists: '--json'; `castle up --help` explains it
        $ castle up --color blue
        error: invalid value 'blue' for '--color <auto|always|never>'
          hint: possible values: auto, always, never; `castle up --help` explains it
        $ castle machineconfig
        error: the following required arguments were not provided: <NODE>
          hint: write `castle machineconfig <NODE>`; `castle machineconfig --help` explains it
        $ castle down --layer storage --detach
        error: the argument '--layer <LAYER>' cannot be used with '--detach'
          hint: write `castle down --layer <LAYER>`; `castle down --help` explains it
        $ castle wipe --detach
        error: unexpected argument '--detach' found
          hint: write `castle wipe [OPTIONS]`; `castle wipe --help` explains it
        $ castle up --speed 0
        error: invalid value '0' for '--speed <N|max>': give a whole number from 1 to 100000, or `max`
          hint: `castle up --help` explains it
        $ castle history now
        error: unexpected argument 'now' found
          hint: write `castle history [OPTIONS]`; `castle history --help` explains it
        $ castle rehearse
        error: it is not said what is to be done
          hint: `castle rehearse --help` explains it
        ");
    }
}
