//! What git is asked, against the rehearsed host.

use super::Told::{Ends, Exactly, Says};
use super::{Asked, asked, asked_as};

/// In this order; `{url}` is the repository with its token, `{here}` a folder of the test.
pub const ASKED: &[Asked] = &[
    asked("ls-remote {url}", Says("\trefs/heads/main\n")),
    asked("ls-remote --symref {url} HEAD", Says("ref: refs/heads/main\tHEAD\n")),
    asked("ls-remote --exit-code {url} mian", Ends(2, "")),
    asked("ls-remote --tags {url}", Exactly("")),
    asked_as("version 2", "clone --quiet --depth=1 {url} {here}/two-shallow", Exactly("")),
    asked_as("version 2", "clone --quiet --no-tags {url} {here}/two", Exactly("")),
    asked_as("version 0", "clone --quiet --depth=1 {url} {here}/zero-shallow", Exactly("")),
    asked_as("version 0", "clone --quiet --no-tags {url} {here}/zero", Exactly("")),
    asked("clone --quiet --filter=blob:none --no-checkout {url} {here}/blobless", Exactly("")),
    asked("clone --quiet --single-branch --branch=main {url} {here}/single", Exactly("")),
    asked(
        "clone --branch=mian {url} {here}/lost",
        Ends(128, "Remote branch mian not found in upstream origin"),
    ),
    asked("-C {here}/two fsck --strict", Ends(0, "")),
    asked("-C {here}/two-shallow fsck --strict", Ends(0, "")),
    asked("-C {here}/zero fsck --strict", Ends(0, "")),
    asked("-C {here}/two-shallow rev-list --count HEAD", Exactly("1\n")),
    asked("-C {here}/two fetch --quiet", Exactly("")),
    asked("-C {here}/two-shallow fetch --quiet --unshallow", Exactly("")),
    asked("-C {here}/two-shallow rev-parse --is-shallow-repository", Exactly("false\n")),
    asked("-C {here}/two push origin HEAD:other", Ends(128, "")),
    asked("ls-remote {wrong}", Ends(128, "Authentication failed")),
    asked("ls-remote {anonymous}", Ends(128, "could not read Username")),
    asked("ls-remote {nobody}", Ends(128, "not found")),
    asked_as("trusting nobody", "ls-remote {url}", Ends(128, "certificate")),
];

/// What the rehearsed host and Git's own server are asked in the same bytes: a name, the version of the protocol, and
/// the lines of the question (none: the greeting). `|` ends a line, `~` is a delimiter, `.` the end.
pub const QUESTIONS: &[(&str, &str, &str)] = &[
    ("the greeting of version 0", "version=0", ""),
    ("the greeting of version 2", "version=2", ""),
    ("references", "version=2", "command=ls-refs|~|."),
    ("references and what HEAD stands for", "version=2", "command=ls-refs|~|symrefs|."),
    ("references by their beginning", "version=2", "command=ls-refs|~|ref-prefix refs/heads/m|."),
    ("references that are not there", "version=2", "command=ls-refs|~|ref-prefix refs/tags/|."),
    ("a whole history", "version=2", "command=fetch|~|no-progress|want {head}|done|."),
    (
        "the last commit alone",
        "version=2",
        "command=fetch|~|no-progress|deepen 1|want {head}|done|.",
    ),
    (
        "what is there already",
        "version=2",
        "command=fetch|~|no-progress|want {head}|have {head}|done|.",
    ),
    (
        "a commit that is not there",
        "version=2",
        "command=fetch|~|want 1111111111111111111111111111111111111111|done|.",
    ),
    ("a whole history in version 0", "version=0", "want {head} side-band-64k no-progress|.|done"),
    (
        "the last commit alone in version 0",
        "version=0",
        "want {head} side-band-64k shallow no-progress|deepen 1|.|done",
    ),
];
