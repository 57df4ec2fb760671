//! Declared steps together with the code that carries them out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use castle_model::{StepDecl, StepId};
use castle_plan::{OrderError, order};

use crate::step::Step;

/// All steps of a castle: what they are and what does them.
#[derive(Default)]
pub struct Graph {
    decls: Vec<StepDecl>,
    steps: BTreeMap<StepId, Arc<dyn Step>>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step.
    pub fn add(&mut self, decl: StepDecl, step: impl Step + 'static) {
        self.steps.insert(decl.id.clone(), Arc::new(step));
        self.decls.push(decl);
    }

    /// Adds the steps of another graph, each with something put around it.
    pub fn add_all(&mut self, other: Self, around: impl Fn(Arc<dyn Step>) -> Arc<dyn Step>) {
        self.steps.extend(other.steps.into_iter().map(|(id, step)| (id, around(step))));
        self.decls.extend(other.decls);
    }

    /// Every declaration, in the order added.
    #[must_use]
    pub fn decls(&self) -> &[StepDecl] {
        &self.decls
    }

    /// The part of a graph with some of its steps, as they are or declared otherwise; what they need of others is left out.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(&StepDecl) -> Option<StepDecl>) -> Self {
        let decls: Vec<StepDecl> = self.decls.iter().filter_map(wanted).collect();
        let kept: BTreeSet<StepId> = decls.iter().map(|decl| decl.id.clone()).collect();
        let mut part = Self::new();
        for mut decl in decls {
            decl.needs.retain(|need| kept.contains(need));
            if let Some(step) = self.steps.get(&decl.id) {
                part.steps.insert(decl.id.clone(), step.clone());
            }
            part.decls.push(decl);
        }
        part
    }

    /// Checks names, needs and cycles.
    ///
    /// # Errors
    /// What is wrong with the graph.
    pub fn check(&self) -> Result<(), OrderError> {
        order(&self.decls).map(drop)
    }

    pub(crate) fn step(&self, id: &StepId) -> Option<Arc<dyn Step>> {
        self.steps.get(id).cloned()
    }
}
