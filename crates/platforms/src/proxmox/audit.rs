//! What is there of a castle on Proxmox: guests, disks, images, tasks, and whoever answers at its addresses.

use std::future::Future;
use std::net::Ipv4Addr;

use castle_model::audit::{Item, Kind, Standing};
use castle_model::{Failure, NodeName, VmId};
use castle_proxmox::{GuestKind, NodeEntry, Proxmox, Upid};
use futures::future::{join, join_all, join3};

use super::census::{Census, Met, Whose, is_declared, is_near};
use super::disks::{Disk, Users, bearing, users};
use super::half_made;
use super::preflight::ghosts::{KUBERNETES, TALOS, who_answers};
use super::wanted::Wanted;
use super::{enter, image};
use crate::audit::{Auditor, patiently, seen};

/// How the files are named that castles make disks from.
const IMAGE: (&str, &str) = ("talos-", ".qcow2");

/// Looks at everything.
pub(crate) async fn look(auditor: &Auditor<'_>, spec: &Wanted) -> Vec<Item> {
    let mut items = Vec::new();
    let endpoint = &spec.platform.endpoint;
    let client = match enter(auditor.world, &spec.platform, auditor.secrets) {
        Ok(client) => client,
        Err(failure) => {
            let why = failure.to_string();
            items.push(Item::new(Standing::Unseen, Kind::Guest, "every guest", endpoint, why));
            return items;
        }
    };
    let part = (Kind::Guest, "every guest", endpoint.as_str());
    let census = match patiently(part.1, |_| (), || Census::take(&client, spec)).await {
        Ok(census) => Some(census),
        // One guest that can not be looked at leaves nobody blind for the others.
        Err(_) => seen(part, || Census::take_what_answers(&client, spec), &mut items).await,
    };
    let part = (Kind::Guest, "the nodes of the cluster", endpoint.as_str());
    let nodes = seen(part, || nodes_of(&client), &mut items).await;
    let (Some(census), Some(nodes)) = (census, nodes) else { return items };
    let (nodes, silent): (Vec<NodeEntry>, Vec<NodeEntry>) =
        nodes.into_iter().partition(|node| node.status == "online");
    items.extend(silent.iter().map(unseen));
    let here = Look { auditor, spec, client: &client, census: &census };
    items.extend(here.guests());
    // Side by side, so that it takes no longer than the silence of an address.
    let storage = spec.platform.image_storage.as_str();
    let (by_node, images, addresses) = join3(
        join_all(nodes.iter().map(|node| here.on(&node.node))),
        portion((Kind::Image, "the images", storage), || here.images()),
        here.addresses(),
    )
    .await;
    items.extend(by_node.into_iter().flatten());
    items.extend(images);
    items.extend(addresses);
    items
}

/// One part of the look; what can not be looked at is a thing, too.
async fn portion<F, Fut>(named: (Kind, &str, &str), look: F) -> Vec<Item>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<Vec<Item>, Failure>> + Send,
{
    let mut items = Vec::new();
    let found = seen(named, look, &mut items).await;
    items.extend(found.unwrap_or_default());
    items
}

/// The nodes of the cluster.
async fn nodes_of(client: &Proxmox) -> Result<Vec<NodeEntry>, Failure> {
    client.nodes().await.map_err(|error| error.failure("list the nodes"))
}

/// A node that can not be asked: disks and tasks of the castle may be there.
fn unseen(node: &NodeEntry) -> Item {
    let why = format!("the node is {}: its disks and tasks can not be looked at", node.status);
    Item::new(Standing::Unseen, Kind::Disk, "the disks and tasks", &node.node, why)
        .advice("bring the node back, then run `castle audit`; if it has left the cluster for good: pvecm delnode")
}

struct Look<'a> {
    auditor: &'a Auditor<'a>,
    spec: &'a Wanted,
    client: &'a Proxmox,
    census: &'a Census,
}

impl Look<'_> {
    fn guests(&self) -> Vec<Item> {
        let mut items: Vec<Item> = self.census.met.iter().map(|met| self.guest(met)).collect();
        if self.census.short_sighted {
            items.push(Item::new(
                Standing::Others,
                Kind::Guest,
                "guests that the token does not see",
                &self.spec.platform.endpoint,
                "the token sees the declared VMs alone: others are not in this list",
            ));
        }
        items
    }

    fn guest(&self, met: &Met) -> Item {
        let vmid = met.guest.vmid;
        let item = |standing| {
            Item::new(standing, Kind::Guest, met.named(), &met.guest.node, met.whose_words())
        };
        let lift = match (met.config.get("protection"), met.guest.kind) {
            (Some("1"), GuestKind::Vm) => {
                format!(", once its protection is lifted (qm set {vmid} --protection 0)")
            }
            _ => String::new(),
        };
        match &met.whose {
            Whose::Ours(mark) if self.is_at_home(met, &mark.node) => {
                item(self.auditor.ours()).advice(format!("`castle down` removes it{lift}"))
            }
            Whose::Ours(_) if met.guest.node != self.spec.platform.node => {
                item(Standing::Left).advice(format!(
                    "it stands on another node than the castle file says: bring it back, or `castle wipe` removes it{lift}"
                ))
            }
            Whose::Ours(_) => item(Standing::Left).advice(format!(
                "the castle file does not name it: `castle down` removes it{lift}"
            )),
            Whose::Doubtful { near: true, .. } => {
                item(Standing::Left).advice(format!(
                    "nothing proves it ours, so castle leaves it: look at it; `castle wipe --force-foreign {vmid}` removes it"
                ))
            }
            Whose::HalfMade(_) => item(Standing::Left).advice(half_made::cure(vmid)),
            Whose::InTheMaking => {
                item(self.auditor.ours()).advice("wait for the end of its task, and look again")
            }
            Whose::Unseen { maybe: true, .. } => item(Standing::Unseen)
                .advice("bring its node back, then run `castle audit`"),
            Whose::Doubtful { near: false, .. }
            | Whose::Castle(_)
            | Whose::Somebody(_)
            | Whose::Unseen { maybe: false, .. } => item(Standing::Others),
        }
    }

    /// Whether a VM of ours stands where the castle file wants it.
    fn is_at_home(&self, met: &Met, name: &NodeName) -> bool {
        let wanted = |vmid: VmId| self.spec.nodes.iter().find(|node| node.vmid == vmid);
        met.guest.node == self.spec.platform.node
            && wanted(met.guest.vmid).is_some_and(|node| node.name == *name)
    }

    /// What a node has of disks and tasks.
    async fn on(&self, node: &str) -> Vec<Item> {
        let disks = portion((Kind::Disk, "the disks", node), || self.disks(node));
        let tasks = portion((Kind::Task, "the tasks", node), || self.tasks(node));
        let (mut items, tasks) = join(disks, tasks).await;
        items.extend(tasks);
        items
    }

    /// Disks that bear a number of ours and that no configuration of ours names.
    async fn disks(&self, node: &str) -> Result<Vec<Item>, Failure> {
        let near =
            |vmid| is_near(self.spec, vmid) || self.census.at(vmid).is_some_and(Met::is_ours);
        let mut loose: Vec<Disk> = bearing(self.client, node, near).await?;
        loose.retain(|disk| match self.census.at(disk.vmid) {
            // What bears the number of somebody's guest is that guest's.
            Some(met) if !met.is_ours() => false,
            Some(met) => !met.config.volumes().into_values().any(|volid| volid == disk.volid),
            None => true,
        });
        let volids: Vec<String> = loose.iter().map(|disk| disk.volid.clone()).collect();
        let users = users(self.client, &volids).await?;
        Ok(loose.iter().map(|disk| self.disk(disk, &users)).collect())
    }

    fn disk(&self, disk: &Disk, users: &Users) -> Item {
        let Disk { vmid, volid, size, node } = disk;
        let what = format!("{volid} ({} MiB)", size >> 20);
        let place = node.clone().unwrap_or_else(|| "every node".to_owned());
        let item = |standing, whose: String| Item::new(standing, Kind::Disk, &what, &place, whose);
        if let Some((_, user)) = users.had.iter().find(|(had, _)| had == volid) {
            return item(
                Standing::Others,
                format!("it bears the number {vmid}, and guest {user} has it"),
            );
        }
        let bears = match self.spec.nodes.iter().find(|node| node.vmid == *vmid) {
            Some(node) => format!("it bears the number of {}", node.name),
            None => "it bears a number of this castle's range".to_owned(),
        };
        if users.unseen && node.is_none() {
            let whose = format!("{bears}, and a guest on a node that is off may have it");
            return item(Standing::Unseen, whose)
                .advice("bring the node back, then run `castle audit`");
        }
        item(Standing::Left, format!("{bears}, and no guest has it"))
            .advice(format!("if nobody needs it, on the host: pvesm free {volid}"))
    }

    /// Files that castles make disks from.
    async fn images(&self) -> Result<Vec<Item>, Failure> {
        let platform = &self.spec.platform;
        let storage = &platform.image_storage;
        let own = image::volume(self.spec)?;
        let files = self.client.content(&platform.node, storage, Some("import")).await;
        let files =
            files.map_err(|error| error.failure(format!("list the images on {storage}")))?;
        let is_image = |volid: &str| {
            let name = volid.rsplit('/').next().unwrap_or_default();
            name.starts_with(IMAGE.0) && name.ends_with(IMAGE.1)
        };
        let found = files.into_iter().filter(|file| is_image(&file.volid));
        Ok(found.map(|file| self.image(&file.volid, file.volid == own)).collect())
    }

    fn image(&self, volid: &str, own: bool) -> Item {
        let neighbours = self.census.neighbours.join(", ");
        let item = |standing, whose: String| {
            Item::new(standing, Kind::Image, volid, &self.spec.platform.node, whose)
        };
        match (own, self.auditor.gone, neighbours.is_empty()) {
            (false, ..) => item(
                Standing::Others,
                "an image of another version or castle; which one fetched it, nobody can tell"
                    .to_owned(),
            )
            .advice(format!("if no castle needs it, on the host: pvesm free {volid}")),
            (true, true, true) => item(Standing::Left, "fetched for this castle".to_owned())
                .advice("`castle down` removes it"),
            (true, true, false) => {
                item(Standing::Kept, format!("shared with other castles ({neighbours})"))
            }
            (true, false, _) => {
                item(Standing::Expected, "this castle's machines are made from it".to_owned())
            }
        }
    }

    /// Work on our numbers or our image that goes on.
    async fn tasks(&self, node: &str) -> Result<Vec<Item>, Failure> {
        let running = self.client.running_tasks(node).await;
        let running =
            running.map_err(|error| error.failure(format!("list the tasks of {node}")))?;
        let volume = image::volume(self.spec)?;
        let file = volume.rsplit('/').next().unwrap_or_default();
        let ours = |task: &Upid| match task.object().parse().map(VmId) {
            Ok(vmid) => match self.census.at(vmid) {
                Some(met) => met.is_ours() || met.whose == Whose::InTheMaking,
                None => is_declared(self.spec, vmid),
            },
            Err(_) => task.object() == file,
        };
        let shown = |task: Upid| {
            let what = format!("{} of {}", task.kind(), task.object());
            Item::new(self.auditor.ours(), Kind::Task, what, task.node(), task.to_string())
                .advice("wait for its end, and look again")
        };
        Ok(running.into_iter().filter(ours).map(shown).collect())
    }

    /// Whoever answers at an address where no machine of ours can.
    async fn addresses(&self) -> Vec<Item> {
        let here = |vmid: VmId| self.census.at(vmid).is_some_and(Met::is_ours);
        let nodes = self.spec.nodes.iter().filter(|node| !here(node.vmid));
        let mut asked: Vec<(String, Ipv4Addr)> =
            nodes.map(|node| (format!("address of {}", node.name), node.address)).collect();
        if !self.census.met.iter().any(Met::is_ours) {
            asked.push(("the VIP".to_owned(), self.spec.network.vip));
        }
        let access = self.auditor.access();
        let world = self.auditor.world;
        let looks = asked.into_iter().map(|(what, address)| {
            let access = access.as_ref();
            async move {
                let talos = who_answers(world, address, TALOS, access);
                let (talos, kubernetes) =
                    join(talos, who_answers(world, address, KUBERNETES, None)).await;
                let answer = talos.or(kubernetes)?;
                let (standing, whose) = if answer.ours {
                    (Standing::Left, answer.words)
                } else {
                    let words = answer.words;
                    (Standing::Others, format!("it answers still: {words}; nothing proves it ours"))
                };
                Some(
                    Item::new(standing, Kind::Address, what, address.to_string(), whose)
                        .advice("nothing of ours runs there: find out which machine it is"),
                )
            }
        });
        join_all(looks).await.into_iter().flatten().collect()
    }
}
