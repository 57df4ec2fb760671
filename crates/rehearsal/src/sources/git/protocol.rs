//! What a Git server says: greetings, references and packs, in the first version of the protocol and in the second.

use std::collections::BTreeSet;

use super::Repository;
use super::object::Objects;

/// What the server can do, for those who speak the first version.
const ABILITIES: &str =
    "multi_ack multi_ack_detailed thin-pack side-band-64k ofs-delta shallow no-progress";
/// The most that fits into one line of a band.
const BAND: usize = 65_515;

/// Branches and commits.
impl Repository {
    /// The branch that those get who name none.
    fn main(&self) -> Option<(&String, &String)> {
        self.branches.get_key_value("main").or(self.branches.iter().next())
    }

    /// The greeting in the first version: all references.
    pub(super) fn greeting_zero(&self) -> Vec<u8> {
        let mut text = line("# service=git-upload-pack\n") + "0000";
        let abilities = |more: &str| format!("{ABILITIES} {more}agent=git/rehearsal");
        let first = if let Some((branch, commit)) = self.main() {
            let can = abilities(&format!("symref=HEAD:refs/heads/{branch} "));
            format!("{commit} HEAD\0{can}\n")
        } else {
            format!("{} capabilities^{{}}\0{}\n", "0".repeat(40), abilities(""))
        };
        text += &line(&first);
        for (branch, commit) in &self.branches {
            text += &line(&format!("{commit} refs/heads/{branch}\n"));
        }
        (text + "0000").into_bytes()
    }

    /// The greeting in the second version: what it can do.
    pub(super) fn greeting_two() -> Vec<u8> {
        let words = ["version 2", "agent=git/rehearsal", "ls-refs=unborn", "fetch=shallow"];
        let lines =
            words.iter().chain(&["object-format=sha1"]).map(|word| line(&format!("{word}\n")));
        let service = line("# service=git-upload-pack\n") + "0000";
        (service + &lines.collect::<String>() + "0000").into_bytes()
    }

    /// Answers a question of the second version.
    pub(super) fn answer_two(&self, question: &[u8]) -> Option<Vec<u8>> {
        let words = lines(question)?;
        let has = |word: &str| words.iter().any(|w| w == word);
        if has("command=ls-refs") {
            return Some(self.references(&words));
        }
        if !has("command=fetch") {
            return None;
        }
        let asked = Asked::of(&words);
        let mut answer = Vec::new();
        if !asked.haves.is_empty() && !asked.done {
            answer.extend_from_slice(line("acknowledgments\n").as_bytes());
            for have in asked.haves.iter().filter(|have| self.commits.contains_key(*have)) {
                answer.extend_from_slice(line(&format!("ACK {have}\n")).as_bytes());
            }
            answer.extend_from_slice((line("ready\n") + "0001").as_bytes());
        }
        let (commits, cut) = match self.reached(&asked) {
            Ok(reached) => reached,
            Err(why) => return Some(line(&format!("ERR {why}")).into_bytes()),
        };
        if asked.depth.is_some() {
            answer.extend_from_slice(line("shallow-info\n").as_bytes());
            for word in Self::boundary(&asked, &commits, &cut) {
                answer.extend_from_slice(line(&format!("{word}\n")).as_bytes());
            }
            answer.extend_from_slice(b"0001");
        }
        answer.extend_from_slice(line("packfile\n").as_bytes());
        banded(&self.pack(&asked, &commits), &mut answer);
        Some(answer)
    }

    /// Answers a question of the first version.
    pub(super) fn answer_zero(&self, question: &[u8]) -> Option<Vec<u8>> {
        let asked = Asked::of(&lines(question)?);
        let (commits, cut) = match self.reached(&asked) {
            Ok(reached) => reached,
            Err(why) => return Some(line(&format!("ERR {why}")).into_bytes()),
        };
        let mut answer = Vec::new();
        if asked.depth.is_some() {
            for word in Self::boundary(&asked, &commits, &cut) {
                answer.extend_from_slice(line(&word).as_bytes());
            }
            answer.extend_from_slice(b"0000");
        }
        if !asked.done {
            return Some(answer);
        }
        answer.extend_from_slice(line("NAK\n").as_bytes());
        if asked.banded {
            banded(&self.pack(&asked, &commits), &mut answer);
        } else {
            answer.extend_from_slice(&self.pack(&asked, &commits));
        }
        Some(answer)
    }

    fn references(&self, words: &[String]) -> Vec<u8> {
        let prefixes: Vec<&str> =
            words.iter().filter_map(|w| w.strip_prefix("ref-prefix ")).collect();
        let asked =
            |name: &str| prefixes.is_empty() || prefixes.iter().any(|p| name.starts_with(p));
        let mut text = String::new();
        if let Some((branch, commit)) = self.main().filter(|_| asked("HEAD")) {
            let target = if words.iter().any(|w| w == "symrefs") {
                format!(" symref-target:refs/heads/{branch}")
            } else {
                String::new()
            };
            text += &line(&format!("{commit} HEAD{target}\n"));
        }
        for (branch, commit) in &self.branches {
            let name = format!("refs/heads/{branch}");
            if asked(&name) {
                text += &line(&format!("{commit} {name}\n"));
            }
        }
        (text + "0000").into_bytes()
    }

    /// The commits that are asked for with their past, and those at which the past is cut off.
    fn reached(&self, asked: &Asked) -> Result<(BTreeSet<String>, Vec<String>), String> {
        let (mut reached, mut cut) = (BTreeSet::new(), Vec::new());
        for want in &asked.wants {
            let mut next = Some(want.clone());
            let mut depth = 0;
            while let Some(id) = next.take() {
                let commit = self
                    .commits
                    .get(&id)
                    .ok_or_else(|| format!("upload-pack: not our ref {id}"))?;
                depth += 1;
                if asked.depth.is_some_and(|most| depth >= most) {
                    // A first commit is told too, though nothing is before it: so does Git.
                    cut.push(id.clone());
                } else {
                    next.clone_from(&commit.parent);
                }
                reached.insert(id);
            }
        }
        Ok((reached, cut))
    }

    /// Where the past ends for who asks, and where it does not end any more.
    fn boundary(asked: &Asked, reached: &BTreeSet<String>, cut: &[String]) -> Vec<String> {
        let known = asked.shallow.iter().filter(|id| reached.contains(*id) && !cut.contains(id));
        let fresh = cut.iter().filter(|id| !asked.shallow.contains(id));
        let lines = fresh.map(|id| format!("shallow {id}"));
        lines.chain(known.map(|id| format!("unshallow {id}"))).collect()
    }

    /// The commits that who asks has already: what he names, and what is before it unless his past ends there.
    fn had(&self, asked: &Asked) -> BTreeSet<String> {
        let mut had = BTreeSet::new();
        for have in &asked.haves {
            let mut next = Some(have);
            while let Some((id, commit)) = next.and_then(|id| Some((id, self.commits.get(id)?))) {
                had.insert(id.clone());
                next = commit.parent.as_ref().filter(|_| !asked.shallow.contains(id));
            }
        }
        had
    }

    /// The objects of some commits, without those that who asks has.
    fn pack(&self, asked: &Asked, commits: &BTreeSet<String>) -> Vec<u8> {
        let all = |commits: &BTreeSet<String>| {
            let mut objects = Objects::default();
            for commit in commits.iter().filter_map(|id| self.commits.get(id)) {
                commit.put(&mut objects);
            }
            objects
        };
        all(commits).without(&all(&self.had(asked))).pack()
    }
}

/// What somebody wants, as both versions say it.
#[derive(Default)]
struct Asked {
    wants: Vec<String>,
    haves: Vec<String>,
    /// Commits at which the past ends for who asks.
    shallow: Vec<String>,
    depth: Option<u32>,
    done: bool,
    banded: bool,
}

impl Asked {
    fn of(words: &[String]) -> Self {
        let mut asked = Self::default();
        for word in words {
            let (verb, rest) = word.split_once(' ').unwrap_or((word, ""));
            let first = rest.split(' ').next().unwrap_or_default();
            match verb {
                "want" => {
                    asked.banded |= rest.contains("side-band-64k");
                    asked.wants.push(first.to_owned());
                }
                "have" => asked.haves.push(first.to_owned()),
                "shallow" => asked.shallow.push(first.to_owned()),
                "deepen" => asked.depth = first.parse().ok(),
                "done" => asked.done = true,
                _ => {}
            }
        }
        asked
    }
}

/// The lines of a question; none if it is not in lines.
fn lines(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = std::str::from_utf8(bytes.get(..4)?).ok()?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length < 4 {
            bytes = &bytes[4..];
            continue;
        }
        let text = std::str::from_utf8(bytes.get(4..length)?).ok()?;
        found.push(text.trim_end_matches('\n').to_owned());
        bytes = &bytes[length..];
    }
    Some(found)
}

/// A pack in pieces of the first band.
fn banded(pack: &[u8], answer: &mut Vec<u8>) {
    for piece in pack.chunks(BAND) {
        answer.extend_from_slice(format!("{:04x}\x01", piece.len() + 5).as_bytes());
        answer.extend_from_slice(piece);
    }
    answer.extend_from_slice(b"0000");
}

fn line(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}
