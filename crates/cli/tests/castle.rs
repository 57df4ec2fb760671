//! The program itself, as a user starts it: wiring, exit codes, crashes, refusals. One file per subject.
#![expect(clippy::unwrap_used, reason = "in a test, what goes wrong must stop it at once")]

#[path = "castle/context.rs"]
mod context;
#[path = "castle/datacenter.rs"]
mod datacenter;
#[path = "castle/grid.rs"]
mod grid;

#[path = "castle/adopt.rs"]
mod adopt;
#[path = "castle/attach.rs"]
mod attach;
#[path = "castle/audit.rs"]
mod audit;
#[path = "castle/canary.rs"]
mod canary;
#[path = "castle/crash.rs"]
mod crash;
#[path = "castle/down.rs"]
mod down;
#[path = "castle/drift.rs"]
mod drift;
#[path = "castle/faces.rs"]
mod faces;
#[path = "castle/faults.rs"]
mod faults;
#[path = "castle/give.rs"]
mod give;
#[path = "castle/hardening.rs"]
mod hardening;
#[path = "castle/history.rs"]
mod history;
#[path = "castle/interrupt.rs"]
mod interrupt;
#[path = "castle/judge.rs"]
mod judge;
#[path = "castle/lock.rs"]
mod lock;
#[path = "castle/loopback.rs"]
mod loopback;
#[path = "castle/machine.rs"]
mod machine;
#[path = "castle/output.rs"]
mod output;
#[path = "castle/poke.rs"]
mod poke;
#[path = "castle/real.rs"]
mod real;
#[path = "castle/rebirth.rs"]
mod rebirth;
#[path = "castle/refusal.rs"]
mod refusal;
#[path = "castle/report.rs"]
mod report;
#[path = "castle/rise.rs"]
mod rise;
#[path = "castle/samples.rs"]
mod samples;
#[path = "castle/scenarios.rs"]
mod scenarios;
#[path = "castle/secrets.rs"]
mod secrets;
#[path = "castle/serve.rs"]
mod serve;
#[path = "castle/terminal.rs"]
mod terminal;
#[path = "castle/why.rs"]
mod why;
#[path = "castle/wipe.rs"]
mod wipe;
