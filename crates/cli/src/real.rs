//! The real world: the operating system's network, clock and randomness, and who castle is to the secret source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use castle_engine::Outputs;
use castle_layers::Credentials;
use castle_layers::secrets::files::{Disk, Files, Privacy};
use castle_layers::secrets::private::lines;
use castle_layers::secrets::shape::credential;
use castle_layers::secrets::source::{Access, Values};
use castle_model::Secret;
use castle_model::spec::{EscrowPlace, InfisicalSpec, PlatformSpec, SourceSpec, Spec};
use castle_model::time::length;
use castle_sops::Identities;
use castle_wire::dialer::DialFuture;
use castle_wire::{Dialer, SystemClock, SystemEntropy, TcpDialer, World};

use crate::age;
use crate::args::Pace;
use crate::castle::Castle;
use crate::exit::{Exit, Problem};
use crate::output::{self, Passing};
use crate::settings::Settings;
use crate::signals::survive_large_files;
use crate::stage::in_front;

/// The variables that hold the machine identity of Infisical's universal auth.
pub(crate) const IDENTITY: [&str; 2] = ["INFISICAL_CLIENT_ID", "INFISICAL_CLIENT_SECRET"];

/// How long a look at the world may be silent, first and afterwards, where each word is a line of its own.
const FIRST_WORD: Duration = Duration::from_secs(5);
const NEXT_WORD: Duration = Duration::from_secs(20);

/// How long a look takes before its line is shown on a terminal, and how often it is kept up to date: clocks tick.
const FIRST_LINE: Duration = Duration::from_millis(300);
const NEXT_LINE: Duration = Duration::from_millis(500);

/// Who was dialled, and whether the last dial was answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<BTreeMap<String, bool>>>);

impl Heard {
    fn note(&self, host: &str, answered: bool) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.insert(host.to_owned(), answered);
    }

    /// Whoever is being waited for, in words.
    fn words(&self) -> String {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let silent: Vec<&str> =
            heard.iter().filter(|(_, answered)| !**answered).map(|(host, _)| &**host).collect();
        if silent.is_empty() {
            return "everybody who was asked answers, and not all is said yet".to_owned();
        }
        format!("no answer yet from {}", silent.join(", "))
    }

    /// The same in short, beside how many answer.
    fn count(&self) -> String {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = heard.values().filter(|answered| **answered).count();
        let asked = heard.len();
        drop(heard);
        match asked {
            0 => "nobody is asked yet".to_owned(),
            _ if answered == asked => format!("{answered} of {asked} answer"),
            _ => format!("{answered} of {asked} answer, {}", self.words()),
        }
    }
}

/// Dials, and notes who answers.
struct Noting<D> {
    dialer: D,
    heard: Heard,
}

impl<D: Dialer> Dialer for Noting<D> {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(async move {
            self.heard.note(host, false);
            let stream = self.dialer.dial(host, port).await?;
            self.heard.note(host, true);
            Ok(stream)
        })
    }
}

/// Everything outside of this process, as it is, and who of it answers.
pub(crate) fn noted_world(settings: &Settings) -> Result<(World, Heard), Problem> {
    let heard = Heard::default();
    let dialer = Arc::new(Noting { dialer: TcpDialer, heard: heard.clone() });
    Ok((World { dialer, ..world(settings)? }, heard))
}

/// Everything outside of this process, as it is.
pub(crate) fn world(settings: &Settings) -> Result<World, Problem> {
    let roots = castle_wire::system_roots(settings.get("SSL_CERT_FILE").map(Path::new));
    let roots = roots.map_err(|e| {
        Problem::usage("the authorities that servers are verified by can not be read")
            .because(&e)
            .hint(
                "SSL_CERT_FILE names a file with PEM certificates; unset it for the system's list",
            )
    })?;
    Ok(World { roots: Arc::new(roots), cache: settings.cache(), ..world_without_roots() })
}

/// The same for what speaks to nobody: time and randomness alone.
pub(crate) fn world_without_roots() -> World {
    World {
        dialer: Arc::new(TcpDialer),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        roots: Arc::default(),
        cache: None,
    }
}

/// How the secret sources are reached; asked for before anything is dialled.
pub(crate) fn access(castle: &Castle, settings: &Settings) -> Result<Access, Problem> {
    let files: Arc<dyn Files> = Arc::new(Disk {
        project: castle.folder.clone(),
        home: settings.get("HOME").map(PathBuf::from),
    });
    let mut identities = BTreeMap::new();
    for (number, source) in castle.spec.secrets.sources.iter().enumerate() {
        if let SourceSpec::Infisical(infisical) = source {
            identities.insert(number, identity(infisical, files.as_ref(), settings)?);
        }
    }
    let variables = settings.environment.iter();
    let environment = variables.map(|(name, value)| (name.clone(), Secret::new(value.clone())));
    Ok(Access {
        identities,
        age: Arc::new(age_identities(&castle.spec, settings)?),
        environment: environment.collect(),
        files,
        invented: None,
    })
}

/// The age identities at hand, if anything of the castle is encrypted for one.
fn age_identities(spec: &Spec, settings: &Settings) -> Result<Identities, Problem> {
    let sealed = |source: &SourceSpec| matches!(source, SourceSpec::Sops(_));
    let in_file = matches!(spec.secrets.escrow.place, EscrowPlace::File(_));
    if in_file || spec.secrets.sources.iter().any(sealed) {
        return Ok(age::at_hand(settings)?.told().identities);
    }
    Ok(Identities::default())
}

/// The machine identity of an Infisical: from its file, else from the environment.
fn identity(
    infisical: &InfisicalSpec,
    files: &dyn Files,
    settings: &Settings,
) -> Result<Credentials, Problem> {
    let mut values = Values::new();
    if let Some(path) = &infisical.credentials {
        let unusable = |why: String| {
            Problem::usage(format!("the machine identity in {path} can not be used: {why}"))
                .hint("it is a file of yours alone (chmod 600) with the lines INFISICAL_CLIENT_ID=… and INFISICAL_CLIENT_SECRET=…; nothing was done")
        };
        let content = files.read(path, Privacy::Own).map_err(unusable)?;
        let content = content.ok_or_else(|| unusable("there is no such file".to_owned()))?;
        let text = std::str::from_utf8(&content).map_err(|e| unusable(e.to_string()))?;
        values = lines(&Secret::new(text)).map_err(unusable)?;
        if let Some(missing) = IDENTITY.iter().find(|name| !values.contains_key(**name)) {
            return Err(unusable(format!("it lacks {missing}")));
        }
    } else {
        for name in IDENTITY {
            values.extend(settings.get(name).map(|v| (name.to_owned(), Secret::new(v))));
        }
    }
    let missing: Vec<&str> =
        IDENTITY.into_iter().filter(|name| !values.contains_key(*name)).collect();
    if let [Some(client_id), Some(client_secret)] = IDENTITY.map(|name| values.remove(name)) {
        let [client_id, client_secret] =
            [cleaned(IDENTITY[0], &client_id)?, cleaned(IDENTITY[1], &client_secret)?];
        return Ok(Credentials { client_id, client_secret });
    }
    let are = if missing.len() == 1 { "is" } else { "are" };
    Err(Problem::usage(format!(
        "castle can not log in to {}: {} {are} not set",
        infisical.host,
        missing.join(" and ")
    ))
    .hint(format!(
        "set INFISICAL_CLIENT_ID and INFISICAL_CLIENT_SECRET to a machine identity (universal auth) that may read and write {}, or name a file with `credentials_file`; nothing was done. Without credentials, `castle rehearse` does it in the built-in datacenter",
        infisical.path
    )))
}

/// One half of an identity without what was pasted around it: a wrong one counts towards the server's lock.
fn cleaned(name: &str, value: &Secret) -> Result<Secret, Problem> {
    let (value, left_out) = credential(value).map_err(|why| {
        Problem::usage(format!("{name} can not be used: {why}"))
            .hint("copy it again from Infisical; nothing was done")
    })?;
    if let Some(what) = left_out {
        output::talk(&format!("notice: {name}: the {what} around its value left out"));
    }
    Ok(value)
}

/// The first line of a run: what is meant, and whom castle will speak to.
pub(crate) fn announce(castle: &Castle) -> String {
    format!("castle {}, for real: {}", castle.source, endpoints(&castle.spec).join(", "))
}

/// Everybody that a run speaks to, in the order of the first word.
fn endpoints(spec: &Spec) -> Vec<String> {
    let mut list = vec![format!("secrets from {}", castle_layers::secrets::words(spec))];
    if let PlatformSpec::Proxmox(proxmox) = &spec.platform {
        list.push(format!("VMs on {}", proxmox.endpoint));
    }
    let addresses: Vec<String> = spec.nodes.iter().map(|node| node.address.to_string()).collect();
    if let (Some(first), Some(last)) = (addresses.first(), addresses.last()) {
        list.push(format!("{} machines from {first} to {last}", addresses.len()));
    }
    list.push(format!("the cluster at https://{}:6443", spec.network.vip));
    if spec.gitops.enabled {
        list.push(format!("Git at {}", spec.gitops.url));
    }
    list
}

/// Waits for a look at the world, and tells of it: what does not answer is asked again for a while. On a terminal it is one
/// line that is kept up to date and goes with the look; elsewhere a line now and then, if it takes long.
#[expect(
    clippy::disallowed_methods,
    reason = "the real world takes real time, and nobody else tells of this wait"
)]
pub(crate) async fn patiently<T>(
    look: impl Future<Output = T>,
    heard: &Heard,
    outputs: &Outputs,
    settings: &Settings,
) -> T {
    let mut look = std::pin::pin!(look);
    let passing = (settings.live() && in_front()).then_some(Passing);
    let began = tokio::time::Instant::now();
    let mut silence = if passing.is_some() { FIRST_LINE } else { FIRST_WORD };
    loop {
        tokio::select! {
            biased;
            seen = &mut look => return seen,
            () = tokio::time::sleep(silence) => {
                let waits = outputs.waits();
                if passing.is_some() {
                    silence = NEXT_LINE;
                    Passing::show(&line(began.elapsed(), heard, &waits));
                } else {
                    silence = NEXT_WORD;
                    output::talk(&still(heard, &waits));
                }
            }
        }
    }
}

/// The line of a look that goes on: for how long, and who is waited for.
fn line(took: Duration, heard: &Heard, waits: &[String]) -> String {
    let took = length(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    let said = if waits.is_empty() { heard.count() } else { waits.join("; ") };
    format!("looking at the world, {took}: {said}")
}

/// The line of a look that takes long, where lines are not written over.
fn still(heard: &Heard, waits: &[String]) -> String {
    format!("still looking at the world: {}", words(heard, waits))
}

/// Why a look takes long: what somebody asked for, else who is silent.
fn words(heard: &Heard, waits: &[String]) -> String {
    if waits.is_empty() { heard.words() } else { waits.join("; ") }
}

/// Refuses the flags that only a rehearsal has.
pub(crate) fn refuse_pace(pace: &Pace) -> Result<(), Problem> {
    let flags = [
        ("--speed", pace.speed.is_some()),
        ("--seed", pace.seed.is_some()),
        ("--fault", !pace.faults.fault.is_empty()),
        ("--faults", pace.faults.faults.is_some()),
        ("--chaos", pace.faults.chaos.is_some()),
    ];
    let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    Err(Problem::usage(format!(
        "{flag} is for the rehearsal; a castle file of your own is for real"
    ))
    .hint("leave it out, or begin the command with `castle rehearse`"))
}

/// A runtime in real time, on one thread as everywhere.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Problem::new(Exit::Failed, "the runtime could not be started").because(&e))?;
    survive_large_files(&runtime)?;
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::castle::Place;

    /// Answers for one host alone.
    struct One;

    impl Dialer for One {
        fn dial<'a>(&'a self, host: &'a str, _port: u16) -> DialFuture<'a> {
            Box::pin(async move {
                if host != "pve.lan" {
                    return Err(std::io::ErrorKind::TimedOut.into());
                }
                Ok(Box::new(tokio::io::empty()) as castle_wire::dialer::BoxedStream)
            })
        }
    }

    #[test]
    fn an_identity_is_used_without_what_was_pasted_around_it() {
        for given in ["hunter2", " hunter2\n", "\"hunter2\""] {
            assert_eq!(cleaned(IDENTITY[1], &Secret::new(given)).unwrap().expose(), "hunter2");
        }
        let problem = cleaned(IDENTITY[1], &Secret::new("hunter2 hunter3")).unwrap_err();
        let text = problem.to_string();
        assert!(text.contains(IDENTITY[1]) && !text.contains("hunter"), "{text}");
    }

    #[test]
    fn a_real_run_begins_with_everybody_whom_it_speaks_to() {
        let castle = Castle {
            spec: castle_config::example(),
            place: Place::Real,
            source: "`blue` from castle.hcl".to_owned(),
            command: "castle".to_owned(),
            folder: PathBuf::new(),
            state: PathBuf::new(),
            state_given: false,
        };
        insta::assert_snapshot!(announce(&castle), @"
        castle `blue` from castle.hcl, for real: secrets from https://eu.infisical.com, VMs on https://pve.lan:8006, 5 machines from 192.168.1.211 to 192.168.1.215, the cluster at https://192.168.1.210:6443, Git at https://github.com/example/tazlab-k8s
        ");
    }

    #[test]
    fn a_look_that_takes_long_says_whom_it_waits_for() {
        let heard = Heard::default();
        heard.note("eu.infisical.com", true);
        heard.note("pve.lan", false);
        let asked = ["read the secrets: 429 (asked again in 59 s)".to_owned()];
        let lines = [
            line(Duration::from_millis(2_500), &Heard::default(), &[]),
            line(Duration::from_millis(2_500), &heard, &[]),
            line(Duration::from_secs(75), &heard, &asked),
            still(&Heard::default(), &[]),
            still(&heard, &[]),
            still(&heard, &asked),
        ];
        insta::assert_snapshot!(lines.join("\n"), @"
        looking at the world, 2.5 s: nobody is asked yet
        looking at the world, 2.5 s: 1 of 2 answer, no answer yet from pve.lan
        looking at the world, 1:15: read the secrets: 429 (asked again in 59 s)
        still looking at the world: everybody who was asked answers, and not all is said yet
        still looking at the world: no answer yet from pve.lan
        still looking at the world: read the secrets: 429 (asked again in 59 s)
        ");
    }

    #[test]
    fn a_wait_that_somebody_asked_for_is_told_as_such() {
        let heard = Heard::default();
        heard.note("eu.infisical.com", true);
        let waits = ["read the secrets: 429 (asked again in 59 s)".to_owned()];
        assert_eq!(words(&heard, &waits), waits[0]);
        assert!(words(&heard, &[]).starts_with("everybody"));
    }

    #[tokio::test]
    async fn only_those_who_do_not_answer_are_named() {
        let heard = Heard::default();
        let told = |heard: &Heard| line(Duration::from_millis(2_500), heard, &[]);
        assert_eq!(told(&heard), "looking at the world, 2.5 s: nobody is asked yet");
        let dialer = Noting { dialer: One, heard: heard.clone() };
        assert!(dialer.dial("pve.lan", 8006).await.is_ok());
        assert_eq!(heard.words(), "everybody who was asked answers, and not all is said yet");
        assert_eq!(told(&heard), "looking at the world, 2.5 s: 1 of 1 answer");
        for host in ["10.0.0.2", "10.0.0.1"] {
            assert!(dialer.dial(host, 50_000).await.is_err());
        }
        assert_eq!(heard.words(), "no answer yet from 10.0.0.1, 10.0.0.2");
        assert_eq!(
            told(&heard),
            "looking at the world, 2.5 s: 1 of 3 answer, no answer yet from 10.0.0.1, 10.0.0.2"
        );
    }
}
