//! The arguments of `castle rehearse serve`.

use std::net::Ipv4Addr;

use clap::Args;

use super::Faults;

/// How the rehearsal's datacenter is put on sockets.
#[derive(Debug, Clone, Args)]
pub(crate) struct Serve {
    /// How many times faster than real time the datacenter lives
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) speed: u32,
    /// The seed that a new rehearsal draws its durations from (default: 1)
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// The loopback address of its servers; of the form 127.0.0.N, with its machines in 127.0.N.0/24
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST)]
    pub(crate) at: Ipv4Addr,
    #[command(flatten)]
    pub(crate) faults: Faults,
}
