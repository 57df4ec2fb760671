//! What the API of a machine answers, in the codes and words that Talos 1.13 was heard to use.

use tonic::Code;

use super::call::{About, Call, Refusal, Reply};
use super::machine::{Api, Machine, Sequence};
use super::{Milestone, Talos, authority};
use crate::durations::Process;
use crate::turn::Turn;

/// What the API says while what is behind it is gone already.
const DEAF: &str = "connection error: desc = \"transport: Error while dialing: dial unix /system/run/machined/machine.sock: connect: no such file or directory\"";

/// The one service that is restarted by a call.
const KUBELET: &str = "kubelet";

/// How long the kubelet takes to start again where its image is there, in milliseconds.
const KUBELET_RESTART: u64 = 1_500;

/// Where etcd keeps its data.
const ETCD_DATA: &str = "/var/lib/etcd";

impl Talos {
    /// Carries out what changes something.
    pub(super) fn write(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        call: Call,
    ) -> Result<Reply, Refusal> {
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        match call {
            Call::Bootstrap => self.bootstrap(turn, vmid),
            Call::EtcdRemove { member } => {
                only_on_control_planes(machine, "etcd remove member")?;
                self.remove_member(turn, vmid, member).map(|()| Reply::Done)
            }
            Call::EtcdLeave => {
                only_on_control_planes(machine, "etcd leave")?;
                self.leave(turn, vmid).map(|()| Reply::Done)
            }
            Call::EtcdForfeit => {
                only_on_control_planes(machine, "etcd forfeit leadership")?;
                self.forfeit(vmid).map(Reply::Name)
            }
            Call::ServiceRestart { id } => self.restart(turn, vmid, &id),
            Call::Reboot => self.end(turn, vmid, Sequence::Reboot),
            Call::Shutdown => self.end(turn, vmid, Sequence::Shutdown),
            Call::Reset(wish) => self.end(turn, vmid, Sequence::Reset(wish)),
            other => self.apply(turn, vmid, &other),
        }
    }

    /// Starts a new etcd. Like the real one it looks at its own disk alone: a second one elsewhere is possible.
    fn bootstrap(&mut self, turn: &mut Turn<'_>, vmid: u32) -> Result<Reply, Refusal> {
        let machine = self.machines.get_mut(&vmid).ok_or_else(Refusal::gone)?;
        if !machine.running.runtime || machine.ending.is_some() {
            return Err(Refusal::new(Code::FailedPrecondition, "bootstrap is not available yet"));
        }
        only_on_control_planes(machine, "bootstrap")?;
        if machine.troubles.clock_astray {
            return Err(Refusal::new(Code::FailedPrecondition, "time is not in sync yet"));
        }
        if machine.disk.etcd.is_some() {
            return Err(Refusal::new(Code::AlreadyExists, "etcd data directory is not empty"));
        }
        if !machine.running.bootstrap {
            machine.running.bootstrap = true;
            if std::mem::take(&mut machine.troubles.reply_lost) {
                // All connections break before the answer has left.
                machine.generation += 1;
            }
            self.start_etcd(turn, vmid);
        }
        Ok(Reply::Done)
    }

    /// Stops the kubelet and starts it again: it registers its node as if the machine had just booted.
    fn restart(&mut self, turn: &mut Turn<'_>, vmid: u32, id: &str) -> Result<Reply, Refusal> {
        let machine = self.machines.get_mut(&vmid).ok_or_else(Refusal::gone)?;
        if !machine.noted.services.contains_key(id) {
            return Err(Refusal::new(Code::Unknown, format!("service {id:?} not defined")));
        }
        if id != KUBELET {
            let why = format!("the rehearsal restarts the kubelet alone, not {id}");
            return Err(Refusal::new(Code::Unimplemented, why));
        }
        let running = &mut machine.running;
        (running.kubelet, running.kubelet_failed, running.registering) = (false, false, false);
        if machine.troubles.pulls_limited {
            self.later(turn, vmid, Process::KubeletGivesUp, Milestone::KubeletFailed);
        } else {
            self.after(turn, vmid, KUBELET_RESTART, Milestone::Kubelet);
        }
        Ok(Reply::Done)
    }

    /// Answers what changes nothing.
    pub(super) fn read(&self, vmid: u32, call: &Call) -> Result<Reply, Refusal> {
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        match call {
            Call::About => Ok(Reply::About(about(machine))),
            Call::EtcdMembers => self.members(machine),
            Call::EtcdStatus => self.etcd_status(vmid, machine),
            Call::Services => {
                Ok(Reply::Services(machine.noted.services.values().cloned().collect()))
            }
            Call::Resources { namespace, kind, admin } => {
                self.resources(vmid, namespace, kind, *admin).map(Reply::Resources)
            }
            Call::Kubeconfig => kubeconfig(machine),
            Call::Files { root } => files(machine, root),
            Call::Events { after } => {
                let later = machine.noted.happenings.iter().filter(|h| h.number > *after);
                Ok(Reply::Events(later.cloned().collect()))
            }
            Call::Route { target } => self.route(vmid, machine, target),
            Call::Health { control_planes, workers } => {
                only_on_control_planes(machine, "cluster health check")?;
                let named = !control_planes.is_empty() || !workers.is_empty();
                let (control_planes, workers) = if named {
                    (control_planes.clone(), workers.clone())
                } else {
                    self.discovered(machine.cluster().unwrap_or_default())
                };
                let checks = self.health(&control_planes, &workers);
                let nodes = control_planes.into_iter().chain(workers).collect();
                Ok(Reply::Health { nodes, checks })
            }
            _ => Err(Refusal::gone()),
        }
    }

    /// Whether the API can put a call through to what is behind it.
    pub(super) fn hears(&self, vmid: u32) -> Result<(), Refusal> {
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        if machine.deaf() {
            return Err(Refusal::new(Code::Unavailable, DEAF));
        }
        Ok(())
    }

    fn members(&self, machine: &Machine) -> Result<Reply, Refusal> {
        only_on_control_planes(machine, "member list")?;
        let (number, own) = running_member(machine)?;
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        if etcd.members.values().any(|member| member.id == own && member.learner) {
            let text = "etcdserver: rpc not supported for learner";
            return Err(Refusal::new(Code::Unavailable, text));
        }
        if !self.healthy(number) {
            return Err(Refusal::Waits);
        }
        Ok(Reply::Members(etcd.members.values().cloned().collect()))
    }

    fn etcd_status(&self, vmid: u32, machine: &Machine) -> Result<Reply, Refusal> {
        only_on_control_planes(machine, "etcd status")?;
        let (number, member) = running_member(machine)?;
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        let leader = self.leader(number).map_or(0, |(_, member)| member.id);
        let learner = etcd.members.get(&vmid).is_some_and(|member| member.learner);
        Ok(Reply::Status { member, leader, learner })
    }

    /// Which machine a name or an address belongs to, as the director of a machine sees it.
    fn route(&self, vmid: u32, machine: &Machine, target: &str) -> Result<Reply, Refusal> {
        let local = |machine: &Machine| {
            let address = machine.address().map(|address| address.to_string());
            address.as_deref() == Some(target) || machine.hostname() == target
        };
        let shared = self.held_vip(vmid).map(|address| address.to_string());
        if local(machine) || shared.as_deref() == Some(target) {
            return Ok(Reply::Route { to: None, forwards: machine.is_control_plane() });
        }
        if !machine.is_control_plane() {
            // Only control planes have a certificate to call others with.
            return Err(Refusal::new(Code::PermissionDenied, "no request forwarding"));
        }
        let own = machine.config().map(|config| &config.os.certificate);
        let reached = |(other, there): &(&u32, &Machine)| {
            let shared = self.held_vip(**other).map(|address| address.to_string());
            there.up && (local(there) || shared.as_deref() == Some(target))
        };
        let cause = match self.machines.iter().find(reached) {
            None => "no route to host",
            Some((_, there)) if there.api == Api::Down => "connection refused",
            Some((other, there)) => {
                let theirs = there.config().map(|config| &config.os.certificate);
                if theirs == own && there.api == Api::Secure {
                    return Ok(Reply::Route { to: Some(*other), forwards: true });
                }
                let text = "connection error: desc = \"transport: authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority\"";
                return Err(Refusal::new(Code::Unavailable, text));
            }
        };
        Err(Refusal::new(
            Code::Unavailable,
            format!(
                "connection error: desc = \"transport: Error while dialing: dial tcp {target}:50000: connect: {cause}\""
            ),
        ))
    }
}

pub(super) fn only_on_control_planes(machine: &Machine, what: &str) -> Result<(), Refusal> {
    if machine.is_control_plane() && machine.api == Api::Secure {
        return Ok(());
    }
    let text = format!("{what} is only available on control plane nodes");
    Err(Refusal::new(Code::Unimplemented, text))
}

/// Of which etcd a machine's own member runs; before that Talos says nothing at all.
fn running_member(machine: &Machine) -> Result<(u64, u64), Refusal> {
    machine.disk.etcd.filter(|_| machine.runs_etcd()).ok_or(Refusal::Waits)
}

fn about(machine: &Machine) -> About {
    let mut disks = vec![("sda", machine.facts.disk_gib)];
    disks.extend(machine.data_disk().map(|size| ("sdb", size)));
    About {
        version: machine.version(),
        hostname: machine.hostname().to_owned(),
        memory_mib: machine.facts.memory_mib,
        booted: machine.booted,
        boot_id: machine.boot_id(),
        disks,
        configured: machine.api == Api::Secure,
    }
}

/// The few folders that somebody asks for.
fn files(machine: &Machine, root: &str) -> Result<Reply, Refusal> {
    match root {
        "" | "/" => Ok(Reply::Files(["etc", "system", "usr", "var"].map(str::to_owned).to_vec())),
        ETCD_DATA if machine.disk.etcd.is_some() => Ok(Reply::Files(vec!["member".to_owned()])),
        ETCD_DATA if machine.is_control_plane() => Ok(Reply::Files(Vec::new())),
        other => {
            Err(Refusal::new(Code::Unknown, format!("lstat {other}: no such file or directory")))
        }
    }
}

/// It needs the authority alone: it comes before etcd does.
fn kubeconfig(machine: &Machine) -> Result<Reply, Refusal> {
    only_on_control_planes(machine, "kubeconfig")?;
    let config = machine.config().ok_or_else(Refusal::gone)?;
    Ok(Reply::Kubeconfig {
        cluster: machine.wanted.cluster_name.clone(),
        server: machine.wanted.endpoint.clone(),
        authority: authority(&config.kubernetes),
    })
}
