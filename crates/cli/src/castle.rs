//! A whole castle put together: every step of every layer, over the rehearsal's wire.

use std::sync::Arc;

use castle_engine::Graph;
use castle_layers::Credentials;
use castle_model::{Spec, StepDecl};
use castle_rehearsal::host::Host;

use crate::exit::{Exit, Problem};

/// The steps of a castle, without the code behind them.
pub(crate) fn declare(spec: &Spec) -> Vec<StepDecl> {
    castle_layers::declare(spec)
}

/// The steps of a castle, with the code behind them.
pub(crate) fn graph(spec: &Spec, host: &Host) -> Result<Graph, Problem> {
    let (client_id, client_secret) = host.credentials();
    let identity = Credentials { client_id, client_secret };
    let graph = castle_layers::build(&Arc::new(spec.clone()), &host.world(), identity);
    graph
        .check()
        .map_err(|e| Problem::new(Exit::Failed, "the steps do not fit together").because(&e))?;
    Ok(graph)
}
