//! What clients that nobody here wrote are asked to do, and what each must tell.
//!
//! The tests of this room go through these lists in their order, and the page about fidelity shows them: what is on
//! that page has been asked, and nothing else.

pub mod curl;
pub mod git;
pub mod kubectl;
pub mod scripts;
pub mod talosctl;

use crate::Output;

/// What a client must tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It succeeds, and this is part of what it prints.
    Says(&'static str),
    /// It succeeds, and prints this and nothing else.
    Exactly(&'static str),
    /// It ends with this code, or with [`ANY`] but success, and says this.
    Ends(i32, &'static str),
    /// It goes on while others are asked, and lines beginning with these words come, in this order.
    Watches(&'static [&'static str]),
}

/// A code that is not told beforehand.
pub const ANY: i32 = i32::MAX;

/// One thing that a client is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// As whom, or in which way; empty for the usual one.
    pub who: &'static str,
    /// The words of its command line, or the name of a step of its script. Words in braces stand for something of
    /// the test: a file, an address.
    pub words: &'static str,
    /// What it must tell.
    pub told: Told,
    /// Why a real server would answer something else; empty if it would not.
    pub differs: &'static str,
}

/// Somebody is asked in the usual way.
#[must_use]
pub const fn asked(words: &'static str, told: Told) -> Asked {
    Asked { who: "", words, told, differs: "" }
}

/// Somebody is asked as another one, or in another way.
#[must_use]
pub const fn asked_as(who: &'static str, words: &'static str, told: Told) -> Asked {
    Asked { who, words, told, differs: "" }
}

/// Somebody is asked what is knowingly answered in another way than by a real server.
#[must_use]
pub const fn differs(words: &'static str, told: Told, differs: &'static str) -> Asked {
    Asked { who: "", words, told, differs }
}

/// A client and all that it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Its name.
    pub name: &'static str,
    /// The component of `real/` that it is.
    pub component: &'static str,
    /// Which server it speaks to.
    pub server: &'static str,
    /// What it is asked, in this order.
    pub asked: &'static [&'static [Asked]],
}

/// Every client.
pub const CLIENTS: &[Client] = &[
    Client {
        name: "proxmoxer",
        component: "proxmoxer",
        server: "Proxmox",
        asked: &[scripts::PROXMOXER],
    },
    Client {
        name: "infisicalsdk",
        component: "infisicalsdk",
        server: "Infisical",
        asked: &[scripts::INFISICALSDK],
    },
    Client {
        name: "talosctl",
        component: "talosctl-1.13",
        server: "Talos",
        asked: &[talosctl::MAINTENANCE, talosctl::CONFIGURED, talosctl::RAISED],
    },
    Client {
        name: "kubectl",
        component: "kubectl",
        server: "Kubernetes",
        asked: &[kubectl::PEOPLE, kubectl::STRANGERS],
    },
    Client { name: "git", component: "git", server: "Git", asked: &[git::ASKED] },
    Client { name: "curl", component: "curl", server: "all of them", asked: &[curl::ASKED] },
];

impl Asked {
    /// The words of the command line, with what the names in braces stand for.
    ///
    /// # Panics
    /// If a name stands for nothing.
    #[must_use]
    pub fn line(&self, names: &[(&str, &str)]) -> Vec<String> {
        let word = |word: &str| {
            let mut word = word.to_owned();
            for (name, value) in names {
                word = word.replace(&format!("{{{name}}}"), value);
            }
            let inner = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
            assert!(
                !inner.is_some_and(
                    |inner| !inner.is_empty() && inner.chars().all(char::is_alphabetic)
                ),
                "{word} stands for nothing in {:?}",
                self.words
            );
            word
        };
        self.words.split_whitespace().map(word).collect()
    }

    /// Whether a program told what it must; if not, what it told instead.
    ///
    /// # Errors
    /// What was asked, what should have been told, and what was.
    pub fn judge(&self, output: &Output) -> Result<(), String> {
        let Output { code, stdout, stderr } = output;
        let fits = match self.told {
            Told::Says(part) => *code == Some(0) && stdout.contains(part),
            Told::Exactly(text) => *code == Some(0) && stdout == text,
            Told::Ends(wanted, part) => {
                let ended = match wanted {
                    ANY => code.is_some_and(|code| code != 0),
                    wanted => *code == Some(wanted),
                };
                ended && (stdout.contains(part) || stderr.contains(part))
            }
            Told::Watches(lines) => comes(stdout, lines),
        };
        if fits {
            return Ok(());
        }
        Err(format!(
            "{} {}: {:?} was wanted, but {code:?}\n{stdout}\n{stderr}",
            self.who, self.words, self.told
        ))
    }
}

/// Whether lines that begin with these words come in this order, whatever is between the words.
#[must_use]
pub fn comes(text: &str, lines: &[&str]) -> bool {
    let spaced = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let mut found = text.lines().map(spaced);
    lines.iter().all(|wanted| found.any(|line| line.starts_with(&format!("{wanted} "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(code: i32, stdout: &str) -> Output {
        Output { code: Some(code), stdout: stdout.to_owned(), stderr: "no".to_owned() }
    }

    #[test]
    fn what_is_told_is_judged() {
        let judged = |told, output: &Output| asked("x", told).judge(output).is_ok();
        assert!(judged(Told::Says("b"), &output(0, "abc")));
        assert!(!judged(Told::Says("b"), &output(1, "abc")));
        assert!(!judged(Told::Exactly("b"), &output(0, "abc")));
        assert!(judged(Told::Ends(2, "no"), &output(2, "")));
        assert!(!judged(Told::Ends(1, "no"), &output(2, "")));
        let lines = "EVENT  NAME\nADDED   web  1\nDELETED web  2\n";
        assert!(judged(Told::Watches(&["ADDED web", "DELETED web"]), &output(0, lines)));
        assert!(!judged(Told::Watches(&["DELETED web", "ADDED web"]), &output(0, lines)));
    }

    #[test]
    fn names_in_braces_are_replaced() {
        let line = asked("get -f {file} {\"a\":1}", Told::Exactly("")).line(&[("file", "/x y")]);
        assert_eq!(line, ["get", "-f", "/x y", "{\"a\":1}"]);
    }
}
