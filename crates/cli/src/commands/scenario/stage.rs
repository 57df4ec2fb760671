//! A story as it is played: one world in memory, one process after the other in it, and what each of them showed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use castle_config::Sources;
use castle_config::story::{Act, Change, Complaint, Meanwhile, Placed, Run, Story};
use castle_journal::{Journals, MemoryDisk, Peek, StepState};
use castle_layers::secrets::files::Memory;
use castle_layers::secrets::source::Access;
use castle_model::StepId;
use castle_model::failure::Class;
use castle_model::plan::Direction;
use castle_rehearsal::fault::{Names, Own, OwnDisk, Rule, Sort, When};
use castle_rehearsal::host::Host;
use castle_rehearsal::inventory::Inventory;
use serde_json::Value;

use super::check::{self, Check, Facts, Performed};
use crate::castle::{Castle, Place};
use crate::commands::{audit, plan, status, wipe};
use crate::exit::{Exit, Problem};
use crate::faults;
use crate::faults::disk::{self, Doing, Gone};
use crate::output;
use crate::project;
use crate::real::Heard;
use crate::rehearsal::{access, trusting};
use crate::session::{Consent, Session};
use crate::settings::Settings;
use crate::state::{self, state_problem};

/// The exit code of a process that was killed by SIGKILL, as a shell tells it.
const KILLED: u8 = 137;

/// How a story is played.
#[derive(Debug, Clone, Copy)]
pub(super) struct Play {
    /// How many times faster than real time; none: as fast as it goes.
    pub(super) speed: Option<u32>,
    /// The seed of its world.
    pub(super) seed: u64,
}

/// One castle, its world and its state, while a story is told.
pub(super) struct Stage<'a> {
    settings: &'a Settings,
    play: Play,
    castle: Castle,
    sources: Sources,
    files: Arc<Memory>,
    disk: MemoryDisk,
    host: Host,
    /// Whether a command has run in this process: the next one is another.
    used: bool,
    books: Books,
}

/// What the story knows of the datacenter beside castle.
#[derive(Default)]
struct Books {
    /// Everything that was there before castle came, or that somebody else put there since.
    not_ours: BTreeSet<String>,
    /// Guests that somebody else made, as they were then.
    then: BTreeMap<String, Value>,
}

impl<'a> Stage<'a> {
    /// Sets the stage. Must be called within the runtime of the rehearsal.
    pub(super) fn set(
        story: &Story,
        sources: Sources,
        play: Play,
        settings: &'a Settings,
    ) -> Result<Self, Vec<Complaint>> {
        let mut sources = sources;
        change(&mut sources, &story.changes)?;
        let broken = |e: &dyn std::fmt::Display| vec![no_castle(None, e.to_string())];
        let spec = project::read(&sources).spec.ok_or_else(|| broken(&"it is not right"))?;
        let host = Host::open(None, &spec, play.seed).map_err(|e| broken(&e))?;
        let spec = trusting(spec, &host).map_err(|e| broken(&e))?;
        host.spawn_driver();
        let castle = Castle {
            source: format!("the castle `{}`", spec.name),
            spec,
            place: Place::Rehearsal,
            command: "castle".to_owned(),
            folder: settings.directory.clone(),
            state: settings.directory.clone(),
            state_given: false,
        };
        let mut stage = Self {
            settings,
            play,
            castle,
            sources,
            files: Arc::default(),
            disk: MemoryDisk::new(),
            host,
            used: false,
            books: Books::default(),
        };
        stage.books.not_ours = stage.things();
        Ok(stage)
    }

    /// Plays one act, and says what was expected of it.
    pub(super) async fn act(&mut self, act: &Act) -> Result<Vec<Check>, Problem> {
        if self.used {
            self.next_process()?;
        }
        match act {
            Act::Run(run) => {
                self.used = true;
                let performed = self.perform(run).await?;
                Ok(check::of_run(run, &performed))
            }
            Act::Meanwhile(meanwhile) => self.meanwhile(meanwhile).await,
            Act::World(world) => Ok(check::of_world(world, &self.facts())),
        }
    }

    /// Ends the process that holds the world and begins another: what was armed goes, what was done stays.
    fn next_process(&mut self) -> Result<(), Problem> {
        self.host.begin_anew(&self.castle.spec).map_err(|e| {
            Problem::new(Exit::Failed, "the rehearsal could not be opened again").because(&e)
        })?;
        self.host.spawn_driver();
        self.used = false;
        Ok(())
    }

    async fn perform(&mut self, run: &Run) -> Result<Performed, Problem> {
        output::aside(&format!("\n$ castle {}", run.command));
        let names = Names::of(&self.castle.spec);
        let rules = run.rules.iter().map(|rule| Rule::parse(&rule.text, &names));
        // Every rule was read before the story began, but for one about a castle file that has changed since.
        let rules =
            rules.collect::<Result<Vec<_>, _>>().map_err(|e| Problem::usage(e.to_string()))?;
        let written: Vec<String> = rules.iter().map(ToString::to_string).collect();
        self.host.on_strike(|strike| {
            if let Some(line) = faults::told(strike) {
                output::aside(&line);
            }
        });
        let does = self.mind_own();
        self.host.arm(rules);
        let began = self.host.now();
        let before = self.journals().map(|it| it.records().steps.clone()).unwrap_or_default();
        output::take_down();
        let exit = tokio::select! {
            biased;
            () = self.host.killed() => KILLED,
            exit = self.command(run, &does) => match exit {
                Ok(exit) => exit as u8,
                Err(problem) => {
                    output::say(&problem.to_string());
                    problem.exit as u8
                }
            },
            () = braked(self.play.speed) => KILLED,
        };
        let exit = if self.host.has_ended() { KILLED } else { exit };
        let said = output::taken_down();
        let unstruck = self.host.unstruck();
        let strikes = self.host.strikes();
        let effect = |rule: &String| {
            strikes.iter().any(|strike| strike.rule == *rule && strike.sort != Sort::Vain)
        };
        let struck = written.into_iter().filter(|rule| !unstruck.contains(rule));
        let struck = struck.map(|rule| (rule.clone(), effect(&rule))).collect();
        Ok(Performed {
            exit,
            said,
            failed: self.failed_since(&before)?,
            changes: self.host.mutations().values().sum(),
            took: Duration::from_millis(self.host.now() - began),
            unstruck,
            struck,
        })
    }

    /// Lets rules break the computer that castle runs on, and gives what its disk then does.
    fn mind_own(&self) -> Doing {
        let (does, disk) = (Doing::default(), self.disk.clone());
        let breaks = does.clone();
        self.host.on_break(move |own| {
            match own {
                Own::Power => disk.lose_power(),
                Own::Disk(does) => {
                    if does == OwnDisk::Taken {
                        disk.forget();
                    }
                    breaks.set(does);
                }
                // A story's state is in the memory of this process, where nobody else can come.
                Own::Operator => return false,
            }
            true
        });
        does
    }

    /// Runs a command as its user does.
    async fn command(&self, run: &Run, does: &Doing) -> Result<Exit, Problem> {
        let mut journals = self.journals()?;
        let gone: Gone = Arc::new(self.host.ender());
        disk::under(&mut journals, does, &gone);
        let castle = &self.castle;
        let (world, heard) = (self.host.world(), Heard::default());
        let direction = match run.command.as_str() {
            "up" => Direction::Up,
            "down" | "wipe" => Direction::Down,
            "audit" => {
                let (gone, access) = (audit::is_gone(journals.records()), self.access());
                let seen = (&world, &access);
                return audit::look(castle, seen, gone, false, self.settings).await;
            }
            "plan" => {
                let (records, seen) = (journals.records(), (&world, &heard));
                return plan::show(castle, records, seen, self.access(), false, self.settings)
                    .await;
            }
            _ => {
                let records = journals.records().clone();
                let (problems, notices) = (BTreeMap::new(), Vec::new());
                let (damage, holder, rebirth) = (None, None, Ok(None));
                let peek = Peek { records, problems, damage, notices, holder, rebirth };
                let seen = (world.clock.now(), Vec::new());
                status::show(castle, &peek, seen, false, self.settings);
                return Ok(Exit::Done);
            }
        };
        state::whole(castle, journals.records(), direction)?;
        let session = Session {
            settings: self.settings,
            castle,
            world,
            clock: self.host.steady_clock(),
            access: self.access(),
            rehearsal: Some(&self.host),
            json: false,
            heard,
            runs: None,
            struck: faults::Struck::default(),
        };
        if run.command == "wipe" {
            return wipe::go(&session, (run.yes, &[]), &mut journals).await;
        }
        let consent = Consent::of(run.yes);
        session.run(direction, &consent, &mut journals).await.map(|ended| ended.exit)
    }

    fn access(&self) -> Access {
        Access { files: self.files.clone(), ..access(&self.castle.spec, &self.host, None) }
    }

    fn journals(&self) -> Result<Journals, Problem> {
        Journals::open(Box::new(self.disk.clone())).map_err(|e| state_problem(&e))
    }

    /// The steps whose last outcome is a failure of this run.
    fn failed_since(
        &self,
        before: &BTreeMap<StepId, StepState>,
    ) -> Result<BTreeMap<String, Class>, Problem> {
        let journals = self.journals()?;
        // By what was recorded before, and not by times of day: the clock may have jumped.
        let failed = journals.records().steps.iter().filter_map(|(id, state)| match state {
            StepState::Failed { failure, .. } if before.get(id) != Some(state) => {
                Some((id.to_string(), failure.class))
            }
            _ => None,
        });
        Ok(failed.collect())
    }

    async fn meanwhile(&mut self, meanwhile: &Meanwhile) -> Result<Vec<Check>, Problem> {
        if meanwhile.forget {
            output::aside("meanwhile: castle's state is lost");
            self.disk = MemoryDisk::new();
        }
        if !meanwhile.changes.is_empty() {
            self.change_castle(&meanwhile.changes)?;
        }
        let names = Names::of(&self.castle.spec);
        let parse = |rule: &Placed| Rule::parse(&rule.text, &names);
        let mut checks = Vec::new();
        for (places, over) in [(&meanwhile.pokes, false), (&meanwhile.mends, true)] {
            for place in places {
                let rule = parse(place).map_err(|e| Problem::usage(e.to_string()))?;
                checks.push(self.poke(&rule, over));
            }
        }
        if let Some(later) = meanwhile.later {
            output::aside(&format!("meanwhile: {} go by", check::clock(later)));
            pass(later).await;
        }
        Ok(checks)
    }

    /// Changes the world by a rule, or makes good again what it changed, and says whether the world is another one.
    fn poke(&mut self, rule: &Rule, over: bool) -> Check {
        let (troubles, sentence) = if over {
            (rule.mending(), format!("{}: no more", rule.sentence()))
        } else {
            (rule.troubles(), rule.sentence())
        };
        output::aside(&format!("meanwhile: {sentence}"));
        let before = self.things();
        let poked = self.host.poke(troubles.unwrap_or_default());
        self.note_what_others_did(&before);
        check::of_poke(&sentence, poked.is_some_and(|poked| poked.changed))
    }

    fn change_castle(&mut self, changes: &[Change]) -> Result<(), Problem> {
        let wrong = |complaints: Vec<Complaint>| {
            let told = complaints.into_iter().map(|complaint| complaint.title);
            Problem::usage(told.collect::<Vec<_>>().join("; "))
        };
        change(&mut self.sources, changes).map_err(wrong)?;
        let spec = project::read(&self.sources).spec;
        let spec = spec.ok_or_else(|| Problem::usage("the changed castle file is not right"))?;
        self.castle.spec = trusting(spec, &self.host)?;
        for change in changes {
            let to = change.to.trim();
            output::aside(&format!(
                "meanwhile: in the castle file, `{}` becomes `{to}`",
                change.from.text
            ));
        }
        self.next_process()
    }

    /// Remembers what came just now: it is somebody else's.
    fn note_what_others_did(&mut self, before: &BTreeSet<String>) {
        let now = self.things();
        self.books.not_ours.extend(now.difference(before).cloned());
        for (vmid, guest) in self.guests() {
            if self.books.not_ours.contains(&guest_thing(&vmid)) {
                self.books.then.entry(vmid).or_insert(guest);
            }
        }
    }

    /// Everything of consequence in the datacenter, by a name each.
    fn things(&self) -> BTreeSet<String> {
        let Inventory { proxmox, secrets, .. } = self.host.read(Inventory::of);
        let guests = proxmox.guests.iter().map(|guest| guest_thing(&guest.vmid.to_string()));
        let disks = proxmox.volumes.iter().map(|volume| format!("disk {volume}"));
        let files = proxmox.files.iter().map(|file| format!("file {file}"));
        let tasks = proxmox.running_tasks.iter().map(|task| format!("task {task}"));
        let secrets = secrets.iter().map(|secret| format!("secret {secret}"));
        guests.chain(disks).chain(files).chain(tasks).chain(secrets).collect()
    }

    /// Every guest as the datacenter keeps it, by number.
    fn guests(&self) -> BTreeMap<String, Value> {
        let proxmox = self.host.read(|world| serde_json::to_value(&world.proxmox));
        let guests = proxmox.ok().and_then(|mut proxmox| match proxmox["guests"].take() {
            Value::Object(guests) => Some(guests.into_iter().collect()),
            _ => None,
        });
        guests.unwrap_or_default()
    }

    fn facts(&self) -> Facts {
        Facts {
            inventory: self.host.read(Inventory::of),
            bootstraps: self.host.read(|world| world.talos.etcds_founded()),
            then: self.books.then.clone(),
            now: self.guests(),
            left: self.things().difference(&self.books.not_ours).cloned().collect(),
        }
    }

    /// What is wrong with the rules of a story, before anything is played.
    pub(super) fn judge(&self, story: &Story) -> Vec<Complaint> {
        let names = Names::of(&self.castle.spec);
        let mut complaints = Vec::new();
        let mut judge = |rule: &Placed, how: How| match Rule::parse(&rule.text, &names) {
            Err(error) => {
                // The rule stands in quotes; with escapes in it, its places are not those of the file.
                let plain = rule.range.len() == rule.text.len() + 2;
                let start = rule.range.start + 1;
                let range = if plain {
                    start + error.span.start..start + error.span.end
                } else {
                    rule.range.clone()
                };
                let meant = error.nearest.as_ref().map(|near| format!("did you mean `{near}`?"));
                complaints.push(Complaint {
                    code: "C1103",
                    title: error.message.clone(),
                    range,
                    label: meant.unwrap_or_else(|| "in this rule".to_owned()),
                    notes: Vec::new(),
                    help: error.help.clone(),
                });
            }
            Ok(parsed) if how != How::Broken && parsed.troubles().is_none() => {
                complaints.push(Complaint {
                    code: "C1103",
                    title: format!(
                        "`{}` strikes calls, and nobody calls meanwhile",
                        parsed.kind().name
                    ),
                    range: rule.range.clone(),
                    label: "not something that happens to the world".to_owned(),
                    notes: Vec::new(),
                    help: Some("let it break the next run instead".to_owned()),
                });
            }
            Ok(parsed) if how == How::Mended && parsed.mending().is_none() => {
                complaints.push(Complaint {
                    code: "C1103",
                    title: format!("what `{}` does can not be mended", parsed.kind().name),
                    range: rule.range.clone(),
                    label: "there is no way back from it".to_owned(),
                    notes: Vec::new(),
                    help: Some("`up` may mend it, or poke what makes it good again".to_owned()),
                });
            }
            Ok(parsed) if how != How::Broken && *parsed.when() != When::default() => {
                complaints.push(Complaint {
                    code: "C1103",
                    title: format!(
                        "`{}` says when, and meanwhile everything happens at once",
                        rule.text
                    ),
                    range: rule.range.clone(),
                    label: "not now".to_owned(),
                    notes: Vec::new(),
                    help: Some("leave the time out, or let it break a run".to_owned()),
                });
            }
            Ok(_) => {}
        };
        for act in &story.acts {
            match act {
                Act::Run(run) => run.rules.iter().for_each(|rule| judge(rule, How::Broken)),
                Act::Meanwhile(meanwhile) => {
                    meanwhile.pokes.iter().for_each(|rule| judge(rule, How::Poked));
                    meanwhile.mends.iter().for_each(|rule| judge(rule, How::Mended));
                }
                Act::World(_) => {}
            }
        }
        complaints
    }
}

/// What a rule of a story is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It holds while a command runs.
    Broken,
    /// It happens at once.
    Poked,
    /// What it does is made good again at once.
    Mended,
}

fn guest_thing(vmid: &str) -> String {
    format!("guest {vmid}")
}

/// Changes the text of a castle file.
fn change(sources: &mut Sources, changes: &[Change]) -> Result<(), Vec<Complaint>> {
    for change in changes {
        let text = String::from_utf8_lossy(&sources.text).into_owned();
        let from = &change.from.text;
        let found = text.matches(from.as_str()).count();
        if found != 1 {
            let title = format!("`{from}` stands in the castle file {found} times");
            return Err(vec![no_castle(Some(&change.from), title)]);
        }
        sources.text = text.replacen(from.as_str(), &change.to, 1).into_bytes();
    }
    let findings = project::read(sources).findings;
    let error =
        |finding: &&castle_config::Finding| finding.severity == castle_config::Severity::Error;
    match findings.iter().find(error) {
        None => Ok(()),
        Some(finding) => {
            let title = format!("the changed castle file is not right: {}", finding.title);
            Err(vec![no_castle(changes.last().map(|change| &change.from), title)])
        }
    }
}

fn no_castle(place: Option<&Placed>, title: String) -> Complaint {
    Complaint {
        code: "C1105",
        title,
        range: place.map(|place| place.range.clone()).unwrap_or_default(),
        label: "here".to_owned(),
        notes: vec!["a change is of a text that stands in the castle file once".to_owned()],
        help: Some("`castle check` tells what is wrong with a castle file".to_owned()),
    }
}

async fn braked(speed: Option<u32>) {
    match speed {
        None => std::future::pending().await,
        Some(speed) => castle_rehearsal::brake::hold(speed).await,
    }
}

/// Lets virtual time go by.
#[expect(
    clippy::disallowed_methods,
    reason = "a story says how long nothing is run; nobody waits for anything here"
)]
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
