//! Several sources in their order, and an encrypted file in the place of Infisical.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use castle_model::spec::{
    EnvSpec, EscrowAfterDown, EscrowFile, EscrowPlace, FileSpec, SopsSpec, SourceSpec,
};
use castle_platforms::escrow::{KUBECONFIG_KEY, TALOSCONFIG_KEY};
use castle_platforms::ids::{secrets_escrow, secrets_read};
use castle_sops::{Format, Identities, Rules, Tree, seal};

use super::*;
use crate::secrets::files::{Disk, Files, Memory, Privacy};
use crate::secrets::source::{Sources, Values};

fn identities(seed: u8) -> Arc<Identities> {
    Arc::new(Identities::of_seed(&[seed; 32]))
}

/// A spec whose secrets come from these sources, and the access to them.
struct Setting {
    spec: Spec,
    access: Access,
    host: Host,
}

impl Setting {
    fn new(sources: Vec<SourceSpec>, folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut spec = castle_config::example();
        let host = Host::open(None, &spec, 1).unwrap();
        spec.secrets.sources = sources;
        spec.secrets.require = Vec::new();
        spec.secrets.escrow.place = escrow("blue.escrow.enc.yaml", &[]);
        let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new(*value));
        let access = Access {
            identities: BTreeMap::new(),
            age: identities(7),
            environment: environment.iter().map(variable).collect(),
            files: Arc::new(Disk { project: folder.to_owned(), home: None }),
            invented: None,
        };
        Self { spec, access, host }
    }

    fn open(&self) -> Sources {
        Sources::open(&self.spec, &self.host.world(), &self.access).unwrap()
    }

    async fn gather(&self) -> Result<super::super::gather::Gathered, castle_model::Failure> {
        self.open().gather(&self.spec).await
    }
}

fn escrow(file: &str, recipients: &[&str]) -> EscrowPlace {
    let recipients = recipients.iter().map(|r| (*r).to_owned()).collect();
    EscrowPlace::File(EscrowFile { file: file.to_owned(), recipients })
}

fn env(prefix: &str) -> SourceSpec {
    SourceSpec::Env(EnvSpec { prefix: prefix.to_owned() })
}

fn file(path: &str) -> SourceSpec {
    SourceSpec::File(FileSpec { path: path.to_owned() })
}

fn sops(path: &str) -> SourceSpec {
    SourceSpec::Sops(SopsSpec { file: path.to_owned() })
}

fn write(folder: &Path, name: &str, mode: u32, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
}

fn sealed(entries: &[(&str, &str)], seed: u8) -> String {
    let tree = Tree::flat(entries.iter().map(|(k, v)| ((*k).to_owned(), Secret::new(*v))));
    let recipients = identities(seed).recipients();
    let now = castle_model::time::Moment::default();
    seal(&tree, Format::Yaml, &recipients, &Rules::default(), now, &mut |b| b.fill(9)).unwrap()
}

#[tokio::test]
async fn the_first_source_that_has_a_key_wins_and_no_value_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "first",
        0o600,
        "PROXMOX_TOKEN_ID=root@pam!first\nGITHUB_TOKEN=\"ghp_first\"\n",
    );
    let second = [("GITHUB_TOKEN", "ghp_second"), ("PROXMOX_TOKEN_SECRET", "from-sops")];
    write(folder.path(), "second.enc.yaml", 0o644, &sealed(&second, 7));
    let sources = vec![file("first"), sops("second.enc.yaml"), env("CASTLE_")];
    let environment = [("CASTLE_GITHUB_TOKEN", "third"), ("CASTLE_PROXMOX_TOKEN_SECRET", "third")];
    let setting = Setting::new(sources, folder.path(), &environment);
    let gathered = setting.gather().await.unwrap();
    assert!(gathered.failure().is_none());
    let value = |key: &str| gathered.values[key].expose();
    assert_eq!(value("PROXMOX_TOKEN_ID"), "root@pam!first");
    assert_eq!(value("GITHUB_TOKEN"), "ghp_first");
    assert_eq!(value("PROXMOX_TOKEN_SECRET"), "from-sops");
    assert_eq!(gathered.origins["PROXMOX_TOKEN_SECRET"], "PROXMOX_TOKEN_SECRET in second.enc.yaml");
}

#[tokio::test]
async fn a_value_that_is_there_and_empty_is_no_reason_to_look_further() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "first", 0o600, "GITHUB_TOKEN=\nPROXMOX_TOKEN_ID=two words\n");
    let setting =
        Setting::new(vec![file("first"), env("")], folder.path(), &[("GITHUB_TOKEN", "x")]);
    let gathered = setting.gather().await.unwrap();
    let failure = gathered.failure().unwrap();
    insta::assert_snapshot!(failure.why, @"missing: PROXMOX_TOKEN_SECRET; not usable: GITHUB_TOKEN, PROXMOX_TOKEN_ID");
    let places: Vec<String> = failure.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(places.join("\n"), @r"
    PROXMOX_TOKEN_SECRET in first, nor the variable PROXMOX_TOKEN_SECRET of the environment: it is not there; add it
    GITHUB_TOKEN in first: it is empty; put it right there
    PROXMOX_TOKEN_ID in first: it holds white space, and a token is wanted: one word; put it right there
    ");
    assert!(!format!("{failure:?}").contains("two words"));
}

#[tokio::test]
async fn what_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "open", 0o644, "GITHUB_TOKEN=x\n");
    let setting = Setting::new(vec![file("open")], folder.path(), &[]);
    let failure = setting.gather().await.unwrap_err();
    assert_eq!(failure.class, Class::Denied);
    insta::assert_snapshot!(failure.why, @"others may read it (mode 0644): chmod 600 it");
    // A folder, one file for each key, is the same.
    fs::create_dir(folder.path().join("keys")).unwrap();
    fs::set_permissions(folder.path().join("keys"), Permissions::from_mode(0o755)).unwrap();
    write(folder.path(), "keys/GITHUB_TOKEN", 0o600, "ghp_x\n");
    let setting = Setting::new(vec![file("keys")], folder.path(), &[]);
    assert!(setting.gather().await.unwrap_err().why.contains("chmod 700"));
    fs::set_permissions(folder.path().join("keys"), Permissions::from_mode(0o700)).unwrap();
    let gathered = setting.gather().await.unwrap();
    assert_eq!(gathered.values["GITHUB_TOKEN"].expose(), "ghp_x");
    assert_eq!(gathered.notices, ["GITHUB_TOKEN: the white space around its value was left out"]);
    write(folder.path(), "keys/GITHUB_TOKEN", 0o640, "ghp_x\n");
    assert_eq!(setting.gather().await.unwrap_err().class, Class::Denied);
}

#[tokio::test]
async fn a_source_that_can_not_be_read_is_not_one_without_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let environment =
        [("GITHUB_TOKEN", "x"), ("PROXMOX_TOKEN_ID", "x"), ("PROXMOX_TOKEN_SECRET", "x")];
    for (name, text) in [
        ("gone.enc.yaml", None),
        ("clear.enc.yaml", Some("GITHUB_TOKEN: hunter2\n".to_owned())),
        ("other.enc.yaml", Some(sealed(&[("GITHUB_TOKEN", "hunter2")], 8))),
        ("cut.enc.yaml", Some(sealed(&[("GITHUB_TOKEN", "hunter2")], 7)[..300].to_owned())),
    ] {
        if let Some(text) = text {
            write(folder.path(), name, 0o600, &text);
        }
        let setting = Setting::new(vec![sops(name), env("")], folder.path(), &environment);
        let failure = setting.gather().await.unwrap_err();
        assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
        assert!(failure.hint.is_some() && failure.what.contains(name), "{failure:?}");
    }
}

#[tokio::test]
async fn an_escrow_file_keeps_and_gives_back_and_goes_when_it_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let setting = Setting::new(vec![env("")], folder.path(), &[]);
    let path = folder.path().join("blue.escrow.enc.yaml");
    let life = "0011223344556677".parse().unwrap();
    let (bundle, kubeconfig) =
        (Secret::new("# castle blue\na: 1\n"), Secret::new("  kind: Config\n\n"));
    let escrow = setting.open().escrow;
    assert!(escrow.0.kept().await.unwrap().is_empty());
    escrow.keep(&life, &[(BUNDLE_KEY, &bundle)]).await.unwrap();
    let first = fs::read_to_string(&path).unwrap();
    assert!(!first.contains("castle blue") && first.contains("ENC[AES256_GCM"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    escrow.keep(&life, &[(KUBECONFIG_KEY, &kubeconfig)]).await.unwrap();
    // What did not change keeps its ciphertext, so that a difference in Git tells what did.
    let line = first.lines().next().unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains(line), "{line}");
    // Another process, the same file.
    let kept = setting.open().escrow.0.kept().await.unwrap();
    assert_eq!(kept[BUNDLE_KEY], bundle);
    assert_eq!(kept[KUBECONFIG_KEY], kubeconfig);
    // Somebody without the key learns nothing and changes nothing.
    let mut stranger = Setting::new(vec![env("")], folder.path(), &[]);
    stranger.access.age = identities(8);
    let failure = stranger.open().escrow.keep(&life, &[(BUNDLE_KEY, &bundle)]).await.unwrap_err();
    assert_eq!(failure.class, Class::Denied, "{failure:?}");
    escrow.0.remove(&[KUBECONFIG_KEY, TALOSCONFIG_KEY]).await.unwrap();
    let left = setting.open().escrow.0.kept().await.unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), [BUNDLE_KEY]);
    escrow.0.remove(&[BUNDLE_KEY, KUBECONFIG_KEY]).await.unwrap();
    assert!(!path.exists());
    escrow.0.remove(&[BUNDLE_KEY]).await.unwrap();
}

#[tokio::test]
async fn an_escrow_file_is_encrypted_for_whom_the_castle_file_names_and_castle_must_be_among_them()
{
    let folder = tempfile::tempdir().unwrap();
    let mut setting = Setting::new(vec![env("")], folder.path(), &[]);
    let (ours, theirs) = (identities(7).recipients(), identities(8).recipients());
    let [ours, theirs] = [&ours, &theirs].map(|r| r.texts().next().unwrap());
    let life = "0011223344556677".parse().unwrap();
    let text = Secret::new("x");
    setting.spec.secrets.escrow.place = escrow("e.enc.yaml", &[theirs]);
    let failure = setting.open().escrow.keep(&life, &[("A", &text)]).await.unwrap_err();
    assert!(failure.hint.unwrap().contains(ours));
    assert!(!folder.path().join("e.enc.yaml").exists());
    setting.spec.secrets.escrow.place = escrow("e.enc.yaml", &[ours]);
    setting.open().escrow.keep(&life, &[("A", &text)]).await.unwrap();
    // A recipient more: the file is theirs too from the next write on.
    setting.spec.secrets.escrow.place = escrow("e.enc.yaml", &[ours, theirs]);
    setting.open().escrow.keep(&life, &[("B", &text)]).await.unwrap();
    setting.access.age = identities(8);
    assert_eq!(setting.open().escrow.0.kept().await.unwrap().len(), 2);
}

/// A castle without Infisical, its secrets invented and its own kept in an encrypted file, in memory.
fn in_a_file(seed: u64, source: SourceSpec) -> (Bench, Arc<Memory>) {
    let mut bench = Bench::new(seed);
    let mut spec = Spec::clone(&bench.spec);
    spec.secrets.sources = vec![source];
    spec.secrets.escrow.place = escrow("blue.escrow.enc.yaml", &[]);
    bench.spec = Arc::new(spec);
    let files = Arc::new(Memory::default());
    bench.access = Some(Access {
        identities: BTreeMap::new(),
        age: Arc::new(Identities::of_seed(&bench.host.age_seed())),
        environment: Values::new(),
        files: files.clone(),
        invented: Some(bench.host.invented_secrets()),
    });
    (bench, files)
}

/// The castle of the example without Infisical: secrets invented, its own kept in an encrypted file.
#[tokio::test(start_paused = true)]
async fn a_castle_without_infisical_rises_from_an_escrow_file_and_goes_with_it() {
    let (mut bench, files) = in_a_file(1, sops("secrets.enc.yaml"));
    assert_done(&bench.up().await);
    let kept = files.read("blue.escrow.enc.yaml", Privacy::Any).unwrap().unwrap();
    assert!(String::from_utf8(kept.to_vec()).unwrap().contains("TALOS_SECRETS_BUNDLE: ENC["));
    // The state is lost, the file is not: everything is adopted.
    bench.disk = MemoryDisk::new();
    let (plan, report) = bench.run(Direction::Up).await;
    assert_done(&report);
    assert!(plan.is_quiet());
    assert_done(&bench.run(Direction::Down).await.1);
    assert!(files.read("blue.escrow.enc.yaml", Privacy::Any).unwrap().is_none());
    assert!(bench.inventory().proxmox.guests.is_empty());
}

/// No identity, or one that the castle file does not encrypt for: known before anything is made, and told by `check`.
#[tokio::test(start_paused = true)]
async fn a_place_that_castle_could_not_read_again_is_refused_before_a_life_begins() {
    let (mut bench, files) = in_a_file(3, env(""));
    let access = Access { age: Arc::default(), ..bench.access.take().unwrap() };
    let sources = Sources::open(&bench.spec, &bench.host.world(), &access).unwrap();
    let refused = sources.keeps().unwrap_err();
    assert_eq!(refused.class, Class::Denied, "{refused:?}");
    bench.access = Some(access);
    let (plan, report) = bench.run(Direction::Up).await;
    let failure = &report.failures[&secrets_escrow()];
    assert_eq!((&failure.why, &failure.hint), (&refused.why, &refused.hint), "{failure:?}");
    // The look that the plan is made of has met it: nobody is asked to agree to what can not be.
    let reason = &plan.step(&secrets_escrow()).unwrap().reason;
    assert!(reason.contains(&refused.why), "{reason}");
    assert!(bench.inventory().proxmox.guests.is_empty());
    assert!(files.read("blue.escrow.enc.yaml", Privacy::Any).unwrap().is_none());
}

/// A damaged file says what can still be done; moved away, the castle can be razed and begun anew.
#[tokio::test(start_paused = true)]
async fn a_damaged_escrow_file_does_not_hold_a_castle_for_ever() {
    let (mut bench, files) = in_a_file(4, env(""));
    assert_done(&bench.up().await);
    let kept = files.read("blue.escrow.enc.yaml", Privacy::Any).unwrap().unwrap();
    let text = String::from_utf8(kept.to_vec()).unwrap();
    let damaged = text.replacen("data:", "data:AAAA", 1);
    files.write("blue.escrow.enc.yaml", damaged.as_bytes()).unwrap();
    let before = bench.mutations();
    let report = bench.up().await;
    let failure = &report.failures[&secrets_read()];
    assert_eq!(failure.class, Class::Invalid, "{failure:?}");
    let hint = failure.hint.as_ref().unwrap();
    assert!(hint.contains("take it from its repository again"), "{hint}");
    assert!(hint.contains("move the file away") && hint.contains("`castle down`"), "{hint}");
    assert_eq!(
        files.read("blue.escrow.enc.yaml", Privacy::Any).unwrap().unwrap()[..],
        *damaged.as_bytes()
    );
    assert_eq!(bench.mutations(), before);
    // As the hint says.
    files.remove("blue.escrow.enc.yaml").unwrap();
    assert!(bench.up().await.failures.contains_key(&secrets_escrow()), "never two lives");
    assert_eq!(bench.mutations(), before);
    assert_done(&bench.run(Direction::Down).await.1);
    assert_done(&bench.up().await);
    assert_eq!(bench.inventory().proxmox.guests.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_kept_after_down_is_kept() {
    let mut bench = Bench::new(2);
    let mut spec = Spec::clone(&bench.spec);
    spec.secrets.escrow.after_down = EscrowAfterDown::Keep;
    bench.spec = Arc::new(spec);
    assert_done(&bench.up().await);
    assert_done(&bench.run(Direction::Down).await.1);
    assert!(bench.inventory().secrets.iter().any(|key| key.ends_with(BUNDLE_KEY)));
    // The next birth is a new life all the same.
    assert_done(&bench.up().await);
    bench.assert_risen();
}
