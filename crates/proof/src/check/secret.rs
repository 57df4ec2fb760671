//! No secret outside: what is kept in the vault is in no journal, no event and no failure.

use std::collections::BTreeSet;

use castle_rehearsal::world::Datacenter;
use serde_json::Value;

use super::Violation;
use crate::castle::Run;

/// Shorter words are in every text.
const LEAST: usize = 20;

/// Searches everything that a process wrote and told for everything that the vault holds.
#[must_use]
pub fn outside(datacenter: &Datacenter, ran: &Run) -> Vec<Violation> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for name in ran.stand.disk.names() {
        let bytes = ran.stand.disk.content(&name).unwrap_or_default();
        texts.push((name, String::from_utf8_lossy(&bytes).into_owned()));
    }
    let events = serde_json::to_string(&ran.events).unwrap_or_default();
    texts.push(("an event".to_owned(), events));
    texts.push(("the end of the run".to_owned(), ran.verdict()));
    found(&canaries(datacenter), &texts)
}

fn found(canaries: &BTreeSet<String>, texts: &[(String, String)]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (place, text) in texts {
        // The secret itself is not told, or the proof would be the leak.
        let hits = canaries.iter().filter(|canary| text.contains(canary.as_str())).count();
        if hits > 0 {
            found.push(Violation::new("no secret outside", format!("{hits} words in {place}")));
        }
    }
    found
}

/// The long words of every value in the vault, and of the credentials that castle was given.
fn canaries(datacenter: &Datacenter) -> BTreeSet<String> {
    let birth = &datacenter.birth;
    let mut all = BTreeSet::new();
    words(&birth.proxmox.token_secret, &mut all);
    words(&birth.infisical.client_secret, &mut all);
    let vault = serde_json::to_value(&datacenter.infisical).unwrap_or_default();
    values(&vault["projects"], &mut all);
    all
}

/// Every text under a key `value`.
fn values(of: &Value, all: &mut BTreeSet<String>) {
    match of {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == "value" => words(text, all),
                    _ => values(member, all),
                }
            }
        }
        Value::Array(members) => members.iter().for_each(|member| values(member, all)),
        _ => {}
    }
}

fn words(text: &str, all: &mut BTreeSet<String>) {
    let part = |c: char| !(c.is_ascii_alphanumeric() || "+/=_-".contains(c));
    all.extend(text.split(part).filter(|word| word.len() >= LEAST).map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_secret_is_found_and_not_told() {
        let mut canaries = BTreeSet::new();
        words("key: LS0tLS1CRUdJTiBSU0Eg, short: abc", &mut canaries);
        assert_eq!(canaries.len(), 1, "{canaries:?}");
        let clean = ("run.journal".to_owned(), "key: …".to_owned());
        let leak = ("an event".to_owned(), "with LS0tLS1CRUdJTiBSU0Eg in it".to_owned());
        let told = found(&canaries, &[clean, leak]);
        assert_eq!(told, [Violation::new("no secret outside", "1 words in an event")]);
    }
}
