//! A config is given to a machine: judged, compared with the one it has, and taken at once, later or with a reboot.

use tonic::Code;

use super::call::{ApplyMode, ConfigText, Refusal, Reply};
use super::config::Config;
use super::machine::{Api, Machine, Sequence};
use super::reading::{difference, is_immediate};
use super::{Call, Talos};
use crate::turn::Turn;

/// For how long a config is tried unless somebody says otherwise, in seconds.
const TRY_SECONDS: u64 = 60;

const WITH: &str = "Applied configuration with a reboot";
const WITHOUT: &str = "Applied configuration without a reboot";
const LATER: &str = "Staged configuration to be applied after the next reboot";

impl Talos {
    /// Takes a config: in maintenance mode the machine begins its life as a node.
    pub(super) fn apply(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        call: &Call,
    ) -> Result<Reply, Refusal> {
        let Call::Apply { config, mode, dry_run, try_seconds, admin } = call else {
            return Err(Refusal::gone());
        };
        let machine = self.machines.get_mut(&vmid).ok_or_else(Refusal::gone)?;
        let (config, mode, why) = judged(machine, config, *mode, *admin)?;
        let words = match mode {
            ApplyMode::Reboot => WITH,
            ApplyMode::Staged => LATER,
            ApplyMode::Auto | ApplyMode::NoReboot | ApplyMode::Try => WITHOUT,
        };
        if *dry_run {
            let old = machine.config().map(|config| config.text.0.as_str());
            let changes = difference(old, &config.text.0);
            let changes = changes.unwrap_or_else(|| "No changes.".to_owned());
            let details = format!(
                "Dry run summary:\n{words} (skipped in dry-run).\nConfig diff:\n\n{changes}"
            );
            return Ok(Reply::Applied { mode, details });
        }
        let first = machine.api == Api::Maintenance;
        let mut details = words.to_owned() + &why;
        if first && machine.troubles.unwritable {
            // The answer is given before anything is written.
            return Ok(Reply::Applied { mode, details });
        }
        match mode {
            ApplyMode::Try => {
                let seconds = try_seconds.unwrap_or(TRY_SECONDS);
                let span = format!("{}m{}s", seconds / 60, seconds % 60);
                details += "\nThe config is applied in 'try' mode and will be automatically reverted back in ";
                details += &span;
                machine.adopt(Some(config));
            }
            ApplyMode::Staged => machine.disk.saved = Some(config),
            ApplyMode::Reboot => {
                machine.disk.saved = Some(config);
                self.go_down(turn, vmid, Sequence::Reboot);
                return Ok(Reply::Applied { mode, details });
            }
            ApplyMode::Auto | ApplyMode::NoReboot => {
                machine.disk.saved = Some(config.clone());
                machine.adopt(Some(config));
            }
        }
        if first && machine.config().is_some() {
            self.configured(turn, vmid);
        }
        Ok(Reply::Applied { mode, details })
    }
}

/// Judges a config and says how it will be applied, and why so if that is a reboot.
fn judged(
    machine: &Machine,
    text: &ConfigText,
    mode: ApplyMode,
    admin: bool,
) -> Result<(Config, ApplyMode, String), Refusal> {
    if machine.ending.is_some() {
        return Err(Refusal::new(
            Code::FailedPrecondition,
            "configuration was already applied and node is rebooting, cannot apply more configuration changes until next reboot",
        ));
    }
    let maintenance = machine.api == Api::Maintenance;
    if !maintenance && !admin {
        return Err(Refusal::new(Code::PermissionDenied, "not authorized"));
    }
    if maintenance && machine.config().is_some() {
        // Sent twice before the listener changed: the first one holds.
        let text = "another apply configuration is already in progress";
        return Err(Refusal::new(Code::FailedPrecondition, text));
    }
    if !maintenance && mode == ApplyMode::Reboot && machine.is_late() {
        return Err(Refusal::new(Code::Unimplemented, "reboot mode is not supported"));
    }
    let config = Config::read(&text.0, machine.is_late())?;
    let role_changes =
        machine.config().is_some_and(|own| own.control_plane != config.control_plane);
    if role_changes {
        return Err(Refusal::new(
            Code::InvalidArgument,
            "1 error occurred:\n\t* the machine type cannot be changed after the first config\n\n",
        ));
    }
    let old = machine.config().map(|config| config.text.0.as_str());
    let immediate = old.is_none_or(|old| machine.is_late() || is_immediate(old, &config.text.0));
    let why = || {
        let changes = difference(old, &config.text.0).unwrap_or_default();
        format!("this config change can't be applied in immediate mode\ndiff:\n{changes}")
    };
    let (mode, why) = match mode {
        ApplyMode::Reboot if maintenance => (ApplyMode::NoReboot, String::new()),
        ApplyMode::Auto if immediate => (ApplyMode::NoReboot, String::new()),
        ApplyMode::Auto => (ApplyMode::Reboot, format!(": {}", why())),
        ApplyMode::NoReboot | ApplyMode::Try if !immediate => {
            return Err(Refusal::new(Code::InvalidArgument, why()));
        }
        other => (other, String::new()),
    };
    Ok((config, mode, why))
}
