//! The castle file and what stands beside it, read from the disk with limits and handed to `config` as a snapshot.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use castle_config::limits::MAX_BYTES;
use castle_config::{Finding, Read, Sources};
use castle_kubernetes::manifest::parse_all;
use castle_model::Spec;
use castle_model::suggest::nearest;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};

use crate::answer;
use crate::castle::Place;
use crate::exit::Problem;
use crate::output;
use crate::settings::{Settings, Stream};

/// The name that is looked for in the working folder.
pub(crate) const CASTLE_FILE: &str = "castle.hcl";

/// The name of what pins a castle's parts, beside its file.
pub(crate) const LOCK_FILE: &str = "castle.lock";

/// How many files one layer's `manifests` folder may hold.
const MANIFESTS_MAX: usize = 500;

/// The castle file that a command is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// The example that is built in.
    Example,
    /// One of the user's own.
    Own(PathBuf),
}

/// Finds the castle file: the one named, else `castle.hcl` here, else the example.
pub(crate) fn find(named: Option<&Path>, settings: &Settings) -> Which {
    if let Some(path) = named {
        return Which::Own(settings.directory.join(path));
    }
    let here = settings.directory.join(CASTLE_FILE);
    if std::fs::symlink_metadata(&here).is_ok() { Which::Own(here) } else { Which::Example }
}

/// Reads the castle file and every file that it names.
pub(crate) fn load(which: &Which, settings: &Settings) -> Result<Sources, Problem> {
    let environment = settings.environment.clone();
    let path = match which {
        Which::Example => {
            return Ok(Sources {
                file: "example/castle.hcl".to_owned(),
                text: castle_config::EXAMPLE.as_bytes().to_vec(),
                environment,
                files: BTreeMap::new(),
                lock: None,
            });
        }
        Which::Own(path) => path,
    };
    let shown = path.strip_prefix(&settings.directory).unwrap_or(path).display().to_string();
    let folder = path.parent().unwrap_or(Path::new("."));
    let text = read_regular(path).map_err(|why| {
        let problem = Problem::usage(format!("the castle file {shown} can not be read: {why}"));
        problem.hint(instead(path, folder))
    })?;
    let mut files = BTreeMap::new();
    for wanted in castle_config::wanted_files(&text) {
        // What can not be read is left out here; `config` then says so at the place that names it.
        if let Some(inner) = wanted.strip_suffix('/') {
            read_folder(folder, inner, &mut files)?;
        } else if let Some(found) = within(folder, &wanted)
            && let Ok(bytes) = read_regular(&found)
        {
            files.insert(wanted, bytes);
        }
    }
    let lock = lock_beside(path, &shown)?;
    Ok(Sources { file: shown, text, environment, files, lock })
}

/// What to do about a castle file that can not be read: the one that was meant, or where to begin.
fn instead(path: &Path, folder: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|other| other != name && Path::new(other).extension().is_some_and(|e| e == "hcl"))
        .collect();
    if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
        return format!("did you mean `-f {}`?", path.with_file_name(near).display());
    }
    format!(
        "`-f FILE` names it, and without `-f` it is {CASTLE_FILE} in this folder, or else the built-in example; castle's folder `examples` has files to begin with"
    )
}

/// The bytes of the lock beside a castle file. One that is there and can not be read is not overlooked.
fn lock_beside(castle_file: &Path, shown: &str) -> Result<Option<Vec<u8>>, Problem> {
    let path = castle_file.with_file_name(LOCK_FILE);
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    read_regular(&path).map(Some).map_err(|why| {
        Problem::usage(format!("{LOCK_FILE} beside the castle file {shown} can not be read: {why}"))
    })
}

/// The spec of a castle file that is without error; prints what was found in it otherwise.
pub(crate) fn spec(
    which: &Which,
    place: Place,
    json: bool,
    settings: &Settings,
) -> Result<Spec, Problem> {
    let mut sources = load(which, settings)?;
    // The rehearsal's factory makes images of its own, so what is pinned for the real ones is not true of them.
    sources.lock = sources.lock.filter(|_| place == Place::Real);
    let read = read(&sources);
    if let Some(spec) = read.spec {
        return Ok(spec);
    }
    if json {
        tell(&read.findings);
    } else {
        output::talk(&castle_config::render(
            &read.findings,
            &sources,
            settings.colour(Stream::Talk),
            settings.width(Stream::Talk),
        ));
    }
    Err(Problem::usage(format!(
        "the castle file {} is not right yet; nothing was done",
        sources.file
    ))
    .hint("mend what is named above; `castle check` looks at the file alone"))
}

/// Tells a program what was found in a castle file.
pub(crate) fn tell(findings: &[castle_config::Finding]) {
    for finding in findings {
        output::data(&answer::line("finding", finding));
    }
}

/// Judges the castle file, and then the manifests of its own layers: nothing is built for a layer that can not be applied.
pub(crate) fn read(sources: &Sources) -> Read {
    let mut read = castle_config::read(sources);
    let layers = read.spec.iter().flat_map(|spec| &spec.layers);
    let refused: Vec<Finding> = layers
        .filter_map(|layer| {
            let texts = layer.manifests.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            let error = parse_all(texts).err()?;
            Some(Finding::of_manifest(&sources.file, layer.name.as_str(), &error.to_string()))
        })
        .collect();
    if !refused.is_empty() {
        read.spec = None;
        read.findings.extend(refused);
    }
    read
}

/// Reads every manifest below a folder. One that can not be read is not overlooked: its objects would be missing, and
/// those of an earlier run be taken for unwanted.
fn read_folder(
    folder: &Path,
    wanted: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), Problem> {
    let mut open = vec![wanted.trim_end_matches('/').to_owned()];
    let mut found = 0;
    while let Some(inner) = open.pop() {
        let Some(entries) = within(folder, &inner).and_then(|path| std::fs::read_dir(path).ok())
        else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{inner}/{name}");
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
                continue;
            }
            let ending = Path::new(&name).extension().and_then(|e| e.to_str());
            if !matches!(ending, Some("yaml" | "yml" | "json")) {
                continue;
            }
            found += 1;
            if found > MANIFESTS_MAX {
                return Err(Problem::usage(format!(
                    "the folder {wanted} holds more than {MANIFESTS_MAX} manifests"
                ))
                .hint("make several layers of it, or join files"));
            }
            let bytes = match within(folder, &path) {
                Some(inside) => read_regular(&inside),
                None => Err("it leads nowhere, or out of the project folder".to_owned()),
            };
            let bytes = bytes.map_err(|why| {
                Problem::usage(format!("the manifest {path} can not be read: {why}"))
            })?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}

/// The real path of something inside the project folder; none if it leads out of it, by `..` or a link.
fn within(folder: &Path, wanted: &str) -> Option<PathBuf> {
    let root = folder.canonicalize().ok()?;
    let found = root.join(wanted).canonicalize().ok()?;
    found.starts_with(&root).then_some(found)
}

/// Reads a file that a command names, relative to the working folder.
pub(crate) fn read_named(path: &Path, settings: &Settings) -> Result<Vec<u8>, Problem> {
    read_regular(&settings.directory.join(path))
        .map_err(|why| Problem::usage(format!("{} can not be read: {why}", path.display())))
}

/// Reads a regular file of at most [`MAX_BYTES`] bytes; never hangs on a FIFO or a device.
fn read_regular(path: &Path) -> Result<Vec<u8>, String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened: OwnedFd =
        open(path, flags, Mode::empty()).map_err(|e| std::io::Error::from(e).to_string())?;
    let facts = fstat(&opened).map_err(|e| std::io::Error::from(e).to_string())?;
    match FileType::from_raw_mode(facts.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err("it is a folder, not a file".to_owned()),
        FileType::Fifo => return Err("it is a pipe (FIFO), not a file".to_owned()),
        _ => return Err("it is not a regular file".to_owned()),
    }
    let limit = MAX_BYTES as u64;
    let mut bytes = Vec::new();
    File::from(opened).take(limit + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("it is larger than {} KiB", limit / 1024));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(directory: &Path) -> Settings {
        Settings {
            environment: BTreeMap::new(),
            directory: directory.to_owned(),
            host: "h".to_owned(),
            stderr_is_terminal: false,
            stdout_is_terminal: false,
            stdin_is_terminal: false,
            launch: crate::settings::Launch::default(),
            looks: crate::settings::Looks::default(),
        }
    }

    #[test]
    fn without_a_castle_file_the_example_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        assert_eq!(find(None, &settings), Which::Example);
        std::fs::write(folder.path().join(CASTLE_FILE), "").unwrap();
        assert_eq!(find(None, &settings), Which::Own(folder.path().join(CASTLE_FILE)));
    }

    #[test]
    fn a_castle_file_that_is_not_there_is_answered_with_one_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let hint = |name: &str| {
            let which = find(Some(Path::new(name)), &settings);
            load(&which, &settings).unwrap_err().hint.unwrap()
        };
        assert!(hint("nix.hcl").contains("the built-in example; castle's folder `examples`"));
        std::fs::write(folder.path().join("green.hcl"), "").unwrap();
        assert!(hint("gren.hcl").contains("/green.hcl`?"), "{}", hint("gren.hcl"));
    }

    #[test]
    fn folders_pipes_and_giants_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_regular(folder.path()).unwrap_err().contains("folder"));
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        assert!(read_regular(&pipe).unwrap_err().contains("pipe"));
        let giant = folder.path().join("giant");
        File::create(&giant).unwrap().set_len(1 << 30).unwrap();
        assert!(read_regular(&giant).unwrap_err().contains("larger"));
        assert!(read_regular(&folder.path().join("nothing")).is_err());
    }

    #[test]
    fn every_manifest_below_a_folder_is_read_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let layer = folder.path().join("metrics");
        std::fs::create_dir_all(layer.join("deep/er")).unwrap();
        for name in ["a.yaml", "b.json", "notes.txt", "deep/er/c.yml"] {
            std::fs::write(layer.join(name), "x").unwrap();
        }
        let read = || {
            let mut files = BTreeMap::new();
            read_folder(folder.path(), "metrics", &mut files)
                .map(|()| files.into_keys().collect::<Vec<_>>())
                .map_err(|problem| problem.what)
        };
        assert_eq!(read().unwrap(), ["metrics/a.yaml", "metrics/b.json", "metrics/deep/er/c.yml"]);
        let giant = layer.join("giant.yaml");
        File::create(&giant).unwrap().set_len(1 << 30).unwrap();
        let told = "the manifest metrics/giant.yaml can not be read: it is larger than 1024 KiB";
        assert_eq!(read().unwrap_err(), told);
        std::fs::remove_file(&giant).unwrap();
        std::os::unix::fs::symlink("/nowhere.yaml", layer.join("link.yaml")).unwrap();
        assert!(read().unwrap_err().contains("metrics/link.yaml"));
        std::fs::remove_file(layer.join("link.yaml")).unwrap();
        for number in 0..MANIFESTS_MAX {
            std::fs::write(layer.join(format!("n{number}.yaml")), "x").unwrap();
        }
        assert!(read().unwrap_err().contains("more than 500"));
    }

    #[test]
    fn manifests_that_can_not_be_applied_are_findings() {
        let folder = tempfile::tempdir().unwrap();
        let layer = "  layer \"metrics\" {\n    manifests = \"metrics\"\n  }\n";
        let text =
            castle_config::EXAMPLE.replacen("  deadlines {", &format!("{layer}  deadlines {{"), 1);
        std::fs::write(folder.path().join(CASTLE_FILE), text).unwrap();
        std::fs::create_dir(folder.path().join("metrics")).unwrap();
        let told = |manifest: &str| {
            std::fs::write(folder.path().join("metrics/a.yaml"), manifest).unwrap();
            let settings = settings(folder.path());
            let read = read(&load(&find(None, &settings), &settings).unwrap());
            assert_eq!(read.spec.is_none(), read.findings.iter().any(|f| f.code == "C0708"));
            read.findings.into_iter().map(|f| f.title).collect::<Vec<_>>().join("; ")
        };
        let good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: metrics}\n";
        assert_eq!(told(good), "");
        for (manifest, expected) in [
            ("kind: [\n", "metrics/a.yaml:2:1: did not find expected node content"),
            ("apiVersion: v1\nmetadata: {name: a}\n", "it has no `kind`"),
            (
                &format!("{good}---\n{good}"),
                "document 2 (line 5): Namespace metrics was there before",
            ),
            (&"[".repeat(1_000), "nested deeper than 64"),
        ] {
            assert!(told(manifest).contains(expected), "{}", told(manifest));
        }
    }

    #[test]
    fn nothing_is_read_from_outside_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("project");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret"), inside.join("link")).unwrap();
        assert_eq!(within(&inside, "../secret"), None);
        assert_eq!(within(&inside, "link"), None);
    }
}
