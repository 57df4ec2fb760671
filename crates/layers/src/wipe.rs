//! The emergency as one act: what there is by number and mark, whether anything of it goes, and the steps that remove it.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::Graph;
use castle_model::audit::{Item, Kind};
use castle_model::{Audit, Failure, Spec, StepId, VmId};
use castle_platforms::ids::secrets_escrow;
use castle_platforms::proxmox::image_id;
use castle_platforms::proxmox::wipe::{Hit, add, list};
use castle_wire::World;

use crate::audit::{audit, platform_keys};
use crate::secrets::source::Access;

/// What a wipe finds, before anybody is asked.
#[derive(Debug)]
pub struct Found {
    /// Every guest in the range or with the castle's mark, with what would become of it.
    pub hits: Vec<Hit>,
    /// What is there of the castle, which should be gone.
    pub before: Audit,
}

impl Found {
    /// Looks at the world. Guests in `forced` go although nothing proves them to be the castle's; `waits` is told of what is
    /// waited for.
    ///
    /// # Errors
    /// If the keys that open the platform can not be had, or Proxmox does not answer.
    pub async fn look(
        spec: &Spec,
        world: &World,
        access: &Access,
        forced: &BTreeSet<VmId>,
        mut waits: impl FnMut(&str) + Send,
    ) -> Result<Self, Failure> {
        let keys = platform_keys(spec, world, access, &mut waits).await?;
        let hits = list(spec, world, &keys, forced, waits).await?;
        let before = audit(spec, world, access, Some(true)).await?;
        Ok(Self { hits, before })
    }

    /// Whether the image and what is in escrow stay, because a guest does that is the castle's, or may be.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.hits.iter().any(Hit::is_missed)
    }

    /// What goes beside the guests: the image, and what is in escrow.
    pub fn beside(&self) -> impl Iterator<Item = &Item> {
        let shared = |item: &&Item| matches!(item.kind, Kind::Image | Kind::Escrow);
        self.before.amiss().filter(shared).filter(|_| !self.keeps())
    }

    /// Whether nothing in the world would go.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.hits.iter().any(Hit::goes) && self.beside().next().is_none()
    }

    /// The steps: each guest that goes, what all machines share, and whatever our journals still know (`recorded`), which
    /// is forgotten once the guests are gone.
    #[must_use]
    pub fn graph<'r>(
        &self,
        spec: &Arc<Spec>,
        world: &World,
        access: &Access,
        recorded: impl Iterator<Item = &'r StepId>,
    ) -> Graph {
        let shared = if self.keeps() { Vec::new() } else { vec![image_id(), secrets_escrow()] };
        let whole = crate::build(spec, world, access.clone());
        let mut graph =
            whole.part(|decl| (decl.always || shared.contains(&decl.id)).then(|| decl.clone()));
        let going: BTreeSet<StepId> = self.hits.iter().filter(|h| h.goes()).map(Hit::id).collect();
        let known: BTreeSet<StepId> = graph.decls().iter().map(|decl| decl.id.clone()).collect();
        let forgotten = recorded.filter(|id| !known.contains(id) && !going.contains(id));
        let forgotten: Vec<StepId> = forgotten.cloned().collect();
        add(&mut graph, spec, world, &self.hits, &forgotten);
        graph
    }
}
