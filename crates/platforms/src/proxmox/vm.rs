//! `platform/vm/<node>`: a VM of ours, as the castle file wants it, is switched on.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_model::spec::Role;
use castle_model::{Change, Class, Failure, Observed, Verb, Verdict};
use castle_proxmox::{Config, GuestKind, Proxmox};
use castle_talos::Presence;

use super::inventory::{abandoned, described};
use super::mark::{Mark, Owner, castle_tag, owner};
use super::shape::{Difference, difference, parameters};
use super::wanted::VmNode;
use super::{Site, image, task};
use crate::handed::LIFE;

/// The step of one node.
pub(super) struct Vm {
    pub(super) site: Arc<Site>,
    pub(super) node: VmNode,
}

/// What stands at the node's number.
enum Seen {
    Nothing,
    /// A task is making it; its mark comes at the end.
    InTheMaking,
    /// Whoever was making it has died; it bears no mark, so nobody can say who that was.
    Abandoned(String),
    /// A VM of this castle.
    Ours(Mark, Config),
    /// It bears marks of this castle, but not all of them agree: somebody changed or copied it.
    Doubtful(String),
    Foreign(String),
}

impl Vm {
    fn host(&self) -> &str {
        &self.site.spec.platform.node
    }

    fn named(&self) -> String {
        format!("VM {} ({}) on {}", self.node.vmid, self.node.name, self.host())
    }

    fn failed(&self, doing: &str) -> impl Fn(castle_proxmox::ProxmoxError) -> Failure {
        let what = format!("{doing} {}", self.named());
        move |error| error.failure(&what)
    }

    async fn look(&self, client: &Proxmox) -> Result<Seen, Failure> {
        let vmid = self.node.vmid;
        let config = match client.vm_config(self.host(), vmid).await {
            Ok(config) => config,
            Err(error) if error.is_missing() => return Ok(Seen::Nothing),
            Err(error) => return Err(self.failed("look at")(error)),
        };
        if config.lock() == Some("create") {
            let abandoned = abandoned(client, self.host(), vmid).await?;
            return Ok(abandoned.map_or(Seen::InTheMaking, Seen::Abandoned));
        }
        Ok(match owner(vmid, &config) {
            Owner::Somebody { .. }
                if castle_model::planted(castle_model::Bug::NumberIsProof)
                    || castle_model::planted(castle_model::Bug::OwnershipUnchecked) =>
            {
                let castle = self.site.spec.name.clone();
                let incarnation = castle_model::Incarnation::from_bytes([0; 8]);
                let node = self.node.name.clone();
                Seen::Ours(Mark { castle, incarnation, node, vmid }, config)
            }
            Owner::Castle(mark)
                if mark.castle == self.site.spec.name && mark.node == self.node.name =>
            {
                Seen::Ours(mark, config)
            }
            Owner::Castle(mark) => {
                Seen::Foreign(format!("node {} of castle {}", mark.node, mark.castle))
            }
            Owner::Somebody { why } => {
                let tags: Vec<String> = config.tags().into_iter().collect();
                let tagged = if tags.is_empty() { "no tags".into() } else { tags.join(", ") };
                let name = config.get("name").unwrap_or("no name");
                let whose = format!("`{name}` ({tagged}): {why}");
                if config.tags().contains(&castle_tag(&self.site.spec.name)) {
                    Seen::Doubtful(whose)
                } else {
                    Seen::Foreign(whose)
                }
            }
        })
    }

    /// Looks until no task is at work on a VM without a mark.
    async fn look_settled(&self, cx: &Context, client: &Proxmox) -> Result<Seen, Failure> {
        task::settle(cx, client).await?;
        cx.wait(Pace::TASK, &format!("{} to be made", self.named()), || async {
            Ok(match self.look(client).await? {
                Seen::InTheMaking => Verdict::waiting("a task is making it"),
                seen => Verdict::Ready(seen),
            })
        })
        .await
    }

    async fn running(&self, client: &Proxmox) -> Result<bool, Failure> {
        let status = client.vm_status(self.host(), self.node.vmid).await;
        Ok(status.map_err(self.failed("look at"))?.status == "running")
    }

    fn foreign(&self, doing: &str, whose: &str) -> Failure {
        Failure::new(
            Class::Conflict,
            format!("{doing} {}", self.named()),
            format!("it is not ours: {whose}"),
        )
        .hint("choose another vmid in the castle file, or move that guest away")
    }

    async fn create(&self, cx: &Context, client: &Proxmox) -> Result<(), Failure> {
        let spec = &self.site.spec;
        let mark = Mark {
            castle: spec.name.clone(),
            incarnation: cx.outputs().get(&LIFE)?.incarnation.clone(),
            node: self.node.name.clone(),
            vmid: self.node.vmid,
        };
        let parameters = parameters(spec, &self.node, &mark, &image::volume(spec)?);
        let making = match client.create_vm(self.host(), &parameters).await {
            Ok(making) => making,
            // Somebody was faster. Whose it is now is looked up; Proxmox' own words help nobody.
            Err(error) if error.class() == Class::Conflict => return self.overtaken(client).await,
            Err(error) => return Err(self.failed("create")(error)),
        };
        task::follow(cx, client, &making, &format!("create {}", self.named())).await
    }

    /// The number was taken between our look and our call: by us in a call whose answer was lost, which the next look
    /// tells, or by a guest that our next look would not see.
    async fn overtaken(&self, client: &Proxmox) -> Result<(), Failure> {
        let guests = client.guests().await.map_err(self.failed("look who has taken"))?;
        let taken = guests.iter().find(|guest| guest.vmid == self.node.vmid);
        match taken.filter(|g| g.kind == GuestKind::Container || g.node != self.host()) {
            Some(guest) => Err(self.foreign("make", &described(guest))),
            None => Ok(()),
        }
    }

    /// Whether a control plane may be destroyed to be made anew: only while nobody has given it a config, because after
    /// that it may hold a part of etcd. It must be this very machine that says so, and no ghost at its address. A worker
    /// always may.
    async fn may_be_replaced(&self, mark: &Mark) -> bool {
        if self.node.role == Role::Worker {
            return true;
        }
        match Presence::look(&self.site.world, self.node.address, None).await {
            Presence::Maintenance(talos) => {
                talos.smbios_uuid().await.is_ok_and(|uuid| uuid == Some(mark.uuid()))
            }
            _ => false,
        }
    }

    /// Mends what can be mended in place.
    async fn mend(
        &self,
        cx: &Context,
        client: &Proxmox,
        found: &Difference,
    ) -> Result<(), Failure> {
        let unchecked = castle_model::planted(castle_model::Bug::OwnershipUnchecked);
        if !found.fixed.is_empty() && !unchecked {
            return Err(self.unfit(found));
        }
        for (disk, gib) in [("scsi0", found.grow), ("scsi1", found.grow_data)] {
            let Some(gib) = gib else { continue };
            let growing = client
                .resize(self.host(), self.node.vmid, disk, gib)
                .await
                .map_err(self.failed("grow a disk of"))?;
            task::follow(cx, client, &growing, &format!("grow {disk} of {}", self.named())).await?;
        }
        if !found.settings.is_empty() {
            client
                .set_config(self.host(), self.node.vmid, &found.settings)
                .await
                .map_err(self.failed("change"))?;
            if self.running(client).await? {
                cx.notice(format!(
                    "{}: what was changed may take effect only when it is next switched off and on",
                    self.named()
                ));
            }
        }
        Ok(())
    }

    fn unfit(&self, found: &Difference) -> Failure {
        Failure::new(Class::Conflict, format!("change {}", self.named()), found.fixed.join(", "))
            .hint("this cannot be changed on a machine that may hold a part of etcd: put the castle file back; or `castle down`, then `castle up`")
    }

    /// Destroys a VM that is proven ours, with everything that bears its number.
    async fn remove(&self, cx: &Context, client: &Proxmox, config: &Config) -> Result<(), Failure> {
        let (vmid, what) = (self.node.vmid, format!("remove {}", self.named()));
        if config.get("protection") == Some("1") {
            let why = "somebody has protected it in Proxmox, so it was not even switched off";
            return Err(Failure::new(Class::Conflict, what, why).hint(format!(
                "if it may really go, take the protection off (qm set {vmid} --protection 0), then run the same command again"
            )));
        }
        let on = match self.running(client).await {
            // It went since we looked, by an earlier call whose answer was lost.
            Err(failure) if failure.class == Class::Gone => false,
            running => running?,
        };
        if on {
            let stopping = client.stop(self.host(), vmid).await.map_err(self.failed("stop"))?;
            task::follow(cx, client, &stopping, &format!("stop {}", self.named())).await?;
        }
        // Somebody may have put another guest there while it stopped.
        match self.look(client).await? {
            Seen::Nothing => return Ok(()),
            Seen::Foreign(whose) | Seen::Doubtful(whose) | Seen::Abandoned(whose) => {
                return Err(self.foreign("remove", &whose));
            }
            Seen::Ours(..) | Seen::InTheMaking => {}
        }
        let removing = match client.delete_vm(self.host(), vmid).await {
            Ok(removing) => removing,
            Err(error) if error.is_missing() => {
                let why =
                    "it went while we looked: whether anything of it is left is looked at next";
                return Err(Failure::new(Class::Transient, what, why));
            }
            Err(error) => return Err(self.failed("remove")(error)),
        };
        match task::follow(cx, client, &removing, &what).await {
            // An earlier call whose answer was lost has removed it.
            Err(failure) if failure.class == Class::Gone => {}
            outcome => outcome?,
        }
        self.nothing_left(client).await
    }

    /// A disk that could not be removed is only a warning to Proxmox.
    async fn nothing_left(&self, client: &Proxmox) -> Result<(), Failure> {
        let storage = &self.site.spec.platform.storage;
        let disks = client.content(self.host(), storage, Some("images")).await;
        let disks = disks.map_err(self.failed("look for disks of"))?;
        let left: Vec<String> = disks
            .into_iter()
            .filter(|disk| disk.vmid == u64::from(self.node.vmid.0))
            .map(|disk| disk.volid)
            .collect();
        if left.is_empty() {
            return Ok(());
        }
        let commands: Vec<String> = left.iter().map(|disk| format!("pvesm free {disk}")).collect();
        let why = format!("the VM is gone, and Proxmox has left {}", left.join(", "));
        Err(Failure::new(Class::Conflict, format!("remove the disks of {}", self.named()), why)
            .hint(format!("remove them on the host: {}", commands.join("; "))))
    }

    async fn start(&self, cx: &Context, client: &Proxmox) -> Result<(), Failure> {
        if self.running(client).await? {
            return Ok(());
        }
        let starting =
            client.start(self.host(), self.node.vmid).await.map_err(self.failed("start"))?;
        match task::follow(cx, client, &starting, &format!("start {}", self.named())).await {
            Err(failure) if failure.why.contains("already running") => Ok(()),
            outcome => outcome,
        }
    }
}

#[async_trait]
impl Step for Vm {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.site.client(cx)?;
        let life = cx.outputs().get(&LIFE)?;
        let (mark, config) = match self.look(&client).await? {
            Seen::Nothing => return Ok(Observed::Absent),
            Seen::InTheMaking if cx.unfinished_task().is_some() => {
                return Ok(Observed::wrong("an earlier run has begun to make it"));
            }
            Seen::InTheMaking => {
                let why = "a task is making it, and it bears no mark yet";
                return Err(Failure::new(
                    Class::Transient,
                    format!("look at {}", self.named()),
                    why,
                ));
            }
            Seen::Foreign(owner) | Seen::Doubtful(owner) | Seen::Abandoned(owner) => {
                return Ok(Observed::Foreign { owner });
            }
            Seen::Ours(mark, config) => (mark, config),
        };
        if mark.incarnation != life.incarnation {
            return Ok(Observed::Foreign {
                owner: format!("another life of this castle, {}", mark.incarnation),
            });
        }
        let found = difference(&self.site.spec, &self.node, &config);
        if !found.fixed.is_empty() {
            if self.may_be_replaced(&mark).await {
                return Ok(Observed::stale(found.words()));
            }
            return Err(self.unfit(&found));
        }
        if !found.is_empty() {
            return Ok(Observed::wrong(found.words()));
        }
        if !self.running(&client).await? {
            return Ok(Observed::wrong("it is switched off"));
        }
        Ok(Observed::right(format!("running, {}", mark.uuid())))
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        let client = self.site.client(cx)?;
        let mut change = Change::Updated;
        let mut seen = self.look_settled(cx, &client).await?;
        if let Seen::Ours(_, config) = &seen
            && verb == Verb::Replace
            && !difference(&self.site.spec, &self.node, config).fixed.is_empty()
        {
            self.remove(cx, &client, config).await?;
            seen = Seen::Nothing;
        }
        if matches!(seen, Seen::Nothing) {
            self.create(cx, &client).await?;
            change = Change::Created;
            seen = self.look_settled(cx, &client).await?;
        }
        let config = match seen {
            Seen::Ours(mark, config)
                if mark.incarnation == cx.outputs().get(&LIFE)?.incarnation
                    || castle_model::planted(castle_model::Bug::OwnershipUnchecked) =>
            {
                config
            }
            Seen::Ours(mark, _) => {
                let whose = format!("another life of this castle, {}", mark.incarnation);
                return Err(self.foreign("make", &whose));
            }
            Seen::Foreign(whose) | Seen::Doubtful(whose) | Seen::Abandoned(whose) => {
                return Err(self.foreign("make", &whose));
            }
            Seen::Nothing | Seen::InTheMaking => {
                let why = "it was made and is not there";
                return Err(Failure::new(Class::Transient, format!("make {}", self.named()), why));
            }
        };
        self.mend(cx, &client, &difference(&self.site.spec, &self.node, &config)).await?;
        self.start(cx, &client).await?;
        Ok(Acted::of(change).with("vmid", self.node.vmid.to_string()))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.site.client(cx)?;
        cx.wait(Pace::GATE, &format!("{} to run", self.named()), || async {
            Ok(if self.running(&client).await? {
                Verdict::Ready(format!("{} is running", self.named()))
            } else {
                Verdict::waiting("it is switched off")
            })
        })
        .await
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let client = self.site.client(cx)?;
        match self.look(&client).await? {
            Seen::Doubtful(why) => {
                Ok(Some(format!("{}, which can not be proven ours: {why}", self.named())))
            }
            // Our journal says that we were making one.
            Seen::Abandoned(why) if cx.unfinished_task().is_some() => {
                Ok(Some(format!("{}, half made: {why}", self.named())))
            }
            // What is not ours is not our leftover.
            Seen::Nothing | Seen::Foreign(_) | Seen::Abandoned(_) => Ok(None),
            Seen::InTheMaking if cx.unfinished_task().is_some() => {
                Ok(Some(format!("{}, half made", self.named())))
            }
            Seen::InTheMaking => Err(Failure::new(
                Class::Transient,
                format!("look at {}", self.named()),
                "a task is making it, and it bears no mark yet",
            )),
            Seen::Ours(..) => Ok(Some(self.named())),
        }
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let client = self.site.client(cx)?;
        match self.look_settled(cx, &client).await? {
            Seen::Nothing => Ok(()),
            Seen::Ours(_, config) => self.remove(cx, &client, &config).await,
            Seen::Foreign(whose) | Seen::Doubtful(whose) | Seen::Abandoned(whose) => {
                Err(self.foreign("remove", &whose))
            }
            Seen::InTheMaking => {
                let what = format!("remove {}", self.named());
                Err(Failure::new(Class::Transient, what, "a task is still making it"))
            }
        }
    }
}
