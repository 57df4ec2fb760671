//! The built-in layers above the platform: their settings, judged with what else stands in the file.

use std::ops::Range;

use castle_model::spec::{
    EngineSpec, GitCredentials, GitopsSpec, LayerOwner, NetworkingSpec, ResourcesSpec, Role,
    SecretsSpec, StorageSpec,
};

use crate::Sources;
use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::machines::{self, Group};
use crate::object_patches;
use crate::reader::Contents;

/// What Longhorn needs on each machine.
const LONGHORN_EXTENSIONS: [&str; 2] = ["siderolabs/iscsi-tools", "siderolabs/util-linux-tools"];

/// Where Talos mounts the disk for volumes.
const DATA_DISK: &str = "/var/mnt/longhorn";

/// The layers that castle knows by itself.
pub(crate) struct BuiltIn {
    pub(crate) engine: EngineSpec,
    pub(crate) networking: NetworkingSpec,
    pub(crate) storage: StorageSpec,
    pub(crate) gitops: GitopsSpec,
}

/// Reads the built-in layers; none if something of them is wrong.
pub(crate) fn read(
    castle: &Contents,
    groups: &[Group],
    secrets: Option<&SecretsSpec>,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<BuiltIn> {
    let engine = engine(castle, sources, findings);
    let networking = networking(castle, sources, findings);
    let storage = storage(castle, groups, sources, findings);
    let store =
        Store { infisical: secrets.map(|s| s.infisical().is_some()), engine: engine.as_ref() };
    let gitops = gitops(castle, &store, sources, findings);
    Some(BuiltIn { engine: engine?, networking: networking?, storage: storage?, gitops: gitops? })
}

fn enabled(castle: &Contents, keyword: &str) -> bool {
    castle.block(keyword).is_none_or(|block| block.plain("enabled") == Some(true))
}

/// Who installs a layer, and whether that can be.
fn owner(castle: &Contents, keyword: &str, findings: &mut Findings) -> LayerOwner {
    let Some(block) = castle.block(keyword) else { return LayerOwner::Castle };
    let Some(owner) = block.get::<String>("owner").filter(|o| o.value == "flux") else {
        return LayerOwner::Castle;
    };
    if !enabled(castle, keyword) {
        return LayerOwner::Flux;
    }
    let flux = castle.block("gitops").is_some_and(|g| g.plain("enabled") != Some(false));
    if !flux && !castle.may_be_written("gitops") {
        findings.add(
            Finding::error(
                "C0804",
                format!("`{keyword}` is left to Flux, which this castle does not have"),
            )
            .at(&owner.range, "nobody would install it")
            .help("add gitops \"flux\" { … }, or leave `owner` out"),
        );
    }
    let keys = block.keys().filter(|(key, _)| !["enabled", "owner"].contains(key));
    let inner = block.blocks.iter().map(|b| (b.grammar.keyword, &b.header));
    for (key, range) in keys.chain(inner) {
        findings.add(
            Finding::error("C0805", format!("`{key}` is for castle, and Flux installs this layer"))
                .at(range, "nobody would look at it")
                .related(&owner.range, "left to Flux here")
                .help(format!("take `{key}` out, and set it in the repository")),
        );
    }
    LayerOwner::Flux
}

fn engine(castle: &Contents, sources: &Sources, findings: &mut Findings) -> Option<EngineSpec> {
    let enabled = enabled(castle, "engine");
    let owner = owner(castle, "engine", findings);
    let Some(block) = castle.block("engine") else {
        return Some(EngineSpec { enabled, ..EngineSpec::default() });
    };
    let resources =
        block.block("resources").map_or_else(ResourcesSpec::default, |r| ResourcesSpec {
            cpu: r.plain("cpu"),
            memory: r.plain("memory"),
            memory_limit: r.plain("memory_limit"),
        });
    Some(EngineSpec {
        enabled,
        owner,
        version: block.plain("version"),
        replicas: block.plain::<i64>("replicas").and_then(|r| u32::try_from(r).ok()),
        resources,
        patches: object_patches::read(block, sources, findings)?,
    })
}

fn networking(
    castle: &Contents,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<NetworkingSpec> {
    let enabled = enabled(castle, "networking");
    let owner = owner(castle, "networking", findings);
    let Some(block) = castle.block("networking") else {
        return Some(NetworkingSpec { enabled, ..NetworkingSpec::default() });
    };
    let patches = object_patches::read(block, sources, findings);
    Some(NetworkingSpec {
        enabled,
        owner,
        version: block.plain("version"),
        control_planes: block.plain("control_planes")?,
        patches: patches?,
    })
}

/// Whether the cluster can read the castle's secrets by itself; what is not known was wrong already.
struct Store<'c> {
    infisical: Option<bool>,
    engine: Option<&'c EngineSpec>,
}

impl Store<'_> {
    /// Why it can not; none if it can, or if that is not known.
    fn lacking(&self) -> Option<&'static str> {
        let engine = self.engine?;
        match self.infisical? {
            false => {
                Some("External Secrets reads from Infisical, which is not a source of this castle")
            }
            true if !engine.enabled => Some("External Secrets is off in this castle"),
            true if engine.owner == LayerOwner::Flux => Some(
                "Flux installs External Secrets here, and Flux reads the repository with these credentials",
            ),
            true => None,
        }
    }
}

fn gitops(
    castle: &Contents,
    store: &Store<'_>,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<GitopsSpec> {
    let Some(block) = castle.block("gitops") else {
        return Some(GitopsSpec { branch: "main".to_owned(), ..GitopsSpec::default() });
    };
    if let Some(owner) = block.get::<String>("owner").filter(|owner| owner.value == "flux") {
        findings.add(
            Finding::error("C0804", "Flux can not install itself")
                .at(&owner.range, "somebody has to put it there")
                .note("castle installs Flux and hands over; what the repository holds is Flux' own from then on")
                .help("leave `owner` out, or set `enabled = false` and put Flux there in another way"),
        );
    }
    let credentials = credentials(block, store, findings);
    let patches = object_patches::read(block, sources, findings);
    let milestones: Vec<Located<String>> = block.plain("milestones")?;
    Some(GitopsSpec {
        enabled: block.plain("enabled")?,
        version: block.plain("version"),
        url: block.plain("url")?,
        branch: block.plain("branch")?,
        path: block.plain("path")?,
        token: block.plain("token"),
        credentials,
        vars: block.plain("vars")?,
        milestones: milestones.into_iter().map(|milestone| milestone.value).collect(),
        patches: patches?,
    })
}

fn credentials(block: &Contents, store: &Store<'_>, findings: &mut Findings) -> GitCredentials {
    let lacking = store.lacking();
    let Some(given) = block.get::<String>("credentials") else {
        let engine = block.may_be_written("token") && lacking.is_none();
        return if engine { GitCredentials::Engine } else { GitCredentials::Direct };
    };
    if !block.may_be_written("token") {
        findings.add(
            Finding::error("C0113", "`credentials` without `token`")
                .at(&given.range, "of no token")
                .help("add token = secret(\"GITHUB_TOKEN\"), or take `credentials` out"),
        );
    }
    if given.value != "engine" {
        return GitCredentials::Direct;
    }
    if let Some(reason) = lacking {
        findings.add(
            Finding::error("C0806", "the token can not come through External Secrets here")
                .at(&given.range, "the cluster can not read it")
                .note(reason)
                .help("set credentials = \"direct\": castle then places the token itself"),
        );
    }
    GitCredentials::Engine
}

/// How many machines carry volumes: those with a disk for it, else the workers. None if that is not known.
fn storage_machines(groups: &[Group]) -> Option<(u32, &'static str)> {
    let known = groups.iter().map(|g| g.role).eq([Role::ControlPlane, Role::Worker]);
    if !known || groups.iter().any(|g| g.count.is_none()) {
        return None;
    }
    let sum = |wanted: &dyn Fn(&Group) -> bool| {
        groups.iter().filter(|g| wanted(g)).filter_map(|g| g.count).sum()
    };
    let with_disk: u32 = sum(&|g| g.data_disk);
    let workers: u32 = sum(&|g| g.label() == "worker");
    match (with_disk, workers) {
        (_, 0) => None,
        (0, workers) => Some((workers, "workers")),
        (with_disk, _) => Some((with_disk, "machines with a `data_disk`")),
    }
}

fn storage(
    castle: &Contents,
    groups: &[Group],
    sources: &Sources,
    findings: &mut Findings,
) -> Option<StorageSpec> {
    let enabled = enabled(castle, "storage");
    let block = castle.block("storage");
    let replicas = block.and_then(|b| b.get::<i64>("replicas"));
    let machines = storage_machines(groups).filter(|_| !machines::misread(castle));
    let usual = machines.map_or(2, |(count, _)| count.clamp(1, 2));
    let owner = owner(castle, "storage", findings);
    if let (true, Some(machines)) = (enabled, machines) {
        copies(replicas.as_ref(), machines, findings);
        let with_disk = groups.iter().any(|g| g.data_disk && g.count.unwrap_or(0) > 0);
        if !with_disk && machines.0 > 0 {
            no_disk(block.map_or(&castle.header, |b| &b.header), machines.1, findings);
        }
        if let Some(path) = block.and_then(|b| b.get::<String>("data_path")).filter(|_| with_disk) {
            beside_the_disk(&path, findings);
        }
    }
    extensions(castle, enabled, findings);
    let replicas = replicas.and_then(|r| u32::try_from(r.value).ok()).unwrap_or(usual);
    let number = |key| block.and_then(|b| b.plain::<i64>(key)).and_then(|n| u32::try_from(n).ok());
    let patches = block.map_or(Some(Vec::new()), |b| object_patches::read(b, sources, findings));
    Some(StorageSpec {
        enabled,
        owner,
        version: block.and_then(|b| b.plain("version")),
        replicas,
        data_path: block.and_then(|b| b.plain("data_path")),
        over_provisioning: number("over_provisioning"),
        patches: patches?,
    })
}

fn copies(replicas: Option<&Located<i64>>, machines: (u32, &str), findings: &mut Findings) {
    let (count, which) = machines;
    let Some(replicas) = replicas.filter(|r| r.value > i64::from(count)) else { return };
    let title = format!("{} copies of each volume on {count} {which}", replicas.value);
    findings.add(
        Finding::error("C0801", title)
            .at(&replicas.range, "more copies than machines")
            .note("each copy needs a machine of its own, so volumes would stay degraded for ever")
            .help(format!("set replicas = {}, or add machines with a `data_disk`", count.max(1))),
    );
}

/// Warns of a folder that the disk for volumes is not mounted at.
fn beside_the_disk(path: &Located<String>, findings: &mut Findings) {
    let below = path.value.strip_prefix(DATA_DISK);
    if below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return;
    }
    findings.add(
        Finding::warning("C0807", "volumes would not live on the `data_disk`")
            .at(&path.range, "on the system disk, unless something else is mounted there")
            .note(format!("Talos mounts a `data_disk` at {DATA_DISK}"))
            .help("leave `data_path` out, or mount a volume of your own there by a patch of `machine`"),
    );
}

fn no_disk(range: &Range<usize>, which: &str, findings: &mut Findings) {
    findings.add(
        Finding::warning("C0802", "no machine has a disk for volumes")
            .at(range, "Longhorn is installed")
            .note(format!(
                "volumes then live on the system disks of the {which}, beside images and logs"
            ))
            .help(
                "give the workers a `data_disk`, or set `enabled = false` in storage \"longhorn\"",
            ),
    );
}

fn extensions(castle: &Contents, longhorn: bool, findings: &mut Findings) {
    let Some(list) =
        castle.block("platform").and_then(|p| p.get::<Vec<Located<String>>>("extensions"))
    else {
        return;
    };
    for needed in LONGHORN_EXTENSIONS {
        if longhorn && !list.value.iter().any(|e| e.value == needed) {
            findings.add(
                Finding::error("C0803", format!("Longhorn needs the extension `{needed}`"))
                    .at(&list.range, "not among these")
                    .note("without it volumes can not be attached on Talos")
                    .help(format!(
                        "add \"{needed}\", or set `enabled = false` in storage \"longhorn\""
                    )),
            );
        }
    }
}
