//! `platform/config/<node>`: the machine has its config and answers as a member of our cluster.
//!
//! A machine in maintenance mode gets its first config. One that has a config gets another only if nothing in it
//! needs a new birth, an upgrade or a restart.

use async_trait::async_trait;
use castle_engine::{Acted, Context, Key, Pace, Step};
use castle_model::spec::{NodeSpec, Role, SecretRef};
use castle_model::{Bug, Change, Class, Failure, Observed, Verb, Verdict, planted};
use castle_talos::{MachineConfig, Presence, Talos, machine_config};

use super::Realm;
use super::difference::{Differences, differences};
use super::evidence::Gate;
use crate::cluster::few;
use crate::escrow::{BUNDLE_KEY, ESCROW};
use crate::handed::{LIFE, Life, SECRETS};
use crate::proxmox::image::schematic;

/// The journaled output that says which config the machine was given.
const GIVEN: &str = "config-digest";

/// How much of it is journaled: enough to tell two configs apart.
const DIGITS: usize = 16;

/// That this run has looked once more at what is kept, before its first config left.
const STILL_KEPT: Key<()> = Key::new("platform/still-kept");

/// The step of one node.
pub(super) struct Config {
    pub(super) realm: Realm,
    pub(super) node: NodeSpec,
}

impl Config {
    fn what(&self) -> String {
        format!("configure {} at {}", self.node.name, self.node.address)
    }

    fn failed(&self, error: &castle_talos::TalosError) -> Failure {
        error.failure(self.what())
    }

    fn not_ours(&self, why: &str) -> Failure {
        Failure::new(Class::Conflict, self.what(), "the machine there is not the one that we know")
            .evidence(why)
            .hint("nothing was sent, because the config holds the keys of the cluster; find out whose machine it is")
    }

    fn wanted(&self, cx: &Context) -> Result<MachineConfig, Failure> {
        let spec = self.realm.spec();
        let life = cx.outputs().get(&LIFE)?;
        let schematic = schematic(spec.platform.extensions())?;
        let values = cx.outputs().get(&SECRETS)?;
        let secrets = |key: &SecretRef| values.get(key).cloned();
        machine_config(spec, &self.node, &life.bundle, &schematic.id(), &secrets)
    }

    /// A short digest of the wanted config, to be journaled: while it stays, nobody has to be asked. It is keyed by the
    /// castle's life, so that nothing of the config can be found out by trial.
    fn digest(&self, cx: &Context) -> Result<String, Failure> {
        let key = cx.outputs().get(&LIFE)?.bundle.digest_key("machine config");
        let mut digest = key.of(self.wanted(cx)?.text.expose());
        digest.truncate(DIGITS);
        Ok(digest)
    }

    /// The Talos secrets of this run are still the ones that are kept. Two who begin a life at the same moment both see
    /// their own when they read it back, if the second writes late; the first would make a cluster that nobody can open
    /// again. The VMs took their time since, so that by now it is decided.
    async fn still_kept(&self, cx: &Context) -> Result<(), Failure> {
        if cx.outputs().get(&STILL_KEPT).is_ok() || planted(Bug::KeptTooLate) {
            return Ok(());
        }
        let (escrow, life) = (cx.outputs().get(&ESCROW)?, cx.outputs().get(&LIFE)?);
        let kept = escrow.0.kept_now().await?.remove(BUNDLE_KEY);
        let kept = kept.map(|text| Life::from_escrow(&self.realm.spec().name, &text));
        let why = match kept {
            Some(Ok(kept))
                if kept.incarnation == life.incarnation && kept.bundle == life.bundle =>
            {
                cx.outputs().put(&STILL_KEPT, ());
                return Ok(());
            }
            Some(Ok(kept)) if kept.incarnation != life.incarnation => {
                format!("it holds those of the life {} by now", kept.incarnation)
            }
            Some(Ok(_)) => "it holds other secrets of the same life by now".to_owned(),
            Some(Err(failure)) => failure.why,
            None => "it is gone".to_owned(),
        };
        let why = format!("{BUNDLE_KEY} was kept for the life {}: {why}", life.incarnation);
        Err(Failure::new(Class::Conflict, self.what(), why).evidence(escrow.0.place()).hint(
            "nothing was sent. Somebody else raises this castle too, or has changed the entry: let one of you finish, put the entry right or remove the machines of this life with `castle down`, then run `up` again",
        ))
    }

    /// Sends the first config, after a last look at whom it goes to.
    async fn send(&self, cx: &Context, talos: &Talos) -> Result<Acted, Failure> {
        self.still_kept(cx).await?;
        if let Err(why) = self.realm.is_our_machine(cx, &self.node, talos).await? {
            return Err(self.not_ours(&why));
        }
        let wanted = self.wanted(cx)?;
        for warning in &wanted.warnings {
            cx.notice(warning.clone());
        }
        let applied = talos.apply(&wanted.text).await.map_err(|error| self.failed(&error))?;
        if planted(Bug::KeptTooLate) {
            let (escrow, life) = (cx.outputs().get(&ESCROW)?, cx.outputs().get(&LIFE)?);
            let text = life.to_escrow(&self.realm.spec().name);
            escrow.keep(&life.incarnation, &[(BUNDLE_KEY, &text)]).await?;
        }
        for warning in &applied.warnings {
            cx.notice(format!("{} says: {warning}", self.node.name));
        }
        let mut acted = Acted::of(Change::Created)
            .with("applied", applied.details)
            .with(GIVEN, self.digest(cx)?);
        if let Some(print) = talos.console_fingerprint() {
            acted = acted.with("maintenance-fingerprint", print);
        }
        Ok(acted)
    }

    /// Sends another config to a machine that is in use, if it takes it as it runs.
    async fn change(&self, cx: &Context, talos: &Talos) -> Result<Acted, Failure> {
        // One machine at a time: should a change do harm, the others still stand.
        let _turn = self.realm.update.lock().await;
        if let Err(why) = self.realm.is_our_machine(cx, &self.node, talos).await? {
            return Err(self.not_ours(&why));
        }
        let found = self.compare(cx, talos).await?;
        if found.others.is_empty() {
            return Ok(Acted::of(Change::Unchanged).with(GIVEN, self.digest(cx)?));
        }
        let wanted = self.wanted(cx)?.text;
        let tried = talos.try_config(&wanted).await.map_err(|error| self.failed(&error))?;
        if tried.reboot {
            let why = format!("the change needs a restart ({})", few(&found.others));
            return Err(Failure::new(Class::Invalid, self.what(), why).evidence(tried.details).hint(
                "this version of castle restarts no machine that is in use: take the change back, or raze the castle and raise it again",
            ));
        }
        let applied = talos.apply(&wanted).await.map_err(|error| self.failed(&error))?;
        Ok(Acted::of(Change::Updated)
            .with("applied", applied.details)
            .with(GIVEN, self.digest(cx)?))
    }

    /// In what the machine's config differs from the wanted one. What needs a new birth is refused here.
    async fn compare(&self, cx: &Context, talos: &Talos) -> Result<Differences, Failure> {
        let Some(has) = talos.config().await.map_err(|error| self.failed(&error))? else {
            return Ok(Differences::default());
        };
        let found = differences(&has, &self.wanted(cx)?.text).map_err(|why| {
            Failure::new(Class::Invalid, format!("read the config of {}", self.node.name), why)
        })?;
        if found.birth.is_empty() {
            return Ok(found);
        }
        let why = format!("{} can be set at birth alone: it needs a rebirth", few(&found.birth));
        Err(Failure::new(Class::Conflict, self.what(), why).hint(
            "take the change in the castle file back, or raze the castle with `castle down` and raise it again",
        ))
    }

    /// What a config that differs means for a machine that is in use.
    async fn judged(
        &self,
        cx: &Context,
        talos: &Talos,
        evidence: String,
    ) -> Result<Observed, Failure> {
        let wanted = format!("v{}", self.realm.spec().talos);
        if let Some(runs) = self.realm.version_of(cx, &self.node).filter(|runs| *runs != wanted) {
            cx.notice(format!(
                "{} runs Talos {runs}, the castle file names {wanted}: an upgrade is not done by this version of castle",
                self.node.name
            ));
        }
        if cx.state().outputs().get(GIVEN) == Some(&self.digest(cx)?) {
            return Ok(Observed::right(evidence));
        }
        let found = self.compare(cx, talos).await?;
        if !found.versions.is_empty() {
            let rest =
                if found.others.is_empty() { "" } else { "; its other changes wait for that" };
            cx.notice(format!(
                "{} runs other versions than the castle file names ({}): an upgrade is not done by this version of castle{rest}",
                self.node.name,
                few(&found.versions)
            ));
            return Ok(Observed::right(evidence));
        }
        if found.others.is_empty() {
            cx.learn(GIVEN, self.digest(cx)?);
            return Ok(Observed::right(evidence));
        }
        Ok(Observed::wrong(format!("its config differs in {}", few(&found.others))))
    }

    /// The same, but a machine that waits for the right time is never right: its time servers may be what was changed.
    async fn judged_in_time(
        &self,
        cx: &Context,
        talos: &Talos,
        evidence: String,
    ) -> Result<Observed, Failure> {
        let judged = self.judged(cx, talos, evidence).await?;
        Ok(match self.waits_for_time(talos).await? {
            Some(missing) if matches!(judged, Observed::Right { .. }) => Observed::wrong(missing),
            _ => judged,
        })
    }

    /// The machine over mutual TLS: who it is and how far it has come.
    async fn proven(&self, cx: &Context, talos: &Talos) -> Result<Verdict, Failure> {
        if let Err(why) = self.realm.is_our_machine(cx, &self.node, talos).await? {
            return Ok(Verdict::Failed(self.not_ours(&why)));
        }
        let status = talos.machine_status().await.map_err(|error| self.failed(&error))?;
        Ok(match status.stage.as_str() {
            "booting" | "running" => {
                Verdict::Ready(format!("answers with our identity, stage {}", status.stage))
            }
            _ => Verdict::Waiting(status.words()),
        })
    }

    /// Why a machine that boots does not get further: until its clock is right, Talos starts neither etcd nor the
    /// kubelet, and gives no worker a certificate.
    async fn waits_for_time(&self, talos: &Talos) -> Result<Option<String>, Failure> {
        let status = talos.machine_status().await.map_err(|error| self.failed(&error))?;
        let servers = self.realm.spec().network.ntp.join(", ");
        Ok((status.stage == "booting" && !status.is_in_sync())
            .then(|| format!("its clock is not in sync with its time servers ({servers}) yet")))
    }

    /// What the first proof asks beyond: the declared address, and the runtime where etcd is going to be bootstrapped.
    async fn settled(&self, talos: &Talos) -> Result<Option<String>, Failure> {
        let (addresses, services) = tokio::join!(talos.addresses(), talos.services());
        let addresses = addresses.map_err(|error| self.failed(&error))?;
        let own = format!("{}/", self.node.address);
        if !addresses.iter().any(|address| address.starts_with(&own)) {
            let held = addresses.join(", ");
            return Ok(Some(format!("it does not hold {} but {held}", self.node.address)));
        }
        let services = services.map_err(|error| self.failed(&error))?;
        let runs = |id: &str| services.iter().any(|s| s.id == id && s.state == "Running");
        if self.node.name == self.realm.first()?.name && !runs("cri") {
            return Ok(Some("its container runtime does not run yet".to_owned()));
        }
        Ok(None)
    }

    /// What the first proof still misses; a machine that was proven before is not asked again.
    async fn unsettled(&self, cx: &Context, talos: &Talos) -> Result<Option<String>, Failure> {
        if cx.state().outputs().contains_key(GIVEN) {
            return Ok(None);
        }
        self.settled(talos).await
    }

    async fn look(&self, cx: &Context) -> Result<Verdict, Failure> {
        match self.realm.look(cx, self.node.address).await? {
            Presence::Ours(talos) => match self.proven(cx, &talos).await? {
                Verdict::Ready(proof) => {
                    let (time, rest) =
                        tokio::join!(self.waits_for_time(&talos), self.settled(&talos));
                    Ok(match time?.or(rest?) {
                        None => Verdict::Ready(proof),
                        Some(missing) => Verdict::Waiting(missing),
                    })
                }
                other => Ok(other),
            },
            // Just after the config the old listener may still answer, or nobody.
            Presence::Maintenance(_) => Ok(Verdict::waiting("still in maintenance mode")),
            Presence::Foreign { why } | Presence::Silent { why } | Presence::Untimely { why } => {
                Ok(Verdict::waiting(why))
            }
        }
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the machine answers over mutual TLS with its new identity";

#[async_trait]
impl Step for Config {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let why = match self.realm.look(cx, self.node.address).await? {
            Presence::Maintenance(_) => return Ok(Observed::Absent),
            Presence::Foreign { why } => return Ok(Observed::Foreign { owner: why }),
            Presence::Silent { why } | Presence::Untimely { why } => why,
            Presence::Ours(talos) => match self.proven(cx, &talos).await? {
                Verdict::Ready(evidence) => match self.unsettled(cx, &talos).await? {
                    None => return self.judged_in_time(cx, &talos, evidence).await,
                    Some(missing) => missing,
                },
                Verdict::Failed(failure) => return Err(failure),
                Verdict::Waiting(why) => why,
            },
        };
        Err(Failure::new(Class::Transient, self.what(), why))
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        match self.realm.look(cx, self.node.address).await? {
            Presence::Ours(talos) if verb == Verb::Update => self.change(cx, &talos).await,
            Presence::Ours(_) => Ok(Acted::of(Change::Unchanged)),
            Presence::Maintenance(talos) => self.send(cx, &talos).await,
            Presence::Foreign { why } => Err(self.not_ours(&why)),
            Presence::Silent { why } | Presence::Untimely { why } => {
                Err(Failure::new(Class::Transient, self.what(), why))
            }
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        // A worker's API waits for a certificate from a control plane, so these are looked at too.
        let mut nodes = vec![self.node.clone()];
        if self.node.role == Role::Worker {
            nodes.extend(self.realm.control_planes());
        }
        let gate = Gate {
            what: format!("{} to answer with its new identity", self.node.name),
            pace: Pace::TASK,
            nodes: &nodes,
            vip: false,
        };
        self.realm.gate(cx, gate, || self.look(cx)).await
    }
}
