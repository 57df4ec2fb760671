//! The stories that the program carries, as a list and as a page.

use std::fmt::Write;

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

A story is a file in [scenarios](../scenarios); a new one needs no Rust. All of them are played by the tests. Rows such as `D 4` are those of
the list of failures that this project was begun with; the other name is the diary that tells of it.

This page is generated (`cargo xtask docs`); do not edit it by hand.

## The stories
";

const NOT_SHOWN: &str = "

## Not shown here, because…

| row | what | why |
|---|---|---|
| D 10 | a machine without iSCSI | `castle check` refuses Longhorn without its extensions (C0803), and the storage layer looks on each machine |
| D 12 | more copies of a volume than machines | `castle check` refuses it (C0801) |
| D 16 | a secret with quotes or a line end in it | the values of a rehearsal are invented; the tests of the secrets layer put dirty ones in |
| D 19 | a Helm release in limbo | castle installs manifests, Flux installs charts: the rehearsal has no Helm |
| D 21 | `kubectl wait` that ends at once | a gate is asked of the objects that were applied; nothing is waited for by selector |
| D 25 | a load balancer without an address | the pool's own gate asks for one in every story that rises; ports shared by services are Flux' side |
| D 26 | ports of an ingress | what the cluster hosts is not emulated |
| D 27 | pods that a namespace does not admit | castle labels its namespaces before it installs; the rehearsal admits by the same labels in every story |
| D 36 | a volume attached to a dead machine | volumes are emulated until they are bound, no further |
";
