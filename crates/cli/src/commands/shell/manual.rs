//! The pages of the manual: what `--help` says, and from the tables of the house how a command ends, what it reads and where
//! things are kept.

use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::args::Cli;
use crate::exit::Exit;
use crate::settings::VARIABLES;

/// Files that castle reads and writes. `docs/reference/state.md` tells of each one in the state root.
const FILES: &[(&str, &str)] = &[
    ("castle.hcl", "the castle file, in the working folder unless --file names another"),
    ("castle.lock", "beside it: what pins the parts that a castle is made from, by their content"),
    (
        "$XDG_STATE_HOME/castle/NAME",
        "the state root: journals, events and pages of runs, history. A cache: deleting it costs one `castle up`",
    ),
    (
        "$XDG_STATE_HOME/castle/rehearsal/NAME",
        "the same of a rehearsal, with its datacenter beside it; castle/example/NAME for the built-in castle",
    ),
    ("$XDG_CACHE_HOME/castle/manifests", "downloaded manifests, by their content"),
];

/// What people do with a command. A test reads each line as the program would.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "castle",
        &[
            (
                "castle up",
                "raise the castle of castle.hcl; without one, the built-in castle in the rehearsal",
            ),
            ("castle plan", "show what that would change, and why"),
            ("castle why", "ask a run that is going on what it waits for"),
            ("castle down --yes", "raze it, and look for leftovers"),
        ],
    ),
    (
        "castle up",
        &[
            ("castle up --detach", "let it go on in a process of its own"),
            (
                "castle rehearse up --fault 'talos cp-02: dead from 0:40'",
                "see what it does when a machine dies",
            ),
        ],
    ),
    (
        "castle down",
        &[("castle down --layer storage", "take down one layer and what stands on it")],
    ),
    (
        "castle rebirth",
        &[("castle rebirth --certify 3 --yes", "prove that it comes back, three times")],
    ),
    (
        "castle status",
        &[("castle status --json", "the same for a program; docs/reference/json.md tells of it")],
    ),
    ("castle why", &[("castle why platform/vip", "tell of one step")]),
    (
        "castle graph",
        &[("castle graph --format svg", "the steps as a picture, on standard output")],
    ),
    ("castle report", &[("castle report 12 --out run.html", "the page of run 12 in a file")]),
    ("castle judge", &[("castle judge -f -", "judge objects from standard input")]),
    ("castle secrets get", &[("castle secrets get GITHUB_TOKEN", "one value, for a pipe")]),
    ("castle man", &[("castle man --out /usr/local/share/man/man1", "install every page")]),
];

/// One page: its file name and its text.
pub(super) struct Page {
    pub(super) file: String,
    pub(super) text: Vec<u8>,
}

/// Every page, that of `castle` first.
pub(super) fn pages() -> std::io::Result<Vec<Page>> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    let mut open = vec![(root, "castle".to_owned())];
    while let Some((command, path)) = open.pop() {
        pages.push(page(&command, &path)?);
        let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        let inner = inner.map(|inner| (inner.clone(), format!("{path} {}", inner.get_name())));
        let mut inner: Vec<_> = inner.collect();
        inner.reverse();
        open.extend(inner);
    }
    Ok(pages)
}

fn page(command: &Command, path: &str) -> std::io::Result<Page> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis(command, path).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    tables(path).to_writer(&mut text)?;
    see_also(command, path).to_writer(&mut text)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut text)?;
    }
    Ok(Page { file: man.get_filename(), text })
}

/// The form of a command, with the names of what its flags take.
fn synopsis(command: &Command, path: &str) -> Roff {
    let mut line = vec![bold(path)];
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    for arg in command.get_arguments().filter(shown).filter(|arg| !arg.is_positional()) {
        line.push(roman(" ["));
        let names =
            [arg.get_short().map(|c| format!("-{c}")), arg.get_long().map(|l| format!("--{l}"))];
        for (at, name) in names.into_iter().flatten().enumerate() {
            line.extend((at > 0).then(|| roman("|")));
            line.push(bold(name));
        }
        if arg.get_action().takes_values() {
            let optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0);
            let (before, after) = if optional { ("[=", "]") } else { (" ", "") };
            line.extend([roman(before), italic(value(arg)), roman(after)]);
        }
        line.push(roman("]"));
    }
    for arg in command.get_positionals().filter(shown) {
        let (before, after) = if arg.is_required_set() { (" ", "") } else { (" [", "]") };
        line.extend([roman(before), italic(value(arg)), roman(after)]);
    }
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        line.extend([roman(" "), italic("COMMAND")]);
    }
    let mut page = Roff::new();
    page.control("SH", ["SYNOPSIS"]);
    page.text(line);
    page
}

fn value(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let name =
        if names.is_empty() { arg.get_id().as_str().to_uppercase() } else { names.join(" ") };
    let many = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
    if many { format!("{name}...") } else { name }
}

/// How a command ends, what it reads of its surroundings, where things are, and examples if there are any.
fn tables(path: &str) -> Roff {
    let mut page = Roff::new();
    let row = |page: &mut Roff, name: Inline, words: &str| {
        page.control("TP", []);
        page.text([name]);
        page.text([roman(words)]);
    };
    page.control("SH", ["EXIT STATUS"]);
    for (exit, _, _, meaning) in Exit::ALL {
        row(&mut page, bold((exit as u8).to_string()), meaning);
    }
    page.control("SH", ["ENVIRONMENT"]);
    for variable in VARIABLES {
        row(&mut page, bold(variable.name), variable.what);
    }
    page.control("SH", ["FILES"]);
    for (file, words) in FILES {
        row(&mut page, italic(*file), words);
    }
    if let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == path) {
        page.control("SH", ["EXAMPLES"]);
        for (line, words) in *examples {
            row(&mut page, bold(*line), words);
        }
    }
    page
}

/// The page above, and those below.
fn see_also(command: &Command, path: &str) -> Roff {
    let mut others = Vec::new();
    let page_of = |path: &str| format!("{}(1)", path.replace(' ', "-"));
    if let Some((above, _)) = path.rsplit_once(' ') {
        others.push(page_of(above));
    }
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    others.extend(inner.map(|inner| page_of(&format!("{path} {}", inner.get_name()))));
    // The real one of what is only rehearsed, and the other way round.
    let twin = match path.strip_prefix("castle rehearse ") {
        Some(rest) => format!("castle {rest}"),
        None => path.replacen("castle ", "castle rehearse ", 1),
    };
    if twin != path && finds(&twin) {
        others.push(page_of(&twin));
    }
    let mut page = Roff::new();
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(others.join(", "))]);
    page
}

/// Whether there is such a command for people.
fn finds(path: &str) -> bool {
    let mut at = Cli::command();
    path.split(' ').skip(1).all(|word| {
        let inner = at.find_subcommand(word).filter(|inner| !inner.is_hide_set()).cloned();
        inner.map(|inner| at = inner).is_some()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn every_page_has_every_section_and_every_reference_a_page() {
        let pages = pages().unwrap();
        let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
        for page in &pages {
            let text = String::from_utf8(page.text.clone()).unwrap();
            for section in ["NAME", "SYNOPSIS", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"] {
                let head = section.split(' ').next().unwrap();
                assert!(
                    text.contains(&format!(".SH {head}"))
                        || text.contains(&format!(".SH \"{section}\"")),
                    "{}: {section}",
                    page.file
                );
            }
            let (_, also) = text.rsplit_once("SEE ALSO").unwrap();
            let named = also.lines().nth(1).unwrap().replace("\\-", "-");
            for name in named.split(", ") {
                let file = name.replace("(1)", ".1");
                assert!(files.contains(&file.as_str()), "{} names {name}", page.file);
            }
        }
        assert_eq!(files.first(), Some(&"castle.1"));
    }

    #[test]
    fn every_example_is_a_command_of_its_page() {
        for (path, examples) in EXAMPLES {
            assert!(finds(path), "{path}");
            for (line, _) in *examples {
                let mut words: Vec<String> = Vec::new();
                for (at, part) in line.split('\'').enumerate() {
                    if at % 2 == 1 {
                        words.push(part.to_owned());
                    } else {
                        words.extend(part.split_whitespace().map(str::to_owned));
                    }
                }
                assert!(Cli::try_parse_from(&words).is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn a_synopsis_names_what_flags_take() {
        let pages = pages().unwrap();
        let page = pages.iter().find(|page| page.file == "castle-report.1").unwrap();
        let text = String::from_utf8(page.text.clone()).unwrap();
        let (_, rest) = text.split_once("SYNOPSIS\n").unwrap();
        insta::assert_snapshot!(rest.lines().next().unwrap(), @r#"\fBcastle report\fR [\fB\-\-open\fR] [\fB\-\-out\fR \fIFILE\fR] [\fB\-f\fR|\fB\-\-file\fR \fIFILE\fR] [\fB\-\-state\fR \fIFOLDER\fR] [\fB\-\-json\fR] [\fB\-\-plain\fR] [\fB\-\-color\fR \fIauto|always|never\fR] [\fIRUN\fR]"#);
    }
}
