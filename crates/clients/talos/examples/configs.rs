//! Measures how long the machine configs of a castle take, for `cargo xtask bench`: one JSON line per version of Talos.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Instant;

use castle_talos::{Bundle, machine_config, without_secrets};
use castle_wire::{SystemClock, SystemEntropy};
use serde_json::json;

/// How many times all configs are written; the median counts.
const TIMES: usize = 51;

#[expect(clippy::disallowed_methods, reason = "this measures real time, and nothing depends on it")]
fn main() -> Result<(), Box<dyn Error>> {
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock)?;
    for talos in ["1.13.9", "1.14.1"] {
        let mut spec = castle_config::example();
        spec.talos = talos.parse()?;
        let mut took = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let start = Instant::now();
            for node in &spec.nodes {
                machine_config(&spec, node, &bundle, "88d1", &without_secrets)?;
            }
            took.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        took.sort_by(f64::total_cmp);
        let line =
            json!({ "talos": talos, "nodes": spec.nodes.len(), "milliseconds": took[TIMES / 2] });
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}
