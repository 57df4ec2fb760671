//! Reads a rule; what can not be read is told with its place, the nearest right word and what is possible.

use super::error::RuleError;
use super::kind::{Kind, Shape, Slot, find, kinds};
use super::names::Names;
use super::phase::Phase;
use super::rule::{On, Rule, Until, When, Who};
use super::value::{Given, Value, span, time};
use super::word::{Word, cut};
use crate::proxmox;

/// The words that begin a condition, and so end the arguments of a kind.
const KEYWORDS: [&str; 8] = ["on", "the", "once", "twice", "from", "until", "for", "during"];
/// The methods that a rule can name.
const METHODS: [&str; 8] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "ANY"];
/// The most times that a rule can count to.
const COUNT_MAX: u32 = 1_000_000;
/// How a time is written.
const TIME_HELP: &str = "a time is written M:SS, such as 0:40";

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

impl Rule {
    /// Reads a rule about what has these names.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(rule: &str, names: &Names) -> Result<Self, RuleError> {
        let words = cut(rule)?;
        let reader = Reader { rule, names };
        let (who, object) = reader.head(&words.head, words.colon)?;
        let (kind, length) = reader.kind(who, &words.tail)?;
        let mut rest = Rest { reader: &reader, words: &words.tail, next: length };
        let object = reader.object(who, kind, object, words.head.first())?;
        let (mut arguments, mut values) = (Vec::new(), Vec::new());
        for slot in kind.arguments {
            let Some((text, value)) = rest.argument(slot, who)? else { break };
            if slot.shape == Shape::Value {
                rest.judge_value(arguments.last().map_or("", String::as_str), &text)?;
            }
            arguments.push(text);
            values.push(value);
        }
        let when = rest.when(kind)?;
        let (object, thing) = object.unzip();
        let deed =
            kind.deed(&Given { object: thing.as_ref(), arguments: &values, names: reader.names });
        Ok(Self { who, object, thing, kind, arguments, when, deed })
    }
}

struct Reader<'a> {
    rule: &'a str,
    names: &'a Names,
}

/// A word of a rule with what it means.
type Understood = (String, Value);

impl Reader<'_> {
    fn wrong(&self, word: &Word, message: impl Into<String>) -> RuleError {
        RuleError::new(self.rule, word.span.clone(), message)
    }

    /// Something is missing at the end.
    fn missing(&self, message: impl Into<String>) -> RuleError {
        let end = self.rule.trim_end().len();
        RuleError::new(self.rule, end..end, message)
    }

    /// Who, and about what.
    fn head<'w>(
        &self,
        head: &'w [Word],
        colon: Option<usize>,
    ) -> Result<(Who, Option<&'w Word>), RuleError> {
        let servers = || Who::ALL.map(Who::name);
        let Some(first) = head.first() else {
            return Err(RuleError::new(self.rule, 0..0, "a rule begins with who breaks")
                .among("", servers())
                .help(format!("such as `talos cp-02: dead`; there is: {}", servers().join(", "))));
        };
        let Some(who) = Who::ALL.into_iter().find(|who| who.name() == first.text) else {
            let message = format!("nobody is called `{}` here", first.text);
            return Err(self.wrong(first, message).among(&first.text, servers()));
        };
        // The colon of a time is no colon behind who.
        match (head.get(2), colon) {
            (Some(third), _) => Err(self
                .wrong(third, "a colon is missing before what happens")
                .help("such as `talos cp-02: dead`")),
            (None, None) => Err(self
                .missing("a colon and what happens are missing")
                .help("such as `talos cp-02: dead`")),
            (None, Some(_)) => Ok((who, head.get(1))),
        }
    }

    /// The kind whose words stand first, the longest of them, and how many words it has.
    fn kind(&self, who: Who, tail: &[Word]) -> Result<(&'static Kind, usize), RuleError> {
        let possible = || kinds().filter(|kind| kind.who.contains(&who));
        let joined = |count: usize| {
            tail[..count].iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
        };
        for count in (1..=tail.len().min(3)).rev() {
            if let Some(kind) = find(who, &joined(count)) {
                return Ok((kind, count));
            }
        }
        let Some(first) = tail.first() else {
            return Err(self
                .missing(format!("what happens to {} is missing", who.name()))
                .among("", possible().map(|kind| kind.name)));
        };
        let plain = tail.iter().take_while(|word| !is_keyword(&word.text)).count().clamp(1, 3);
        // Words that somebody else's fault begins with are that fault, whatever stands behind them.
        let others =
            (1..=plain).rev().find(|count| kinds().any(|kind| kind.name == joined(*count)));
        let counts = others.map_or(1..=plain, |count| count..=count);
        let error = counts
            .rev()
            .map(|count| {
                let span = first.span.start..tail[count - 1].span.end;
                let message = format!("{} has no fault called `{}`", who.name(), joined(count));
                let mut error = RuleError::new(self.rule, span, message)
                    .among(&joined(count), possible().map(|kind| kind.name));
                if others.is_some() {
                    error.nearest = None;
                }
                if error.nearest.is_none() {
                    error.help = error.help.map(|help| elsewhere(&joined(count), help));
                }
                (count, error)
            })
            .reduce(|best, other| if best.1.nearest.is_some() { best } else { other });
        let Some((count, mut error)) = error else {
            return Err(self.missing("what happens is missing"));
        };
        // A word that several kinds begin with is nearer to them than to any other word.
        let begun = format!("{} ", first.text);
        let longer: Vec<&str> =
            possible().map(|kind| kind.name).filter(|name| name.starts_with(&begun)).collect();
        if count == 1 && !longer.is_empty() {
            error.nearest = Some(longer.join("` or `"));
        }
        Err(error)
    }

    fn object(
        &self,
        who: Who,
        kind: &Kind,
        word: Option<&Word>,
        first: Option<&Word>,
    ) -> Result<Option<Understood>, RuleError> {
        match (&kind.object, word) {
            (Some(slot), Some(word)) => self.understand(slot, word, who).map(Some),
            (None, None) => Ok(None),
            (Some(slot), None) if slot.optional => Ok(None),
            (Some(slot), None) => {
                let end = first.map_or(0, |word| word.span.end);
                let message = format!("`{}` is missing: {} of what?", slot.name, kind.name);
                Err(RuleError::new(self.rule, end..end, message).help(format!(
                    "it is written `{}`{}",
                    kind.form(),
                    self.listed(slot)
                )))
            }
            (None, Some(word)) => Err(self
                .wrong(word, format!("`{}` is about no one thing", kind.name))
                .help(format!("it is written `{}`", kind.form()))),
        }
    }

    /// What may stand at a place, if that is a list.
    fn listed(&self, slot: &Slot) -> String {
        let machines = || self.names.machines.keys().cloned().collect::<Vec<_>>();
        let list = match slot.shape {
            Shape::Machine | Shape::Guest | Shape::Address => machines(),
            Shape::Storage => self.names.storages.clone(),
            Shape::Word(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Shape::Time => return format!("; {TIME_HELP}"),
            _ => Vec::new(),
        };
        if list.is_empty() { String::new() } else { format!("; there is: {}", list.join(", ")) }
    }

    /// What a word means at a place.
    fn understand(&self, slot: &Slot, word: &Word, who: Who) -> Result<Understood, RuleError> {
        let text = &word.text;
        let same = |value: Value| Ok((text.clone(), value));
        let machines = || self.names.machines.keys().map(String::as_str);
        let machine = || {
            let found = self.names.machines.get(text);
            found.map(|(number, address)| Value::Machine(*number, Some(*address)))
        };
        let guest = || text.parse().ok().filter(|n| (100..1_000_000_000).contains(n));
        let plain = |limit: u64| {
            text.parse::<u64>()
                .ok()
                .filter(|n| *n <= limit && text.bytes().all(|b| b.is_ascii_digit()))
        };
        match slot.shape {
            Shape::Target => match who {
                Who::Talos | Who::Kubernetes => {
                    self.understand(&Slot { shape: Shape::Machine, ..*slot }, word, who)
                }
                Who::Proxmox if self.names.storages.contains(text) => {
                    same(Value::Text(text.clone()))
                }
                Who::Proxmox => self.understand(&Slot { shape: Shape::Guest, ..*slot }, word, who),
                _ => same(Value::Text(text.clone())),
            },
            Shape::Machine => match machine() {
                Some(value) => same(value),
                None => Err(self
                    .wrong(word, format!("the castle file has no node called `{text}`"))
                    .among(text, machines())),
            },
            Shape::Guest => match machine().or_else(|| guest().map(|n| Value::Machine(n, None))) {
                Some(value) => same(value),
                None => Err(self
                    .wrong(word, format!("`{text}` is neither a node nor the number of a guest"))
                    .among(text, machines())),
            },
            Shape::Storage if self.names.storages.contains(text) => same(Value::Text(text.clone())),
            Shape::Storage => Err(self
                .wrong(word, format!("the castle file has no storage called `{text}`"))
                .among(text, self.names.storages.iter().map(String::as_str))),
            Shape::Address => match self.names.address(text) {
                Some(address) => same(Value::Address(address)),
                None => Err(self
                    .wrong(word, format!("`{text}` is no address"))
                    .among(text, machines().chain(["vip"]))
                    .help("give four numbers, a node's name or `vip`")),
            },
            Shape::Time => self.time(word).map(|ms| (span(ms), Value::Time(ms))),
            Shape::Status => match plain(599).filter(|n| *n >= 400) {
                Some(status) => same(Value::Number(status)),
                None => Err(self
                    .wrong(word, format!("`{text}` is no status of an error"))
                    .help("give one from 400 to 599, such as 401, 403, 409, 429, 500 or 595")),
            },
            Shape::Number => match plain(u64::from(u32::MAX)) {
                Some(number) => Ok((number.to_string(), Value::Number(number))),
                None => Err(self.wrong(word, format!("`{text}` is no whole number"))),
            },
            Shape::Word(words) if words.contains(&text.as_str()) => same(Value::Text(text.clone())),
            Shape::Word(words) => Err(self
                .wrong(word, format!("`{text}` is no {}", slot.name))
                .among(text, words.iter().copied())),
            Shape::Object => {
                let parts = text.split('/').count();
                if (2..=3).contains(&parts) && text.split('/').all(|part| !part.is_empty()) {
                    return same(Value::Text(text.clone()));
                }
                Err(self
                    .wrong(word, format!("`{text}` is no object"))
                    .help("an object is written KIND/NAMESPACE/NAME, such as deployments/metallb-system/controller"))
            }
            Shape::Json => {
                match serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(text) {
                    Ok(_) => same(Value::Text(text.clone())),
                    Err(why) => Err(self
                        .wrong(word, format!("this is no object in JSON: {why}"))
                        .help("such as {\"spec\":{\"replicas\":0}}, in quotes if it has spaces")),
                }
            }
            Shape::Setting => match proxmox::judge_option(text, None) {
                Ok(()) => same(Value::Text(text.clone())),
                Err(_) => Err(self
                    .wrong(word, format!("a VM has no option called `{text}`"))
                    .among(text, proxmox::option_names())),
            },
            Shape::Text if text.is_empty() => {
                Err(self.wrong(word, format!("{} must not be empty", slot.name)))
            }
            Shape::Value | Shape::Text => same(Value::Text(text.clone())),
        }
    }

    fn time(&self, word: &Word) -> Result<u64, RuleError> {
        time(&word.text)
            .ok_or_else(|| self.wrong(word, format!("`{}` is no time", word.text)).help(TIME_HELP))
    }
}

/// Says who has a fault of this name, if not the one that was asked.
fn elsewhere(name: &str, help: String) -> String {
    match kinds().find(|kind| kind.name == name) {
        Some(kind) if kind.who.len() > 1 => {
            let all: Vec<&str> = kind.who.iter().map(|who| who.name()).collect();
            format!("{} can have it, as `{}`; {help}", all.join(", "), kind.form())
        }
        Some(kind) => format!("it is written `{}`; {help}", kind.form()),
        None => help,
    }
}

/// The words that are not read yet.
struct Rest<'a> {
    reader: &'a Reader<'a>,
    words: &'a [Word],
    next: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self) -> Option<&'a Word> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    /// Whether a condition begins here.
    fn at_condition(&self) -> bool {
        let here = self.words.get(self.next);
        let behind = self.words.get(self.next + 1);
        let times = behind.is_some_and(|word| !word.quoted && word.text == "times");
        here.is_none_or(|word| !word.quoted && (is_keyword(&word.text) || times))
    }

    fn argument(&mut self, slot: &Slot, who: Who) -> Result<Option<Understood>, RuleError> {
        if self.at_condition() {
            if slot.optional {
                return Ok(None);
            }
            let message = format!("{} is missing", slot.name);
            let error = match self.words.get(self.next) {
                Some(word) => self.reader.wrong(word, message),
                None => self.reader.missing(message),
            };
            let listed = self.reader.listed(slot);
            let help = listed.trim_start_matches("; ");
            return Err(if help.is_empty() { error } else { error.help(help) });
        }
        let Some(word) = self.take() else { return Ok(None) };
        self.reader.understand(slot, word, who).map(Some)
    }

    /// What an option can not be set to.
    fn judge_value(&self, option: &str, value: &str) -> Result<(), RuleError> {
        let judged = proxmox::judge_option(option, Some(value));
        match (judged, self.words.get(self.next - 1)) {
            (Err(why), Some(word)) => Err(self
                .reader
                .wrong(word, format!("`{option}` can not be set to `{value}`"))
                .help(why.trim_end().replace('\n', "; "))),
            _ => Ok(()),
        }
    }

    /// The word behind another one.
    fn behind(&mut self, what: &str) -> Result<&'a Word, RuleError> {
        let reader = self.reader;
        self.take().ok_or_else(|| reader.missing(format!("{what} is missing")))
    }

    fn when(&mut self, kind: &Kind) -> Result<When, RuleError> {
        let mut when = When::default();
        let mut at: Vec<(&str, &Word)> = Vec::new();
        while let Some(word) = self.take() {
            let said = self.condition(word, kind, &mut when)?;
            if at.iter().any(|(before, _)| *before == said) {
                return Err(self.reader.wrong(word, "this is said twice"));
            }
            at.push((said, word));
        }
        self.judge(&when, kind, &at)?;
        Ok(when)
    }

    /// Reads one condition, and says which it is.
    fn condition(
        &mut self,
        word: &Word,
        kind: &Kind,
        when: &mut When,
    ) -> Result<&'static str, RuleError> {
        let reader = self.reader;
        match word.text.as_str() {
            _ if word.quoted => Err(self.stray(word, kind)),
            "on" => {
                let method = self.behind("METHOD PATH")?;
                let name = method.text.to_uppercase();
                if !METHODS.contains(&name.as_str()) {
                    let message = format!("`{}` is no method", method.text);
                    return Err(reader.wrong(method, message).among(&name, METHODS));
                }
                let path = self.behind("the path")?.text.clone();
                when.on = Some(On { method: name, path });
                Ok("on")
            }
            "the" => {
                let which = self.behind("which one")?;
                let number = which.text.trim_end_matches(['s', 't', 'n', 'd', 'r', 'h']);
                when.nth = Some(self.count(which, number)?);
                Ok("the")
            }
            "once" => {
                when.times = Some(1);
                Ok("times")
            }
            "twice" => {
                when.times = Some(2);
                Ok("times")
            }
            "from" => {
                when.from = Some(reader.time(self.behind("the time")?)?);
                Ok("from")
            }
            "until" => {
                when.until = Some(Until::At(reader.time(self.behind("the time")?)?));
                Ok("until")
            }
            "for" => {
                when.until = Some(Until::For(reader.time(self.behind("the time")?)?));
                Ok("until")
            }
            "during" => {
                let name = self.behind("the phase")?;
                let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name.text);
                when.phase = Some(phase.ok_or_else(|| {
                    let message = format!("there is no phase called `{}`", name.text);
                    reader.wrong(name, message).among(&name.text, Phase::ALL.map(Phase::name))
                })?);
                Ok("during")
            }
            number if self.words.get(self.next).is_some_and(|word| word.text == "times") => {
                self.next += 1;
                when.times = Some(self.count(word, number)?);
                Ok("times")
            }
            _ => Err(self.stray(word, kind)),
        }
    }

    fn stray(&self, word: &Word, kind: &Kind) -> RuleError {
        let error = self.reader.wrong(word, format!("`{}` is not understood here", word.text));
        let help = format!(
            "`{}` can be followed by: on METHOD PATH, the 3rd, once, twice, 5 times, from, until, for, during",
            kind.form()
        );
        error.among(&word.text, KEYWORDS).help(help)
    }

    fn count(&self, word: &Word, number: &str) -> Result<u32, RuleError> {
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        match number.parse() {
            Ok(count) if digits && (1..=COUNT_MAX).contains(&count) => Ok(count),
            _ => Err(self
                .reader
                .wrong(word, format!("`{}` is no count", word.text))
                .help(format!("count from 1 to {COUNT_MAX}, such as `the 3rd` or `5 times`"))),
        }
    }

    /// What is each right and does not go together.
    fn judge(&self, when: &When, kind: &Kind, at: &[(&str, &Word)]) -> Result<(), RuleError> {
        let wrong = |said: &str, message: String| {
            let word = at.iter().find(|(name, _)| *name == said).map(|(_, word)| *word);
            match word {
                Some(word) => self.reader.wrong(word, message),
                None => self.reader.missing(message),
            }
        };
        let empty = match (when.from, when.until) {
            (_, Some(Until::For(0))) | (None, Some(Until::At(0))) => true,
            (Some(from), Some(Until::At(until))) => until <= from,
            _ => false,
        };
        if empty {
            return Err(wrong(
                "until",
                "this window is empty: it ends before it begins".to_owned(),
            )
            .help("`until` is a time of the run, `for` a length"));
        }
        if when.until.is_some() && !kind.can_end() {
            return Err(wrong("until", format!("`{}` does not end by itself", kind.name))
                .help("leave `until` or `for` out"));
        }
        let at_once = !matches!(kind.make, super::kind::Make::Answer(_));
        if at_once && when.times.is_some_and(|times| times > 1) {
            return Err(wrong("times", format!("`{}` happens once", kind.name)));
        }
        if at_once && when.nth.is_some() && when.on.is_none() {
            return Err(
                wrong("the", "the 3rd of which calls?".to_owned()).help("add `on METHOD PATH`")
            );
        }
        Ok(())
    }
}
