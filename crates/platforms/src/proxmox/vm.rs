//! `platform/vm/<node>`: a VM of ours, as the castle file wants it, is switched on.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Pace, Step};
use castle_model::spec::Role;
use castle_model::{Bug, Change, Class, Failure, Incarnation, Observed, Verb, Verdict, planted};
use castle_proxmox::{Config, GuestKind, Proxmox, VmStatus};
use castle_talos::Presence;
use futures::future::BoxFuture;

use super::half_made::{self, Abandoned, abandoned, is_making};
use super::inventory::{INVENTORY, described};
use super::mark::{Mark, Owner, castle_tag, owner};
use super::recognise::restored;
use super::removal::Removal;
use super::shape::{Difference, difference, parameters};
use super::wanted::VmNode;
use super::{Site, image, task};
use crate::handed::LIFE;

mod in_force;
mod lost;

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
    /// A task of ours was making it and has died.
    HalfMade(String),
    /// Whoever was making it has died; it bears no mark, so nobody can say who that was.
    Abandoned(String),
    /// A VM of this castle.
    Ours(Mark, Config),
    /// A VM of this castle by its number and UUID, whose mark somebody has damaged; how.
    Unmarked(Mark, Config, String),
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

    /// The mark of this node in a life.
    fn mark(&self, incarnation: &Incarnation) -> Mark {
        Mark {
            castle: self.site.spec.name.clone(),
            incarnation: incarnation.clone(),
            node: self.node.name.clone(),
            vmid: self.node.vmid,
        }
    }

    /// What stands there. Where the life is known, a VM of it is recognised without its mark.
    async fn look(
        &self,
        cx: &Context,
        client: &Proxmox,
        life: Option<&Incarnation>,
    ) -> Result<Seen, Failure> {
        let vmid = self.node.vmid;
        let config = match client.vm_config(self.host(), vmid).await {
            Ok(config) => config,
            Err(error) if error.is_missing() => return Ok(Seen::Nothing),
            Err(error) => return Err(self.failed("look at")(error)),
        };
        if config.lock() == Some("create") {
            let recorded = cx.unfinished_task().is_some_and(|task| is_making(task, vmid));
            let at = (self.host(), vmid);
            return Ok(match abandoned(client, &self.site.spec, at, recorded).await? {
                None => Seen::InTheMaking,
                Some(Abandoned { why, ours: true }) => Seen::HalfMade(why),
                Some(Abandoned { why, ours: false }) => Seen::Abandoned(why),
            });
        }
        Ok(match owner(vmid, &config) {
            Owner::Somebody { .. }
                if planted(Bug::NumberIsProof) || planted(Bug::OwnershipUnchecked) =>
            {
                let castle = self.site.spec.name.clone();
                let incarnation = Incarnation::from_bytes([0; 8]);
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
                let own = life.map(|life| self.mark(life));
                if let Some(mark) = own.filter(|mark| config.uuid() == Some(mark.uuid())) {
                    return Ok(Seen::Unmarked(mark, config, why));
                }
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
        task::idle(cx, client, (self.host(), self.node.vmid), &self.named()).await?;
        let life = cx.outputs().get(&LIFE).ok().map(|life| life.incarnation.clone());
        let life = life.as_ref();
        cx.wait(Pace::TASK, &format!("{} to be made", self.named()), || async {
            Ok(match self.look(cx, client, life).await? {
                Seen::InTheMaking => Verdict::waiting("a task is making it"),
                seen => Verdict::Ready(seen),
            })
        })
        .await
    }

    /// Nothing can be said of it while a task that nobody knows of makes it.
    async fn in_the_making(&self, client: &Proxmox) -> Failure {
        let doing = format!("look at {}", self.named());
        task::in_the_making(client, (self.host(), self.node.vmid), doing).await
    }

    /// Nothing can be said of a VM while a task that our journal does not know makes it into something else.
    async fn refuse_busy(&self, cx: &Context, client: &Proxmox) -> Result<(), Failure> {
        let was = cx.outputs().get(&INVENTORY)?.busy.contains_key(&self.node.vmid);
        if !was || cx.unfinished_task().is_some() {
            return Ok(());
        }
        let Some(task) = task::at_work(client, self.host(), self.node.vmid).await? else {
            return Ok(());
        };
        let why = format!("Proxmox' task {} is at work on it", task.kind());
        Err(Failure::new(Class::Transient, format!("look at {}", self.named()), why))
    }

    async fn status(&self, client: &Proxmox) -> Result<VmStatus, Failure> {
        let status = client.vm_status(self.host(), self.node.vmid).await;
        status.map_err(self.failed("look at"))
    }

    async fn running(&self, client: &Proxmox) -> Result<bool, Failure> {
        Ok(self.status(client).await?.is_running())
    }

    fn foreign(&self, doing: &str, whose: &str) -> Failure {
        Failure::new(
            Class::Conflict,
            format!("{doing} {}", self.named()),
            format!("it is not ours: {whose}"),
        )
        .hint("choose another vmid in the castle file, or move that guest away")
    }

    /// Half made by us, and only a person can take the lock off.
    fn half_made(&self, doing: &str, why: &str) -> Failure {
        Failure::new(Class::Conflict, format!("{doing} {}", self.named()), format!("it is {why}"))
            .hint(half_made::cure(self.node.vmid))
    }

    async fn create(&self, cx: &Context, client: &Proxmox) -> Result<(), Failure> {
        let spec = &self.site.spec;
        let mark = self.mark(&cx.outputs().get(&LIFE)?.incarnation);
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
        let unchecked = planted(Bug::OwnershipUnchecked);
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
        }
        Ok(())
    }

    fn unfit(&self, found: &Difference) -> Failure {
        Failure::new(Class::Conflict, format!("change {}", self.named()), found.fixed.join(", "))
            .hint("this cannot be changed on a machine that may hold a part of etcd: let the castle file say what is there; or `castle down`, then `castle up`")
    }

    /// Destroys a VM that is proven ours, with everything that bears its number.
    async fn remove(&self, cx: &Context, client: &Proxmox, config: &Config) -> Result<(), Failure> {
        let removal = Removal {
            client,
            node: self.host(),
            vmid: self.node.vmid,
            kind: GuestKind::Vm,
            named: self.named(),
        };
        let still = || -> BoxFuture<'_, Result<bool, Failure>> {
            Box::pin(async {
                match self.look(cx, client, None).await? {
                    Seen::Nothing => Ok(false),
                    Seen::HalfMade(why) => Err(self.half_made("remove", &why)),
                    Seen::Foreign(whose)
                    | Seen::Doubtful(whose)
                    | Seen::Abandoned(whose)
                    | Seen::Unmarked(_, _, whose) => Err(self.foreign("remove", &whose)),
                    Seen::Ours(..) | Seen::InTheMaking => Ok(true),
                }
            })
        };
        removal.carry_out(cx, config, &still).await
    }

    /// What [`Bug::NeighbourStopped`] does.
    async fn stop_the_range(&self, cx: &Context, client: &Proxmox) -> Result<(), Failure> {
        let (first, last) = self.site.spec.platform.vmids;
        let guests = client.guests().await.map_err(self.failed("look beside"))?;
        let beside = guests.iter().filter(|guest| (first..=last).contains(&guest.vmid));
        for guest in beside.filter(|guest| guest.kind == GuestKind::Vm) {
            let stopping = client.stop(self.host(), guest.vmid).await;
            let stopping = stopping.map_err(self.failed("stop what is beside"))?;
            task::follow(cx, client, &stopping, "stop a neighbour").await?;
        }
        Ok(())
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

/// What its gate proves.
pub(super) const PROVES: &str = "the VM is running, as the castle file wants it";

#[async_trait]
impl Step for Vm {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.site.client(cx)?;
        let life = cx.outputs().get(&LIFE)?;
        self.refuse_busy(cx, &client).await?;
        let (mark, config) = match self.look(cx, &client, Some(&life.incarnation)).await? {
            Seen::Nothing => {
                self.check_quorum(cx, &life).await?;
                return Ok(Observed::Absent);
            }
            Seen::Unmarked(_, _, why) => {
                return Ok(Observed::wrong(format!(
                    "{why}, but number and UUID prove it ours: the mark is put back"
                )));
            }
            Seen::InTheMaking if cx.unfinished_task().is_some() => {
                return Ok(Observed::wrong("an earlier run has begun to make it"));
            }
            Seen::InTheMaking => return Err(self.in_the_making(&client).await),
            Seen::HalfMade(why) => return Err(self.half_made("make", &why)),
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
        let status = self.status(&client).await?;
        let running = status.is_running();
        if !found.is_empty() {
            let later = if running && found.needs_power_cycle() {
                ", in force when it is next switched off and on"
            } else {
                ""
            };
            return Ok(Observed::wrong(format!("{}{later}", found.words())));
        }
        if !running {
            return Ok(Observed::wrong("it is switched off -> switched on"));
        }
        // It runs, and may have been told to stop by a way down that was killed.
        if cx.unfinished_task().is_some()
            && let Some(task) = task::at_work(&client, self.host(), self.node.vmid).await?
        {
            let why = format!("Proxmox' task {} of an earlier run is at work on it", task.kind());
            return Ok(Observed::wrong(why));
        }
        if let Some(still) = self.still_runs_with(&status) {
            cx.notice(still);
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
        if let Seen::Unmarked(mark, config, _) = &seen {
            let settings = restored(mark, config);
            let set = client.set_config(self.host(), self.node.vmid, &settings).await;
            set.map_err(self.failed("mark"))?;
            seen = self.look_settled(cx, &client).await?;
        }
        let config = match seen {
            Seen::Ours(mark, config)
                if mark.incarnation == cx.outputs().get(&LIFE)?.incarnation
                    || planted(Bug::OwnershipUnchecked) =>
            {
                config
            }
            Seen::Ours(mark, _) => {
                let whose = format!("another life of this castle, {}", mark.incarnation);
                return Err(self.foreign("make", &whose));
            }
            Seen::HalfMade(why) => return Err(self.half_made("make", &why)),
            Seen::Foreign(whose)
            | Seen::Doubtful(whose)
            | Seen::Abandoned(whose)
            | Seen::Unmarked(_, _, whose) => {
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
        match self.look(cx, &client, None).await? {
            Seen::Doubtful(why) | Seen::Unmarked(_, _, why) => {
                Ok(Some(format!("{}, which can not be proven ours: {why}", self.named())))
            }
            Seen::HalfMade(why) => Ok(Some(format!("{}, {why}", self.named()))),
            // What is not ours is not our leftover.
            Seen::Nothing | Seen::Foreign(_) | Seen::Abandoned(_) => Ok(None),
            Seen::InTheMaking if cx.unfinished_task().is_some() => {
                Ok(Some(format!("{}, half made", self.named())))
            }
            Seen::InTheMaking => Err(self.in_the_making(&client).await),
            Seen::Ours(_, config) if config.get("protection") == Some("1") => {
                Ok(Some(format!("{}, which is protected in Proxmox: it will not go", self.named())))
            }
            Seen::Ours(..) => Ok(Some(self.named())),
        }
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let client = self.site.client(cx)?;
        if planted(Bug::NeighbourStopped) {
            self.stop_the_range(cx, &client).await?;
        }
        match self.look_settled(cx, &client).await? {
            Seen::Nothing => Ok(()),
            Seen::Ours(_, config) => self.remove(cx, &client, &config).await,
            Seen::HalfMade(why) => Err(self.half_made("remove", &why)),
            Seen::Foreign(whose)
            | Seen::Doubtful(whose)
            | Seen::Abandoned(whose)
            | Seen::Unmarked(_, _, whose) => Err(self.foreign("remove", &whose)),
            Seen::InTheMaking => {
                let what = format!("remove {}", self.named());
                Err(Failure::new(Class::Transient, what, "a task is still making it"))
            }
        }
    }
}
