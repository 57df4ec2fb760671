//! The runs that one is compared with: the previous one that did the same work, and the fastest.

use castle_model::{PastRun, RunId, StepId};

/// What a run is compared with. Only whole runs with the same work on a castle of the same shape are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// The run itself, as it is remembered.
    pub this: Option<PastRun>,
    /// The last one before it that is like it.
    pub previous: Option<PastRun>,
    /// The fastest before it that is like it.
    pub record: Option<PastRun>,
    /// How many before it are like it.
    pub runs: usize,
}

/// A step that took longer than in the previous run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slower {
    /// Which.
    pub step: StepId,
    /// What it took.
    pub took_ms: u64,
    /// What it took in the previous run.
    pub previous_ms: u64,
}

impl Slower {
    /// By how much, in milliseconds.
    #[must_use]
    pub fn by(&self) -> u64 {
        self.took_ms.saturating_sub(self.previous_ms)
    }
}

/// A step is called slower if it took longer by a second and by a tenth: less is noise.
const NOTABLE_MS: u64 = 1000;

/// How many slower steps are named.
const NAMED: usize = 5;

impl Compared {
    pub(super) fn of_previous(&self, step: &StepId) -> Option<u64> {
        self.previous.as_ref().and_then(|run| run.steps.get(step).copied())
    }

    /// The steps that took notably longer than in the previous run, those that lost most first.
    #[must_use]
    pub fn slower(&self) -> Vec<Slower> {
        let Some(this) = &self.this else { return Vec::new() };
        let compared = this.steps.iter().filter_map(|(step, took)| {
            let previous_ms = self.of_previous(step)?;
            Some(Slower { step: step.clone(), took_ms: *took, previous_ms })
        });
        let notable = |slower: &Slower| slower.by() >= NOTABLE_MS.max(slower.previous_ms / 10);
        let mut slower: Vec<Slower> = compared.filter(notable).collect();
        slower.sort_by_key(|slower| std::cmp::Reverse(slower.by()));
        slower.truncate(NAMED);
        slower
    }
}

/// Finds what a run is compared with: only what was before it.
pub(super) fn compare(run: Option<&RunId>, history: &[PastRun]) -> Compared {
    let at = history.iter().rposition(|past| Some(&past.run) == run);
    let Some((at, this)) = at.and_then(|at| Some((at, history.get(at)?))) else {
        return Compared::default();
    };
    if !this.is_whole() {
        return Compared { this: Some(this.clone()), ..Compared::default() };
    }
    let like: Vec<&PastRun> =
        history[..at].iter().filter(|past| past.is_whole() && past.is_like(this)).collect();
    Compared {
        this: Some(this.clone()),
        previous: like.last().map(|past| (*past).clone()),
        record: like.iter().min_by_key(|past| past.took_ms).map(|past| (*past).clone()),
        runs: like.len(),
    }
}
