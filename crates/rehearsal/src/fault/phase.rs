//! How far the castle has come, as the datacenter itself knows it.

use crate::world::Datacenter;

/// A phase of the world; each begins when what it names is there, and ends with the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No machine has power.
    Empty,
    /// A machine has power.
    Machines,
    /// etcd was bootstrapped.
    Etcd,
    /// An API server answers.
    Api,
    /// All machines are nodes, and Ready.
    Nodes,
    /// Flux was given a repository.
    Flux,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Empty, Self::Machines, Self::Etcd, Self::Api, Self::Nodes, Self::Flux];

    /// The word in a rule.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Machines => "machines",
            Self::Etcd => "etcd",
            Self::Api => "api",
            Self::Nodes => "nodes",
            Self::Flux => "flux",
        }
    }

    /// The phase that a datacenter is in.
    #[must_use]
    pub fn of(world: &Datacenter) -> Self {
        let machines = world.talos.powered();
        if machines == 0 {
            return Self::Empty;
        }
        if world.kubernetes.cluster().is_none() {
            return Self::Machines;
        }
        if !world.talos.serves_kubernetes() {
            return Self::Etcd;
        }
        if world.kubernetes.has_source() {
            return Self::Flux;
        }
        let (mut nodes, mut ready) = (0, 0);
        for (_, is_ready) in world.kubernetes.node_names() {
            nodes += 1;
            ready += usize::from(is_ready);
        }
        if ready == nodes && nodes >= machines { Self::Nodes } else { Self::Api }
    }
}
