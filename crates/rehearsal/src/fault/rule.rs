//! A rule: who breaks, how, and when.

use std::fmt;

use super::armed::Seen;
use super::kind::{Deed, Kind};
use super::phase::Phase;
use super::value::{Value, span, written, written_object};

/// Who breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Proxmox VE.
    Proxmox,
    /// Infisical.
    Infisical,
    /// The Git host.
    Git,
    /// The image factory and the manifests of releases.
    Downloads,
    /// The machines, by their Talos API and as a whole.
    Talos,
    /// The cluster and its API servers.
    Kubernetes,
    /// Flux.
    Flux,
    /// What lies between.
    Network,
    /// The program itself.
    Castle,
}

impl Who {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Self; 9] = [
        Self::Proxmox,
        Self::Talos,
        Self::Kubernetes,
        Self::Flux,
        Self::Infisical,
        Self::Git,
        Self::Downloads,
        Self::Network,
        Self::Castle,
    ];

    /// The word in a rule.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxmox => "proxmox",
            Self::Infisical => "infisical",
            Self::Git => "git",
            Self::Downloads => "downloads",
            Self::Talos => "talos",
            Self::Kubernetes => "kubernetes",
            Self::Flux => "flux",
            Self::Network => "network",
            Self::Castle => "castle",
        }
    }
}

/// Which calls a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct On {
    /// The method in capitals, or `ANY`.
    pub method: String,
    /// What the path ends with; `*` stands for anything.
    pub path: String,
}

impl On {
    /// Whether a call is meant.
    #[must_use]
    pub fn hits(&self, method: &str, path: &str) -> bool {
        (self.method == "ANY" || self.method == method) && ends_with(path, &self.path)
    }
}

/// Whether a text ends as a pattern says, in which `*` stands for anything.
fn ends_with(text: &str, pattern: &str) -> bool {
    let mut pieces = pattern.rsplit('*');
    let last = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_suffix(last) else { return false };
    for piece in pieces {
        match rest.rfind(piece) {
            Some(at) => rest = &rest[..at],
            None => return false,
        }
    }
    true
}

/// When a window closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// At a time of the run, in milliseconds.
    At(u64),
    /// After so many milliseconds, counted from `from`, else from the first strike.
    For(u64),
}

/// When a rule strikes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct When {
    /// Only these calls.
    pub on: Option<On>,
    /// The first of the calls that is struck, counted from 1.
    pub nth: Option<u32>,
    /// How often.
    pub times: Option<u32>,
    /// Not before this time of the run, in milliseconds.
    pub from: Option<u64>,
    /// Until when.
    pub until: Option<Until>,
    /// Only while the datacenter is in this phase.
    pub phase: Option<Phase>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub(super) who: Who,
    pub(super) object: Option<String>,
    pub(super) thing: Option<Value>,
    pub(super) kind: &'static Kind,
    pub(super) arguments: Vec<String>,
    pub(super) when: When,
    pub(super) deed: Deed,
}

impl Rule {
    /// Who breaks.
    #[must_use]
    pub fn who(&self) -> Who {
        self.who
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// When it strikes.
    #[must_use]
    pub fn when(&self) -> &When {
        &self.when
    }

    /// What it does to the world if it is a change: the troubles, in order; none if it strikes calls.
    #[must_use]
    pub fn troubles(&self) -> Option<&[crate::trouble::Trouble]> {
        match &self.deed {
            Deed::Change { now, .. } => Some(now),
            _ => None,
        }
    }

    /// How the world is made good again after it; none if it can not be, or if it strikes calls.
    #[must_use]
    pub fn mending(&self) -> Option<&[crate::trouble::Trouble]> {
        match &self.deed {
            Deed::Change { over, .. } => over.as_deref(),
            _ => None,
        }
    }

    /// The rule as it is written without saying when: so it can be poked or mended.
    #[must_use]
    pub fn timeless(&self) -> String {
        Self { when: When::default(), ..self.clone() }.to_string()
    }

    /// Whether a call is to what the rule is about.
    pub(super) fn reaches(&self, seen: &Seen<'_>) -> bool {
        let part = |wanted: &str| seen.path.split('/').any(|part| part == wanted);
        match (&self.thing, seen.who) {
            (None, _) => true,
            (Some(Value::Machine(number, _)), Who::Proxmox) => part(&number.to_string()),
            (Some(Value::Machine(number, _)), _) => seen.machine == Some(*number),
            (Some(Value::Text(storage)), Who::Proxmox) => part(storage),
            (Some(Value::Text(text)), _) => format!("{}{}", seen.host, seen.path).contains(text),
            (Some(Value::Address(address)), _) => seen.host == address.to_string(),
            (Some(_), _) => false,
        }
    }

    /// What happens, as a sentence: "talos cp-02 is dead".
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut says = self.kind.says.to_owned();
        for (place, value) in self.arguments.iter().enumerate() {
            says = says.replace(&format!("{{{place}}}"), value);
        }
        // An argument that was left out leaves no hole.
        let says = says.replace(" {0}", "").replace(" {1}", "");
        match &self.object {
            Some(object) => format!("{} {object} {says}", self.who.name()),
            None => format!("{} {says}", self.who.name()),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.who.name())?;
        if let Some(object) = &self.object {
            write!(f, " {}", written_object(object))?;
        }
        write!(f, ": {}", self.kind.name)?;
        for argument in &self.arguments {
            write!(f, " {}", written(argument))?;
        }
        write!(f, "{}", self.when)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(on) = &self.on {
            write!(f, " on {} {}", on.method, written(&on.path))?;
        }
        if let Some(nth) = self.nth {
            let ending = match (nth % 10, nth % 100) {
                (_, 11..=13) => "th",
                (1, _) => "st",
                (2, _) => "nd",
                (3, _) => "rd",
                _ => "th",
            };
            write!(f, " the {nth}{ending}")?;
        }
        match self.times {
            None => {}
            Some(1) => f.write_str(" once")?,
            Some(2) => f.write_str(" twice")?,
            Some(times) => write!(f, " {times} times")?,
        }
        if let Some(from) = self.from {
            write!(f, " from {}", span(from))?;
        }
        match self.until {
            None => {}
            Some(Until::At(at)) => write!(f, " until {}", span(at))?,
            Some(Until::For(time)) => write!(f, " for {}", span(time))?,
        }
        match self.phase {
            None => Ok(()),
            Some(phase) => write!(f, " during {}", phase.name()),
        }
    }
}
