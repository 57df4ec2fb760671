//! The end of a guest: switched off, removed with its disks, and looked for once more.

use castle_engine::Context;
use castle_model::{Class, Failure, VmId};
use castle_proxmox::{Config, GuestKind, Proxmox, ProxmoxError};
use futures::future::{BoxFuture, join};

use super::attached::Attached;
use super::disks::{Loose, bearing, borrowed};
use super::task;

/// Looks whether the guest is still the one that is to go; an error if another one stands there.
pub(super) type Still<'a> = &'a (dyn Fn() -> BoxFuture<'a, Result<bool, Failure>> + Send + Sync);

/// A guest that goes.
pub(super) struct Removal<'a> {
    pub(super) client: &'a Proxmox,
    /// The node that carries it.
    pub(super) node: &'a str,
    pub(super) vmid: VmId,
    pub(super) kind: GuestKind,
    /// In words.
    pub(super) named: String,
}

impl Removal<'_> {
    /// Removes it with its disks and everything that bears its number and nobody else has. It is not even switched off
    /// if it is protected, or if another guest has one of the disks that would go with it.
    pub(super) async fn carry_out(
        &self,
        cx: &Context,
        config: &Config,
        still: Still<'_>,
    ) -> Result<(), Failure> {
        self.refuse_protected(config)?;
        self.refuse_attached(config).await?;
        let look = Loose::look(self.client, self.node, self.vmid, config);
        let (off, loose) = join(self.switch_off(cx), look).await;
        off?;
        let loose = loose?;
        // Somebody may have put another guest there while it stopped.
        if !still().await? {
            return Ok(());
        }
        self.tell_what_stays(cx, config, &loose);
        let what = format!("remove {}", self.named);
        let removing = match self.delete(loose.may_go()).await {
            Ok(removing) => removing,
            Err(error) if error.is_missing() => {
                let why =
                    "it went while we looked: whether anything of it is left is looked at next";
                return Err(Failure::new(Class::Transient, what, why));
            }
            Err(error) => return Err(error.failure(what)),
        };
        match task::follow(cx, self.client, &removing, &what).await {
            // An earlier call whose answer was lost has removed it.
            Err(failure) if failure.class == Class::Gone => {}
            outcome => outcome?,
        }
        self.nothing_left(&loose, still).await
    }

    fn refuse_protected(&self, config: &Config) -> Result<(), Failure> {
        if config.get("protection") != Some("1") {
            return Ok(());
        }
        let command = match self.kind {
            GuestKind::Vm => "qm",
            GuestKind::Container => "pct",
        };
        let why = "somebody has protected it in Proxmox (who, Proxmox does not tell), so it was not even switched off";
        Err(Failure::new(Class::Conflict, format!("remove {}", self.named), why).hint(format!(
            "if it may really go, take the protection off ({command} set {} --protection 0), then run the same command again",
            self.vmid
        )))
    }

    /// Proxmox destroys whatever its configuration names and bears its number, whoever else has it.
    async fn refuse_attached(&self, config: &Config) -> Result<(), Failure> {
        let held = Attached::look(self.client, Some(self.vmid)).await?.held(self.vmid, config);
        let Some(why) = held.why() else { return Ok(()) };
        let why = format!("{why}, so it was not even switched off");
        Err(Failure::new(Class::Conflict, format!("remove {}", self.named), why)
            .hint(format!("{}; then run the same command again", held.cure())))
    }

    async fn switch_off(&self, cx: &Context) -> Result<(), Failure> {
        let status = match self.kind {
            GuestKind::Vm => self.client.vm_status(self.node, self.vmid).await,
            GuestKind::Container => self.client.container_status(self.node, self.vmid).await,
        };
        match status {
            Ok(status) if status.status == "running" => {}
            Ok(_) => return Ok(()),
            // It went since we looked, by an earlier call whose answer was lost.
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error.failure(format!("look at {}", self.named))),
        }
        let what = format!("stop {}", self.named);
        let stopping = match self.kind {
            GuestKind::Vm => self.client.stop(self.node, self.vmid).await,
            GuestKind::Container => self.client.stop_container(self.node, self.vmid).await,
        };
        let stopping = stopping.map_err(|error| error.failure(&what))?;
        task::follow(cx, self.client, &stopping, &what).await
    }

    async fn delete(&self, unreferenced: bool) -> Result<castle_proxmox::Upid, ProxmoxError> {
        match self.kind {
            GuestKind::Vm => self.client.delete_vm(self.node, self.vmid, unreferenced).await,
            GuestKind::Container => {
                self.client.delete_container(self.node, self.vmid, unreferenced).await
            }
        }
    }

    /// Names what Proxmox leaves on purpose.
    fn tell_what_stays(&self, cx: &Context, config: &Config, loose: &Loose) {
        for (volid, owner) in borrowed(self.vmid, config) {
            cx.notice(format!(
                "{volid} stays: {} had it attached, and it is guest {owner}'s",
                self.named
            ));
        }
        for (volid, user) in &loose.lent {
            cx.notice(format!(
                "{volid} stays: it bears the number {}, and guest {user} has it",
                self.vmid
            ));
        }
    }

    /// A task may say that it went well, and nothing has happened; a disk that could not be removed is only a warning to
    /// Proxmox.
    async fn nothing_left(&self, loose: &Loose, still: Still<'_>) -> Result<(), Failure> {
        if still().await? {
            let kind = match self.kind {
                GuestKind::Vm => "VM",
                GuestKind::Container => "container",
            };
            let why = format!("its task ended with OK, and the {kind} is still there");
            return Err(Failure::new(Class::Transient, format!("remove {}", self.named), why));
        }
        let disks = bearing(self.client, self.node, |number| number == self.vmid).await?;
        let lent = |volid: &String| loose.lent.iter().any(|(had, _)| had == volid);
        let left: Vec<String> =
            disks.into_iter().map(|disk| disk.volid).filter(|volid| !lent(volid)).collect();
        if left.is_empty() {
            return Ok(());
        }
        let commands: Vec<String> = left.iter().map(|disk| format!("pvesm free {disk}")).collect();
        let why = if loose.blind {
            "the guest is gone; not every guest can be seen, so that nobody could say whether another one has"
        } else {
            "the guest is gone, and Proxmox has left"
        };
        let why = format!("{why} {}", left.join(", "));
        Err(Failure::new(Class::Conflict, format!("remove the disks of {}", self.named), why)
            .hint(format!("remove them on the host: {}", commands.join("; "))))
    }
}
