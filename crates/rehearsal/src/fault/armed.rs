//! The rules of a run while it goes on: which of them strike now, and what has struck.

use std::borrow::Cow;

use crate::trouble::Trouble;

use super::kind::{Blow, Deed, Own, WatchEnd};
use super::phase::Phase;
use super::rule::{Rule, Until, Who};

/// What sort of thing struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A call met it.
    Call,
    /// The world changed.
    Change,
    /// The world would have changed, but it was so already, or there was nothing to change.
    Vain,
    /// Somebody changed the world from another process.
    Poke,
}

/// Something that struck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strike {
    /// What sort of thing it is.
    pub sort: Sort,
    /// When, in milliseconds of the run.
    pub at: u64,
    /// By which rule.
    pub rule: String,
    /// What happened, as a sentence.
    pub what: String,
    /// How often the rule has struck, with this one.
    pub number: u32,
}

/// A call as rules see it.
#[derive(Debug, Clone)]
pub(crate) struct Seen<'a> {
    /// The server.
    pub(crate) who: Who,
    /// The name or address that was dialled.
    pub(crate) host: Cow<'a, str>,
    /// The machine that answers, if one does.
    pub(crate) machine: Option<u32>,
    /// The method.
    pub(crate) method: &'a str,
    /// The path.
    pub(crate) path: &'a str,
    /// Whether the same was read before, so that an old answer can be given.
    pub(crate) again: bool,
}

/// What happens to the world now.
#[derive(Debug, PartialEq)]
pub(crate) enum Due {
    /// It changes.
    Change(Vec<Trouble>),
    /// All watches end.
    Watches(WatchEnd),
    /// The program's clock is off by so many milliseconds.
    Clock(i64),
    /// The computer that the program runs on breaks, or is whole again.
    Own(Own),
}

/// The rules of a run.
#[derive(Debug, Default)]
pub(crate) struct Armed {
    rules: Vec<Loaded>,
    strikes: Vec<Strike>,
}

#[derive(Debug)]
struct Loaded {
    rule: Rule,
    /// When it was armed, in milliseconds of the world.
    began: u64,
    /// How many calls it was about.
    met: u32,
    /// How often it struck.
    struck: u32,
    /// When it struck first.
    first: Option<u64>,
    /// Whether what it changed has changed back.
    over: bool,
}

impl Armed {
    /// Arms rules at a moment of the world.
    pub(crate) fn arm(&mut self, now: u64, rules: Vec<Rule>) {
        self.rules.extend(rules.into_iter().map(|rule| Loaded {
            rule,
            began: now,
            met: 0,
            struck: 0,
            first: None,
            over: false,
        }));
    }

    /// Whether there is nothing to strike with.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a rule asks for the phase.
    pub(crate) fn minds_phase(&self) -> bool {
        self.rules.iter().any(|loaded| loaded.rule.when.phase.is_some())
    }

    /// Whether a rule asks for what was answered before.
    pub(crate) fn minds_answers(&self) -> bool {
        self.rules.iter().any(|loaded| loaded.rule.deed == Deed::Answer(Blow::Stale))
    }

    /// What struck so far.
    pub(crate) fn strikes(&self) -> &[Strike] {
        &self.strikes
    }

    /// Remembers of the `nth` change among the strikes from `first` on that it changed nothing.
    pub(crate) fn vain(&mut self, first: usize, nth: usize) {
        let changes = self.strikes.iter_mut().skip(first).filter(|s| s.sort != Sort::Call);
        if let Some(strike) = changes.into_iter().nth(nth) {
            strike.sort = Sort::Vain;
            strike.what.push_str(", which changed nothing");
        }
    }

    /// What the rules changed that has not changed back, as rules without a time, each with what would mend it.
    pub(crate) fn lasting(&self) -> Vec<(String, Vec<Trouble>)> {
        let struck = self.rules.iter().filter(|loaded| loaded.struck > 0 && !loaded.over);
        struck
            .filter_map(|loaded| Some((loaded.rule.timeless(), loaded.rule.mending()?.to_vec())))
            .collect()
    }

    /// The rules that never struck.
    pub(crate) fn unstruck(&self) -> Vec<String> {
        let never = self.rules.iter().filter(|loaded| loaded.struck == 0);
        never.map(|loaded| loaded.rule.to_string()).collect()
    }

    /// The rules, as they are written.
    pub(crate) fn rules(&self) -> Vec<String> {
        self.rules.iter().map(|loaded| loaded.rule.to_string()).collect()
    }

    /// When the next thing happens that waits for nothing but time.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.rules.iter().filter_map(Loaded::due).min()
    }

    /// The first thing that happens to the world now, because of time or phase. Call it again until there is none.
    pub(crate) fn ripe(&mut self, now: u64, phase: Option<Phase>) -> Option<Due> {
        for loaded in &mut self.rules {
            if let Some(due) = loaded.ripe(now, phase, &mut self.strikes) {
                return Some(due);
            }
        }
        None
    }

    /// A call is made: what happens to it, and what happens to the world before it is heard.
    pub(crate) fn meet(
        &mut self,
        now: u64,
        phase: Option<Phase>,
        seen: &Seen<'_>,
    ) -> (Option<Blow>, Vec<Due>) {
        let (mut blow, mut dues) = (None, Vec::new());
        for loaded in &mut self.rules {
            if !loaded.concerns(seen) || !loaded.open(now, phase) {
                continue;
            }
            loaded.met = loaded.met.saturating_add(1);
            if !loaded.counts() {
                continue;
            }
            match &loaded.rule.deed {
                Deed::Answer(Blow::EventsLate(_) | Blow::EventsTwice) => {}
                // The first that strikes wins, the others wait for the next call.
                Deed::Answer(own) if blow.is_none() => {
                    blow = Some(own.clone());
                    let call = match own {
                        Blow::Refused | Blow::Unreachable => String::new(),
                        _ => format!(" {} {}", seen.method, seen.path),
                    };
                    loaded.strike(now, &call, &mut self.strikes);
                }
                Deed::Answer(_) => loaded.met -= 1,
                Deed::Change { .. } | Deed::Watches(_) | Deed::Clock(_) | Deed::Own(_) => {
                    dues.extend(loaded.happen(now, &mut self.strikes));
                }
            }
        }
        (blow, dues)
    }

    /// A connection is opened: whether it can be.
    pub(crate) fn dial(&mut self, now: u64, phase: Option<Phase>, seen: &Seen<'_>) -> Option<Blow> {
        for loaded in &mut self.rules {
            let Deed::Answer(blow @ (Blow::Refused | Blow::Unreachable)) = &loaded.rule.deed else {
                continue;
            };
            if loaded.rule.when.on.is_some() || !loaded.concerns(seen) || !loaded.open(now, phase) {
                continue;
            }
            let blow = blow.clone();
            loaded.met = loaded.met.saturating_add(1);
            if loaded.counts() {
                loaded.strike(now, "", &mut self.strikes);
                return Some(blow);
            }
        }
        None
    }

    /// Events of a watch are about to be told: by how much too late, and whether twice.
    pub(crate) fn events(&mut self, now: u64, phase: Option<Phase>) -> (u64, bool) {
        let (mut late, mut twice) = (0, false);
        for loaded in &mut self.rules {
            let Deed::Answer(blow @ (Blow::EventsLate(_) | Blow::EventsTwice)) = &loaded.rule.deed
            else {
                continue;
            };
            if !loaded.open(now, phase) {
                continue;
            }
            let blow = blow.clone();
            loaded.met = loaded.met.saturating_add(1);
            if loaded.counts() {
                match blow {
                    Blow::EventsLate(ms) => late = late.max(ms),
                    _ => twice = true,
                }
                loaded.strike(now, "", &mut self.strikes);
            }
        }
        (late, twice)
    }
}

impl Loaded {
    /// When the window opens.
    fn opens(&self) -> u64 {
        self.began.saturating_add(self.rule.when.from.unwrap_or(0))
    }

    /// When the window closes, if that is known yet.
    fn closes(&self) -> Option<u64> {
        match self.rule.when.until? {
            Until::At(at) => Some(self.began.saturating_add(at)),
            Until::For(time) if self.rule.when.from.is_some() => {
                Some(self.opens().saturating_add(time))
            }
            Until::For(time) => self.first.map(|first| first.saturating_add(time)),
        }
    }

    fn open(&self, now: u64, phase: Option<Phase>) -> bool {
        now >= self.opens()
            && self.closes().is_none_or(|closes| now < closes)
            && (self.rule.when.phase.is_none() || self.rule.when.phase == phase)
    }

    /// Whether it is about a call.
    fn concerns(&self, seen: &Seen<'_>) -> bool {
        let rule = &self.rule;
        if rule.when.on.as_ref().is_some_and(|on| !on.hits(seen.method, seen.path)) {
            return false;
        }
        match &rule.deed {
            // Whoever is asked, the world may change.
            Deed::Change { .. } | Deed::Watches(_) | Deed::Clock(_) | Deed::Own(_) => {
                rule.when.on.is_some()
            }
            Deed::Answer(Blow::Stale) if !seen.again => false,
            Deed::Answer(Blow::Unreachable) => self.rule.reaches(seen),
            Deed::Answer(_) if rule.who == Who::Castle => true,
            Deed::Answer(_) => rule.who == seen.who && rule.reaches(seen),
        }
    }

    /// Whether it is this call's turn.
    fn counts(&self) -> bool {
        let when = &self.rule.when;
        match (when.nth, when.times) {
            (None, None) => true,
            (None, Some(times)) => self.met <= times,
            (Some(nth), times) => self.met >= nth && self.met - nth < times.unwrap_or(1),
        }
    }

    /// Something that happens by time alone.
    fn due(&self) -> Option<u64> {
        if matches!(self.rule.deed, Deed::Answer(_)) {
            return None;
        }
        if self.struck == 0 {
            let by_time = self.rule.when.on.is_none() && self.rule.when.phase.is_none();
            return by_time.then(|| self.opens());
        }
        if self.over || self.back().is_none() { None } else { self.closes() }
    }

    /// How what it did is undone, if it can be.
    fn back(&self) -> Option<Due> {
        match &self.rule.deed {
            Deed::Change { over, .. } => over.clone().map(Due::Change),
            Deed::Clock(_) => Some(Due::Clock(0)),
            Deed::Own(own) => own.over().map(Due::Own),
            Deed::Answer(_) | Deed::Watches(_) => None,
        }
    }

    fn ripe(&mut self, now: u64, phase: Option<Phase>, strikes: &mut Vec<Strike>) -> Option<Due> {
        if self.struck > 0 {
            let back = self.back()?;
            if self.over || self.closes().is_none_or(|closes| now < closes) {
                return None;
            }
            self.over = true;
            strikes.push(Strike {
                sort: Sort::Change,
                at: now.saturating_sub(self.began),
                rule: self.rule.to_string(),
                what: format!("{}: no more", self.rule.sentence()),
                number: self.struck,
            });
            return Some(back);
        }
        let by_itself = !matches!(self.rule.deed, Deed::Answer(_)) && self.rule.when.on.is_none();
        if !by_itself || !self.open(now, phase) {
            return None;
        }
        self.happen(now, strikes)
    }

    /// The world changes.
    fn happen(&mut self, now: u64, strikes: &mut Vec<Strike>) -> Option<Due> {
        if self.struck > 0 {
            return None;
        }
        self.strike(now, "", strikes);
        match &self.rule.deed {
            Deed::Change { now, .. } => Some(Due::Change(now.clone())),
            Deed::Watches(how) => Some(Due::Watches(*how)),
            Deed::Clock(shift) => Some(Due::Clock(*shift)),
            Deed::Own(own) => Some(Due::Own(*own)),
            Deed::Answer(_) => None,
        }
    }

    fn strike(&mut self, now: u64, call: &str, strikes: &mut Vec<Strike>) {
        self.struck = self.struck.saturating_add(1);
        self.first.get_or_insert(now);
        let call_met = matches!(self.rule.deed, Deed::Answer(_));
        strikes.push(Strike {
            sort: if call_met { Sort::Call } else { Sort::Change },
            at: now.saturating_sub(self.began),
            rule: self.rule.to_string(),
            what: format!("{}{call}", self.rule.sentence()),
            number: self.struck,
        });
    }
}
