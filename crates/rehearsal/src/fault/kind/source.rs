//! What goes wrong with Infisical, the Git host and downloads.

use std::collections::BTreeMap;

use super::super::rule::Who;
use super::super::value::Given;
use super::{Kind, Make, Shape, Slot};
use crate::trouble::{Download, GitTrouble, InfisicalTrouble as I, SourcesTrouble, Trouble};

const INFISICAL: &[Who] = &[Who::Infisical];
const GIT: &[Who] = &[Who::Git];
const DOWNLOADS: &[Who] = &[Who::Downloads];
const FILE: Option<Slot> = Some(Slot::needed("ADDRESS", Shape::Text));

fn one(trouble: I) -> Vec<Trouble> {
    vec![trouble.into()]
}

fn download(given: &Given<'_>, how: Download) -> Vec<Trouble> {
    vec![SourcesTrouble { address: given.object_text(), how }.into()]
}

fn push(given: &Given<'_>, path: String, text: Option<String>) -> Vec<Trouble> {
    let (url, branch) = (given.names.repository.clone(), given.names.branch.clone());
    vec![GitTrouble::Push { url, branch, files: BTreeMap::from([(path, text)]) }.into()]
}

fn folder(given: &Given<'_>, broken: bool) -> Vec<Trouble> {
    let (url, branch) = (given.names.repository.clone(), given.names.branch.clone());
    let path = given.text(0).unwrap_or_default();
    vec![GitTrouble::Folder { url, branch, path, broken }.into()]
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "limited",
        who: INFISICAL,
        object: None,
        arguments: &[Slot::optional("CALLS", Shape::Number)],
        about: "The rate limit holds; with a number, so many calls of a kind a minute.",
        example: "infisical: limited 1",
        says: "limits how often it is asked",
        make: Make::Passing(
            |given| match given.number(0) {
                0 => one(I::Limited(true)),
                calls => one(I::LimitedTo(calls)),
            },
            |_| one(I::Limited(false)),
        ),
    },
    Kind {
        name: "stumbles",
        who: INFISICAL,
        object: None,
        arguments: &[Slot::needed("CALLS", Shape::Number)],
        about: "The next calls that would write fail inside the server, and write nothing.",
        example: "infisical: stumbles 2",
        says: "will stumble over the next {0} calls that write",
        make: Make::Change(|given| {
            one(I::Stumbles(u32::try_from(given.number(0)).unwrap_or(u32::MAX)))
        }),
    },
    Kind {
        name: "page",
        who: INFISICAL,
        object: None,
        arguments: &[Slot::needed("STATUS", Shape::Status)],
        about: "A proxy answers in the server's place, with a page of HTML.",
        example: "infisical: page 502 for 0:20",
        says: "is hidden behind a proxy's page of status {0}",
        make: Make::Passing(
            |given| {
                let status = u16::try_from(given.number(0)).unwrap_or(502);
                one(I::Page(status, "Bad gateway".to_owned()))
            },
            |_| one(I::PageGone),
        ),
    },
    Kind {
        name: "expired",
        who: INFISICAL,
        object: None,
        arguments: &[],
        about: "Client secrets and the tokens that came from them have run out.",
        example: "infisical: expired from 0:15",
        says: "takes no client secret any more: they have run out",
        make: Make::Passing(|_| one(I::Expired), |_| one(I::Restored)),
    },
    Kind {
        name: "revoked",
        who: INFISICAL,
        object: None,
        arguments: &[],
        about: "Somebody has revoked client secrets and the tokens that came from them.",
        example: "infisical: revoked from 0:15 for 0:30",
        says: "takes no client secret any more: they are revoked",
        make: Make::Passing(|_| one(I::Revoked), |_| one(I::Restored)),
    },
    Kind {
        name: "read only",
        who: INFISICAL,
        object: None,
        arguments: &[],
        about: "Every identity may read, and nothing else.",
        example: "infisical: read only",
        says: "lets nobody write any more",
        make: Make::Change(|_| one(I::ReadOnly)),
    },
    Kind {
        name: "lost",
        who: INFISICAL,
        object: None,
        arguments: &[Slot::needed("KEY", Shape::Text)],
        about: "Somebody deletes a secret.",
        example: "infisical: lost AWS_ACCESS_KEY_ID",
        says: "has lost {0}, which somebody deleted",
        make: Make::Change(|given| one(I::Lost(given.text(0).unwrap_or_default()))),
    },
    Kind {
        name: "confined",
        who: INFISICAL,
        object: None,
        arguments: &[Slot::needed("PATTERN", Shape::Text)],
        about: "Every identity is confined to the folders that fit a pattern.",
        example: "infisical: confined /elsewhere/**",
        says: "shows only what lies in {0}",
        make: Make::Change(|given| one(I::Confined(given.text(0).unwrap_or_default()))),
    },
    Kind {
        name: "away",
        who: GIT,
        object: None,
        arguments: &[],
        about: "The Git host answers nobody: 503.",
        example: "git: away for 0:30",
        says: "is away",
        make: Make::Passing(
            |_| vec![GitTrouble::Away(true).into()],
            |_| vec![GitTrouble::Away(false).into()],
        ),
    },
    Kind {
        name: "pushed",
        who: GIT,
        object: None,
        arguments: &[Slot::needed("PATH", Shape::Text), Slot::needed("TEXT", Shape::Text)],
        about: "Somebody pushes a file to the branch.",
        example: "git: pushed README.md \"a push in between\" during flux",
        says: "was pushed to: {0}",
        make: Make::Change(|given| {
            let (path, text) = (given.text(0).unwrap_or_default(), given.text(1));
            push(given, path, text.map(|text| format!("{text}\n")))
        }),
    },
    Kind {
        name: "removed",
        who: GIT,
        object: None,
        arguments: &[Slot::needed("PATH", Shape::Text)],
        about: "Somebody removes a file from the branch.",
        example: "git: removed clusters/blue/apps.yaml",
        says: "has lost {0}",
        make: Make::Change(|given| push(given, given.text(0).unwrap_or_default(), None)),
    },
    Kind {
        name: "broken",
        who: GIT,
        object: None,
        arguments: &[Slot::needed("FOLDER", Shape::Text)],
        about: "Somebody pushes a commit that breaks the YAML of a folder.",
        example: "git: broken apps during flux",
        says: "has broken YAML in {0}",
        make: Make::Passing(|given| folder(given, true), |given| folder(given, false)),
    },
    Kind {
        name: "branch gone",
        who: GIT,
        object: None,
        arguments: &[],
        about: "The branch is removed.",
        example: "git: branch gone",
        says: "has lost its branch",
        make: Make::Change(|given| {
            let (url, branch) = (given.names.repository.clone(), given.names.branch.clone());
            vec![GitTrouble::Unbranch { url, branch }.into()]
        }),
    },
    Kind {
        name: "token changed",
        who: GIT,
        object: None,
        arguments: &[],
        about: "The token that reads the repository is another one from now on.",
        example: "git: token changed",
        says: "takes another token",
        make: Make::Change(|given| {
            let (url, token) = (given.names.repository.clone(), "another".to_owned());
            vec![GitTrouble::Token { url, token }.into()]
        }),
    },
    Kind {
        name: "missing",
        who: DOWNLOADS,
        object: FILE,
        arguments: &[],
        about: "A file whose address holds this text is not there.",
        example: "downloads metallb: missing",
        says: "is not there",
        make: Make::Change(|given| download(given, Download::Missing)),
    },
    Kind {
        name: "tampered",
        who: DOWNLOADS,
        object: FILE,
        arguments: &[],
        about: "One byte of a file is another one.",
        example: "downloads metallb: tampered",
        says: "is not what it was",
        make: Make::Change(|given| download(given, Download::Tampered)),
    },
    Kind {
        name: "breaks off",
        who: DOWNLOADS,
        object: FILE,
        arguments: &[Slot::needed("BYTES", Shape::Number)],
        about: "The next download of a file breaks off after so many bytes.",
        example: "downloads metallb: breaks off 2000",
        says: "will break off after {0} bytes",
        make: Make::Change(|given| {
            let bytes = usize::try_from(given.number(0)).unwrap_or(usize::MAX);
            download(given, Download::BreaksOff(bytes))
        }),
    },
    Kind {
        name: "elsewhere",
        who: DOWNLOADS,
        object: FILE,
        arguments: &[Slot::needed("URL", Shape::Text)],
        about: "Whoever asks for a file is sent to another address.",
        example: "downloads metallb: elsewhere https://example.com/other.yaml",
        says: "sends whoever asks to {0}",
        make: Make::Change(|given| {
            download(given, Download::Elsewhere(given.text(0).unwrap_or_default()))
        }),
    },
];
