//! What goes wrong with machines because somebody says so, such as a test.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::life::STALE;
use super::machine::{Api, Machine, Troubles};
use super::{Call, Talos};
use crate::turn::{Turn, VmFacts};

/// The numbers of machines that belong to somebody else begin here: no VM has so high a one.
const FOREIGN: u32 = 2_000_000_000;

/// Something that goes wrong with a machine. A machine is named by the number of its VM, or by its place in the
/// castle file (from 1 on) if it stands already; it need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TalosTrouble {
    /// It never answers, from its next boot on; one that runs falls silent.
    Dead(u32),
    /// It is mended and has power again.
    Revived(u32),
    /// It starts again at once, without a goodbye.
    Reboots(u32),
    /// It has another address than it was given, until it is configured.
    WrongAddress(u32, Ipv4Addr),
    /// Its clock is not in sync (or is again, and right).
    ClockAstray(u32, bool),
    /// Its clock is not in sync and ahead by this many seconds; below zero, behind.
    ClockOff(u32, i64),
    /// Its API server does not run (or does again), while everything else on it does.
    ApiServerDown(u32, bool),
    /// Its disk holds the data of an etcd that is long gone: the disk it has, else the next one.
    StaleEtcd(u32),
    /// The next bootstrap works, but the connection breaks before the answer.
    BootstrapReplyLost(u32),
    /// The registry refuses it the kubelet's image, from its next boot on.
    PullsLimited(u32),
    /// The shared address takes connections and says nothing (or speaks again).
    MuteVip(bool),
    /// Somebody else's machine, of another cluster, answers at an address.
    Foreign(Ipv4Addr),
    /// That machine is gone.
    ForeignGone(Ipv4Addr),
    /// Somebody puts its member out of etcd.
    EtcdRemoved(u32),
    /// The shared address goes over to another control plane.
    VipMoves,
    /// Its data disk is not seen any more (or is again); the kubelet notices at its next start.
    DataDiskGone(u32, bool),
    /// Its disk takes no STATE partition (or does again): a config is accepted, and maintenance mode goes on.
    Unwritable(u32, bool),
    /// Somebody else calls bootstrap on it: now, or as soon as it can be asked for that.
    Usurped(u32),
    /// An extension is not in the image that it runs, whatever was asked of the factory.
    ExtensionMissing(u32, String),
    /// The discovery service still tells of an earlier self of it, which was at this address: the cluster's secrets
    /// were used before.
    Ghost(u32, Ipv4Addr),
}

impl Talos {
    /// Lets something go wrong.
    pub fn suffer(&mut self, turn: &mut Turn<'_>, trouble: &TalosTrouble) {
        match trouble {
            TalosTrouble::Dead(vmid) => {
                self.mark(*vmid, |troubles| troubles.dead = true);
                self.switch_off(turn, *vmid);
            }
            TalosTrouble::Revived(vmid) => {
                // One that is only switched off has nothing to be mended, and no power.
                let dead = self.machines.get(vmid).is_some_and(|machine| machine.troubles.dead);
                self.mark(*vmid, |troubles| troubles.dead = false);
                if dead && self.machines.get(vmid).is_some_and(|machine| !machine.up) {
                    self.boot(turn, *vmid);
                }
            }
            TalosTrouble::Reboots(vmid) => self.crash(turn, *vmid),
            TalosTrouble::WrongAddress(vmid, address) => {
                self.mark(*vmid, |troubles| troubles.address = Some(*address));
                self.cut(*vmid);
            }
            TalosTrouble::ClockAstray(vmid, astray) => {
                self.mark(*vmid, |troubles| troubles.clock_astray = *astray);
                if !astray {
                    self.set_clock(turn, *vmid);
                }
            }
            TalosTrouble::ClockOff(vmid, seconds) => {
                self.mark(*vmid, |troubles| {
                    troubles.clock_astray = true;
                    troubles.clock_off = *seconds;
                });
                self.cut(*vmid);
            }
            TalosTrouble::ApiServerDown(vmid, down) => {
                self.mark(*vmid, |troubles| troubles.api_server_down = *down);
                self.cut(*vmid);
                self.register(turn);
            }
            TalosTrouble::StaleEtcd(vmid) => match self.machines.get_mut(vmid) {
                Some(machine) if !machine.running.etcd => machine.disk.etcd = Some(STALE),
                _ => self.mark(*vmid, |troubles| troubles.stale = true),
            },
            TalosTrouble::BootstrapReplyLost(vmid) => {
                self.mark(*vmid, |troubles| troubles.reply_lost = true);
            }
            TalosTrouble::PullsLimited(vmid) => {
                self.mark(*vmid, |troubles| troubles.pulls_limited = true);
            }
            TalosTrouble::MuteVip(mute) => self.mute_vip = *mute,
            TalosTrouble::Foreign(address) => self.stranger(*address),
            TalosTrouble::ForeignGone(address) => {
                self.machines.remove(&stranger_at(*address));
            }
            TalosTrouble::EtcdRemoved(vmid) => self.put_out(turn, *vmid),
            TalosTrouble::VipMoves => self.move_vip(),
            TalosTrouble::DataDiskGone(vmid, gone) => {
                self.mark(*vmid, |troubles| troubles.data_disk_gone = *gone);
                self.tell_data_disk(turn, *vmid, !gone);
            }
            TalosTrouble::Unwritable(vmid, unwritable) => {
                self.mark(*vmid, |troubles| troubles.unwritable = *unwritable);
            }
            TalosTrouble::Usurped(vmid) => {
                self.mark(*vmid, |troubles| troubles.usurped = true);
                self.usurp(turn, *vmid);
            }
            TalosTrouble::ExtensionMissing(vmid, name) => {
                self.mark(*vmid, |troubles| troubles.without = Some(name.clone()));
            }
            TalosTrouble::Ghost(vmid, address) => {
                self.mark(*vmid, |troubles| troubles.ghost = Some(*address));
            }
        }
        self.note(turn);
    }

    /// Remembers a trouble for the machine that is there, and for the next one of its number.
    fn mark(&mut self, vmid: u32, set: impl Fn(&mut Troubles)) {
        set(self.troubles.entry(vmid).or_default());
        self.troubles.retain(|_, troubles| *troubles != Troubles::default());
        if let Some(machine) = self.machines.get_mut(&vmid) {
            set(&mut machine.troubles);
        }
    }

    /// Somebody else bootstraps a machine, if that is what he waits for and it can be asked. If it refuses for good,
    /// nothing has happened.
    pub(super) fn usurp(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let asked = |machine: &Machine| machine.troubles.usurped && machine.running.runtime;
        if self.machines.get(&vmid).is_some_and(asked) {
            self.mark(vmid, |troubles| troubles.usurped = false);
            drop(self.write(turn, vmid, Call::Bootstrap));
        }
    }

    /// A machine is gone with its disks: what was wrong with its body was wrong with it alone.
    pub(super) fn bury(&mut self, vmid: u32) {
        self.mark(vmid, |troubles| {
            troubles.dead = false;
            troubles.data_disk_gone = false;
            troubles.unwritable = false;
        });
    }

    /// A machine has found the right time: it makes its certificates anew, and goes on with what waited for that.
    fn set_clock(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        self.mark(vmid, |troubles| troubles.clock_off = 0);
        self.cut(vmid);
        let waits = |machine: &Machine| {
            machine.running.runtime && !machine.running.etcd_image && !machine.running.kubelet
        };
        if self.machines.get(&vmid).is_some_and(waits) {
            self.pull(turn, vmid);
        }
        self.entrust(turn, vmid);
    }

    fn cut(&mut self, vmid: u32) {
        if let Some(machine) = self.machines.get_mut(&vmid) {
            machine.generation += 1;
        }
    }

    fn stranger(&mut self, address: Ipv4Addr) {
        let vmid = stranger_at(address);
        let facts = VmFacts {
            vmid,
            name: "stranger".to_owned(),
            uuid: format!("00000000-0000-4000-9000-{vmid:012}"),
            address: Some(address),
            disk: "elsewhere".to_owned(),
            image: None,
            disk_gib: 40,
            data_disk_gib: None,
            memory_mib: 8192,
            cores: 4,
            extensions: Vec::new(),
        };
        let troubles = Troubles { foreign: true, ..Troubles::default() };
        let mut machine = Machine::new(&facts, troubles);
        machine.on = true;
        machine.up = true;
        machine.api = Api::Secure;
        self.machines.insert(vmid, machine);
    }
}

/// The number of somebody else's machine at an address.
fn stranger_at(address: Ipv4Addr) -> u32 {
    FOREIGN + u32::from(address) % 1_000_000
}
