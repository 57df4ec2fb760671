//! Everything that is held against real components; `cargo xtask test` runs it. One file per subject.
#![expect(clippy::unwrap_used, reason = "in a test, what goes wrong must stop it at once")]

#[path = "real/browser.rs"]
mod browser;
#[path = "real/datacenter.rs"]
mod datacenter;
#[path = "real/setting.rs"]
mod setting;
#[path = "real/standing.rs"]
mod standing;

#[path = "real/age.rs"]
mod age;
#[path = "real/apid.rs"]
mod apid;
#[path = "real/bundle.rs"]
mod bundle;
#[path = "real/cluster.rs"]
mod cluster;
#[path = "real/contract.rs"]
mod contract;
#[path = "real/curl.rs"]
mod curl;
#[path = "real/definitions.rs"]
mod definitions;
#[path = "real/documents.rs"]
mod documents;
#[path = "real/flux.rs"]
mod flux;
#[path = "real/git.rs"]
mod git;
#[path = "real/infisicalsdk.rs"]
mod infisicalsdk;
#[path = "real/kubectl.rs"]
mod kubectl;
#[path = "real/metallb.rs"]
mod metallb;
#[path = "real/ownership.rs"]
mod ownership;
#[path = "real/patches.rs"]
mod patches;
#[path = "real/proxmoxer.rs"]
mod proxmoxer;
#[path = "real/releases.rs"]
mod releases;
#[path = "real/rounds.rs"]
mod rounds;
#[path = "real/schema.rs"]
mod schema;
#[path = "real/screen.rs"]
mod screen;
#[path = "real/shells.rs"]
mod shells;
#[path = "real/smart.rs"]
mod smart;
#[path = "real/sops.rs"]
mod sops;
#[path = "real/talosctl.rs"]
mod talosctl;
#[path = "real/timeline.rs"]
mod timeline;
#[path = "real/webhooks.rs"]
mod webhooks;
