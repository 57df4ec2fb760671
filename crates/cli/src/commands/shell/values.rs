//! What a shell offers for the values that depend on the castle: steps, layers, machines, runs, stories, things that break.
//!
//! The scripts of `castle completions` call `castle complete KIND`, which says nothing where nothing is known. A castle file that
//! is not right yet, or a state root that can not be read, is no reason to talk to somebody who presses a key.

use castle_journal::Runs;
use castle_model::StepDecl;
use castle_rehearsal::fault;
use clap::ValueEnum;

use crate::args::Everywhere;
use crate::castle::{self, Castle, Place};
use crate::exit::Exit;
use crate::output;
use crate::project::Which;
use crate::settings::Settings;

/// What can be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Values {
    /// The steps of the castle file
    Steps,
    /// Its layers
    Layers,
    /// Its machines
    Machines,
    /// The runs that are kept
    Runs,
    /// The built-in stories
    Stories,
    /// What can be broken, as rules
    Faults,
}

/// Where a value of each kind is asked for: the command without `castle` and `rehearse`, and the flag, or none for the word itself.
pub(super) const ASKED: &[(&str, Option<&str>, Values)] = &[
    ("why", None, Values::Steps),
    ("report", None, Values::Runs),
    ("machineconfig", None, Values::Machines),
    ("scenario", None, Values::Stories),
    ("down", Some("--layer"), Values::Layers),
    ("up", Some("--fault"), Values::Faults),
    ("down", Some("--fault"), Values::Faults),
    ("rebirth", Some("--fault"), Values::Faults),
    ("plan", Some("--fault"), Values::Faults),
    ("wipe", Some("--fault"), Values::Faults),
];

impl Values {
    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Layers => "layers",
            Self::Machines => "machines",
            Self::Runs => "runs",
            Self::Stories => "stories",
            Self::Faults => "faults",
        }
    }
}

/// Prints what there is, one a line.
pub(crate) fn complete(
    which: &Which,
    (kind, place): (Values, Place),
    everywhere: &Everywhere,
    settings: &Settings,
) -> Exit {
    for value in values(which, (kind, place), everywhere, settings) {
        output::data(&value);
    }
    Exit::Done
}

fn values(
    which: &Which,
    (kind, place): (Values, Place),
    everywhere: &Everywhere,
    settings: &Settings,
) -> Vec<String> {
    if kind == Values::Stories {
        return crate::commands::scenario::names().map(str::to_owned).collect();
    }
    if kind == Values::Faults {
        return fault::kinds().map(|kind| kind.example.to_owned()).collect();
    }
    let Ok(castle) = Castle::find(which, place, everywhere, settings) else { return Vec::new() };
    let decls = || castle::declare(&castle.spec);
    match kind {
        Values::Steps => decls().iter().map(|decl| decl.id.to_string()).collect(),
        Values::Layers => layers(&decls()),
        Values::Machines => castle.spec.nodes.iter().map(|node| node.name.to_string()).collect(),
        _ => {
            let runs = Runs::at(&castle.state).ok().flatten();
            let kept = runs.and_then(|runs| runs.list().ok()).unwrap_or_default();
            kept.iter().rev().map(ToString::to_string).collect()
        }
    }
}

/// The layers in the order of their first step.
fn layers(decls: &[StepDecl]) -> Vec<String> {
    let mut layers: Vec<String> = Vec::new();
    for decl in decls {
        if !layers.iter().any(|known| known == decl.layer.as_str()) {
            layers.push(decl.layer.to_string());
        }
    }
    layers
}

/// The script of a shell, with what asks for these values; of shells that castle does not know so well as clap makes it.
pub(super) fn woven(shell: clap_complete::Shell, script: &str) -> String {
    match shell {
        clap_complete::Shell::Bash => bash(script),
        clap_complete::Shell::Zsh => zsh(script),
        clap_complete::Shell::Fish => fish(script),
        _ => script.to_owned(),
    }
}

/// The lines of a shell's `case`, from `command` or `command flag` to the word for the kind.
fn cases() -> String {
    let case = |(command, flag, kind): &(&str, Option<&str>, Values)| {
        let flag = flag.map(|flag| format!(" {flag}")).unwrap_or_default();
        format!("        \"{command}{flag}\") kind={} ;;\n", kind.word())
    };
    ASKED.iter().map(case).collect()
}

/// What both shells find out: the command, and the flag whose value is being written.
const FIND: &str = r#"    local word command= flag= kind= skip=
    local -a asked
    case "$prev" in
        --layer|--fault) flag=" $prev" ;;
        -*) return 1 ;;
    esac
    case "$cur" in
        -*) return 1 ;;
    esac
    for word in "${before[@]}"; do
        if [ -n "$skip" ]; then
            [ "$skip" = --color ] || asked+=("$skip" "$word")
            skip=
            continue
        fi
        case "$word" in
            -f|--file|--state|--color) skip=$word ;;
            rehearse) asked+=(--rehearsed) ;;
            -*) ;;
            *) [ -z "$command" ] && command=$word ;;
        esac
    done
    case "$command$flag" in
"#;

fn bash(script: &str) -> String {
    let cases = cases();
    // What clap made stays under another name, and is asked where nothing of ours fits.
    let script = script.replacen("_castle() {", "_castle_words() {", 1);
    format!(
        r#"{script}
# Values that depend on the castle: asked of castle itself.
_castle_values() {{
    local cur=$2 prev=$3 before=("${{COMP_WORDS[@]:1:COMP_CWORD-1}}") line
{FIND}{cases}        *) return 1 ;;
    esac
    COMPREPLY=()
    while IFS= read -r line; do
        [[ $line == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
    done < <(castle complete $kind "${{asked[@]}}" 2>/dev/null)
    [ ${{#COMPREPLY[@]}} -gt 0 ]
}}

_castle() {{
    _castle_values "$@" || _castle_words "$@"
}}
"#
    )
}

fn zsh(script: &str) -> String {
    let cases = cases();
    let script = script.replacen("_castle() {", "_castle_words() {", 1);
    let ours = format!(
        r#"
# Values that depend on the castle: asked of castle itself.
_castle_values() {{
    local cur=$words[CURRENT] prev=$words[CURRENT-1]
    local -a before lines
    before=("${{(@)words[2,CURRENT-1]}}")
{FIND}{cases}        *) return 1 ;;
    esac
    lines=("${{(@f)$(castle complete $kind "${{asked[@]}}" 2>/dev/null)}}")
    compadd -- $lines
}}

_castle() {{
    _castle_values || _castle_words "$@"
}}

"#
    );
    match script.rfind("if [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{ours}{}", &script[..end], &script[end..]),
        None => script + &ours,
    }
}

fn fish(script: &str) -> String {
    let line = |(command, flag, kind): &(&str, Option<&str>, Values)| {
        let flag = flag.map(|flag| format!(" -l {} -x", &flag[2..])).unwrap_or_default();
        let kind = kind.word();
        format!(
            "complete -c castle -n \"__fish_seen_subcommand_from {command}; and not __fish_seen_subcommand_from rehearse\"{flag} -f -a \"(castle complete {kind} 2>/dev/null)\"\n\
             complete -c castle -n \"__fish_seen_subcommand_from {command}; and __fish_seen_subcommand_from rehearse\"{flag} -f -a \"(castle complete {kind} --rehearsed 2>/dev/null)\"\n"
        )
    };
    let ours: String = ASKED.iter().map(line).collect();
    format!("{script}\n# Values that depend on the castle: asked of castle itself.\n{ours}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn what_is_asked_for_is_an_argument_of_its_command() {
        let cli = Cli::command();
        let rehearse = cli.find_subcommand("rehearse").unwrap();
        for (command, flag, kind) in ASKED {
            let found = cli.find_subcommand(command).or_else(|| rehearse.find_subcommand(command));
            let found = found.unwrap_or_else(|| panic!("{command} is no command"));
            let takes = found.get_arguments().any(|arg| match flag {
                Some(flag) => arg.get_long() == Some(&flag[2..]),
                None => arg.is_positional(),
            });
            assert!(takes, "{command} {flag:?} of {kind:?}");
        }
    }

    #[test]
    fn the_words_of_kinds_are_those_of_the_command_line() {
        for kind in Values::value_variants() {
            assert_eq!(kind.to_possible_value().unwrap().get_name(), kind.word());
        }
    }
}
