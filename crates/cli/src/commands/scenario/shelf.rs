//! The stories that the program carries, as a list and as a page.

use std::fmt::Write;
use std::path::Path;

use castle_config::Sources;
use castle_config::story::{self, Story};

use serde_json::json;

use crate::answer;
use crate::exit::{Exit, Problem};

/// Every story of the folder `scenarios`, by name.
pub(super) const SHELF: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shelf.rs"));

/// The file of a story on the shelf.
pub(super) fn sources(name: &str) -> Option<Sources> {
    let (_, text) = SHELF.iter().find(|(known, _)| *known == name)?;
    let (file, text) = (format!("scenarios/{name}.hcl"), text.as_bytes().to_vec());
    Some(Sources { file, text, ..Sources::default() })
}

/// The names of all of them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SHELF.iter().map(|(name, _)| *name)
}

fn stories() -> Result<Vec<(&'static str, Story)>, Problem> {
    let story = |(name, _): &(&'static str, &str)| {
        let read = sources(name).map(|sources| story::read(&sources));
        let story = read.and_then(|read| read.story);
        let broken = || Problem::new(Exit::Failed, format!("the built-in story {name} is broken"));
        Ok((*name, story.ok_or_else(broken)?))
    };
    SHELF.iter().map(story).collect()
}

/// One line for each story: its name, its title, where it comes from.
pub(super) fn list() -> Result<String, Problem> {
    let stories = stories()?;
    let width = stories.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut page = String::new();
    for (name, story) in stories {
        let from = story.from.first().map(String::as_str).unwrap_or_default();
        // The name of a file says nothing to anybody who does not have it.
        let is_file = Path::new(from).extension().is_some_and(|ending| ending == "txt");
        let from = if is_file { "a diary" } else { from };
        writeln!(page, "{name:width$}  {} ({from})", story.title).ok();
    }
    Ok(page)
}

/// The same for programs, one line for each.
pub(super) fn lines() -> Result<Vec<String>, Problem> {
    let line = |(name, story): (&str, Story)| {
        let told =
            json!({ "name": name, "title": story.title, "told": story.told, "from": story.from });
        answer::line("scenario", &told)
    };
    Ok(stories()?.into_iter().map(line).collect())
}

/// The page of all stories, and of what they do not show.
pub(super) fn page() -> Result<String, Problem> {
    let mut page = String::from(OPENING);
    for (name, story) in stories()? {
        writeln!(page, "\n### {name}\n\n**{}** {}", sentence(&story.title), story.told).ok();
        writeln!(page, "\nFrom {}. `castle rehearse scenario {name}`", story.from.join(", ")).ok();
    }
    page.push_str(NOT_SHOWN);
    page.push_str(&castle_config::story_reference());
    Ok(page)
}

fn sentence(title: &str) -> String {
    if title.ends_with(['.', '!', '?']) { title.to_owned() } else { format!("{title}.") }
}

const OPENING: &str = "\
# Stories

Failures that once cost somebody a night, each as a story that castle plays in its built-in datacenter: what breaks, what castle must
say and do, and what must be true of the datacenter afterwards, by the datacenter's own books.

    castle rehearse scenario --list            which there are
    castle rehearse scenario etcd-ghost        play one; --speed 20 to watch it
    castle rehearse scenario ./my.hcl          play one of your own

A story is a file in [scenarios](../scenarios); a new one needs no Rust. All of them are played by the tests.

Where a story comes from is told with it. A row such as `D 4` is one of the list of failures that this project was begun with, and a section
such as `MISSION B.4` one of the text that the list stands in. A name that ends with `.txt` is a diary whose writer met the failure. *The
faults asked for* are another list of the beginning: what castle has to bear, whoever met it. What is from *nobody's diary* stands in none of them.

This page is generated (`cargo xtask docs`); do not edit it by hand.

## The stories
";

const NOT_SHOWN: &str = "

## Not shown here, because…

| row | what | why |
|---|---|---|
| D 16 | a secret with quotes or a line end in it | the values of a rehearsal are invented; the tests of the secrets layer put dirty ones in |
| D 19 | a Helm release in limbo | the rehearsal's releases always succeed; castle reads what Flux says of them, and the tests of its judge hold that |
| D 21 | `kubectl wait` that ends at once | a gate is asked of the objects that were applied; nothing is waited for by selector |
| D 25 | a load balancer without an address | the pool's own gate asks for one in every story that rises; the rehearsal's Flux calls every Service healthy, so that one of yours would not be missed |
| D 26 | ports of an ingress | what the cluster hosts is not emulated |
| D 31 | a password that the second run made anew | castle makes one secret, the Talos bundle, and keeps it before it is used: `lost-state` and `keys-exist-already` go on with the same one; passwords of what the cluster hosts are not castle's |
| D 36 | a volume attached to a dead machine | volumes are emulated until they are bound, no further |
| D 37 | a volume that is faulted after the power was cut | the same; `power-cut` shows the machines |
";
