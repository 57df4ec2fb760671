//! Secrets as people are shown them: keys, places, forms and lives, never a value.

use castle_model::spec::{EscrowAfterDown, Shape};
use castle_model::time::Moment;
use castle_model::{CastleName, Incarnation};
use serde::Serialize;

use crate::style::{Style, Tone, count};
use crate::table::table;

/// What is said of a value that is empty.
const EMPTY: &str = "it is empty";

/// Every key of a castle.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Keys {
    /// Whose.
    pub castle: CastleName,
    /// Whether its world is the rehearsal's.
    pub rehearsal: bool,
    /// The sources in words, in their order.
    pub sources: Vec<String>,
    /// The keys that the castle file names, sorted.
    pub keys: Vec<Key>,
    /// What a person should know.
    pub notices: Vec<String>,
    /// What the castle makes itself; none if nobody was asked.
    pub escrow: Option<Escrow>,
}

/// One key.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Key {
    /// Its name.
    pub key: String,
    /// What it is for.
    pub used_for: Vec<String>,
    /// The form that its value must have.
    pub form: Shape,
    /// Where it would come from.
    #[serde(flatten)]
    pub state: KeyState,
}

/// Where a key would come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum KeyState {
    /// From the first source that has it.
    Found {
        /// The source in words.
        from: String,
    },
    /// The first source that has it has a value that can not be used.
    Wrong {
        /// The source in words.
        from: String,
        /// Where exactly.
        place: String,
        /// Why not.
        why: String,
    },
    /// No source has it.
    Missing {
        /// Where it was looked for.
        place: String,
    },
    /// Nobody was asked.
    NotAsked,
}

/// What is kept of a castle.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Escrow {
    /// Whose.
    pub castle: CastleName,
    /// Where.
    pub place: String,
    /// Whether the place takes new entries; what is known of that.
    pub writable: Writable,
    /// What `down` does with the entries.
    pub after_down: EscrowAfterDown,
    /// The entries that a castle makes.
    pub entries: Vec<Entry>,
}

/// Whether a place can be written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "can", rename_all = "kebab-case")]
pub enum Writable {
    /// It can.
    Yes,
    /// It can not.
    No {
        /// Why not.
        why: String,
    },
    /// Only writing would tell.
    Unknown {
        /// Why that is.
        why: String,
    },
}

/// One entry that a castle makes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// What it is.
    pub what: &'static str,
    /// What is there.
    #[serde(flatten)]
    pub state: EntryState,
}

/// What is there under the key of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum EntryState {
    /// Nothing.
    Absent,
    /// An entry of this castle.
    Ours {
        /// Of which life.
        life: Incarnation,
        /// Until when its client certificate is valid, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        valid_until: Option<Moment>,
    },
    /// Somebody else's.
    Foreign {
        /// Why it is not ours.
        why: String,
    },
}

impl Keys {
    /// The keys as a table, what is wrong with some, and what is kept.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let world = if self.rehearsal { " (a rehearsal)" } else { "" };
        let from = self.sources.join(", then ");
        let title =
            format!("castle {}{world}: {} from {from}", self.castle, count(self.keys.len(), "key"));
        let mut text = style.hang("", &title, Some(Tone::Title)) + "\n";
        if !self.keys.is_empty() {
            let mut rows = vec![["key", "used for", "form", "from"].map(str::to_owned).to_vec()];
            rows.extend(self.keys.iter().map(Key::row));
            text.push('\n');
            text.push_str(&table(&rows, &[true; 4], style.width));
        }
        let troubles: Vec<String> = self.keys.iter().filter_map(|key| key.trouble(style)).collect();
        let notices = self.notices.iter().map(|notice| style.hang("notice: ", notice, None));
        let remarks: Vec<String> = troubles.into_iter().chain(notices).collect();
        if !remarks.is_empty() {
            text.push('\n');
            text.push_str(&remarks.join("\n"));
            text.push('\n');
        }
        if let Some(escrow) = &self.escrow {
            text.push('\n');
            text.push_str(&escrow.entries(style));
        }
        text
    }
}

impl Key {
    fn row(&self) -> Vec<String> {
        let from = match &self.state {
            KeyState::Found { from } => from.clone(),
            KeyState::Wrong { why, .. } if why == EMPTY => "empty".to_owned(),
            KeyState::Wrong { .. } => "wrong form".to_owned(),
            KeyState::Missing { .. } => "missing".to_owned(),
            KeyState::NotAsked => "not asked".to_owned(),
        };
        vec![self.key.clone(), self.used_for.join(", "), self.form.to_string(), from]
    }

    fn trouble(&self, style: Style) -> Option<String> {
        let (prefix, text) = match &self.state {
            KeyState::Found { .. } | KeyState::NotAsked => return None,
            KeyState::Wrong { place, why, .. } => ("wrong: ", format!("{place}: {why}")),
            KeyState::Missing { place } => ("missing: ", place.clone()),
        };
        Some(style.hang(prefix, &text, Some(Tone::Bad)))
    }
}

impl Escrow {
    /// The entries that are somebody else's, and why.
    #[must_use]
    pub fn foreign(&self) -> Vec<String> {
        let foreign = self.entries.iter().filter_map(|entry| match &entry.state {
            EntryState::Foreign { why } => Some(format!("{}: {why}", entry.key)),
            _ => None,
        });
        foreign.collect()
    }

    /// What is kept, and what becomes of it.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut text = self.entries(style);
        let (written, tone) = match &self.writable {
            Writable::Yes => ("yes".to_owned(), Tone::Good),
            Writable::No { why } => (format!("no: {why}"), Tone::Bad),
            Writable::Unknown { why } => (format!("not known: {why}"), Tone::Quiet),
        };
        let after = match self.after_down {
            EscrowAfterDown::Remove => "`down` removes the entries once the machines are gone",
            EscrowAfterDown::Keep => "`down` keeps the entries; the next birth overwrites them",
        };
        text.push('\n');
        text.push_str(&style.hang("can be written: ", &written, Some(tone)));
        text.push('\n');
        text.push_str(&style.hang("afterwards: ", after, None));
        text.push('\n');
        text
    }

    fn entries(&self, style: Style) -> String {
        let title = format!("kept of castle {} in {}", self.castle, self.place);
        let mut rows = vec![["key", "what", "life", "valid until"].map(str::to_owned).to_vec()];
        rows.extend(self.entries.iter().map(Entry::row));
        if rows.iter().skip(1).all(|row| row.len() < 4 || row[3].is_empty()) {
            for row in &mut rows {
                row.truncate(3);
            }
        }
        let foreign = self.entries.iter().filter_map(|entry| match &entry.state {
            EntryState::Foreign { why } => {
                Some(style.hang(&format!("{}: ", entry.key), why, Some(Tone::Bad)) + "\n")
            }
            _ => None,
        });
        let foreign: String = foreign.collect();
        format!(
            "{}\n\n{}{foreign}",
            style.hang("", &title, None),
            table(&rows, &[true; 4], style.width)
        )
    }
}

impl Entry {
    fn row(&self) -> Vec<String> {
        let (life, until) = match &self.state {
            EntryState::Absent => ("not kept".to_owned(), String::new()),
            EntryState::Ours { life, valid_until } => {
                (life.to_string(), valid_until.map(day).unwrap_or_default())
            }
            EntryState::Foreign { .. } => ("not ours".to_owned(), String::new()),
        };
        vec![self.key.clone(), self.what.to_owned(), life, until]
    }
}

fn day(moment: Moment) -> String {
    let (year, month, day) = moment.date();
    format!("{year:04}-{month:02}-{day:02}")
}

/// What was found out about a SOPS file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// Its path.
    pub file: String,
    /// How many keys it has at the top.
    pub keys: usize,
    /// For whom it is encrypted.
    pub recipients: Vec<String>,
    /// Where something stands in clear that should not.
    pub in_clear: Vec<String>,
    /// Whether it is as it was sealed.
    pub mac: Mac,
    /// What is wrong with it besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

/// Whether a file is as it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Mac {
    /// It is.
    Right,
    /// It is not.
    Wrong,
    /// It could not be found out.
    Unknown {
        /// Why not.
        why: String,
    },
    /// Nobody asked.
    NotAsked,
}

impl Verified {
    /// A file that nothing is known of yet.
    #[must_use]
    pub fn new(file: String) -> Self {
        Self {
            file,
            keys: 0,
            recipients: Vec::new(),
            in_clear: Vec::new(),
            mac: Mac::NotAsked,
            wrong: None,
            cure: None,
        }
    }

    /// Whether all that was asked is as it should be.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let unsure = matches!(self.mac, Mac::Wrong | Mac::Unknown { .. });
        self.wrong.is_none() && self.in_clear.is_empty() && !unsure
    }

    /// A line, and what is wrong below it.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let prefix = format!("{}: ", self.file);
        let who = format!("{}, for {}", count(self.keys, "key"), self.recipients.join(", "));
        let (word, tone) = match (&self.wrong, self.in_clear.is_empty(), &self.mac) {
            (Some(why), ..) => (format!("wrong: {why}"), Tone::Bad),
            (None, false, _) => {
                let what = count(self.in_clear.len(), "place");
                (format!("wrong: {what} in clear that should be encrypted"), Tone::Bad)
            }
            (None, true, Mac::Unknown { why }) => {
                (format!("nothing is in clear, but the MAC was not checked: {why}"), Tone::Wait)
            }
            (None, true, Mac::NotAsked) => {
                (format!("nothing is in clear (the MAC was not checked); {who}"), Tone::Good)
            }
            (None, true, Mac::Right | Mac::Wrong) => {
                (format!("right: the MAC fits, nothing is in clear; {who}"), Tone::Good)
            }
        };
        let mut text = style.hang(&prefix, &word, Some(tone)) + "\n";
        for place in &self.in_clear {
            text.push_str(&style.hang("  in clear: ", place, None));
            text.push('\n');
        }
        let cure = self.cure.as_deref().or_else(|| {
            (!self.in_clear.is_empty()).then_some(
                "encrypt them (sops edit), and change these secrets if the file was shared",
            )
        });
        if let Some(cure) = cure {
            text.push_str(&style.hang("  hint: ", cure, None));
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests;
