//! The age identities at hand, from the places where sops itself looks for them. The only reader of those places.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use castle_layers::secrets::files::{Disk, Files, Privacy};
use castle_model::Secret;
use castle_sops::{Identities, SopsError};

use crate::exit::Problem;
use crate::output;
use crate::settings::Settings;

/// The identity itself.
const KEY: &str = "SOPS_AGE_KEY";
/// A file of identities.
const KEY_FILE: &str = "SOPS_AGE_KEY_FILE";
/// An ssh private key to use as an identity.
const SSH_FILE: &str = "SOPS_AGE_SSH_PRIVATE_KEY_FILE";
/// The usual file of identities, below the user's folder of configurations.
const USUAL: &str = "sops/age/keys.txt";
/// The usual ssh keys, below the home folder; the first that is there counts.
const USUAL_SSH: [&str; 2] = [".ssh/id_ed25519", ".ssh/id_rsa"];
/// What sops would start a program for, and castle does not.
const COMMANDS: [&str; 2] = ["SOPS_AGE_KEY_CMD", "SOPS_AGE_SSH_PRIVATE_KEY_CMD"];

/// The identities at hand. All of them are tried.
#[derive(Debug, Default)]
pub(crate) struct AtHand {
    pub(crate) identities: Identities,
    /// Where they are from, in words.
    pub(crate) places: Vec<String>,
    /// What a person should know.
    pub(crate) notices: Vec<String>,
    /// Keys in usual places that age can not use, and why. Worth telling only where nothing else fits.
    pub(crate) passed_over: Vec<String>,
}

/// Every identity at hand. None at all is no mistake yet: not everybody needs one.
pub(crate) fn at_hand(settings: &Settings) -> Result<AtHand, Problem> {
    let mut found = AtHand::default();
    for name in COMMANDS.into_iter().filter(|name| settings.get(name).is_some()) {
        found.notices.push(format!(
            "{name} is set, and castle starts no program for an identity: give it by {KEY}"
        ));
    }
    if let Some(text) = settings.get(KEY) {
        found.take(KEY.to_owned(), &Secret::new(text))?;
    }
    if let Some(path) = settings.get(KEY_FILE) {
        found.read(settings, KEY_FILE, Path::new(path))?;
    }
    if let Some(path) = usual_file(settings)
        && path.exists()
    {
        found.read(settings, "the usual file", &path)?;
    }
    if let Some(path) = settings.get(SSH_FILE) {
        found.read(settings, SSH_FILE, Path::new(path))?;
    } else if let Some(path) = usual_ssh(settings) {
        // Nobody named it for this: one that age can not use is no reason to stop.
        if let Err(problem) = found.read(settings, "an ssh key", &path) {
            let why = problem.causes.last().cloned().unwrap_or(problem.what);
            found.passed_over.push(format!("{} was passed over: {why}", path.display()));
        }
    }
    Ok(found)
}

/// The file that `age-keygen -o` is best pointed at: where sops looks without being told.
pub(crate) fn usual_file(settings: &Settings) -> Option<PathBuf> {
    let home = || settings.get("HOME").map(PathBuf::from);
    let configured = settings.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = configured.filter(|folder| folder.is_absolute()).or_else(|| {
        let below =
            if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
        Some(home()?.join(below))
    })?;
    Some(folder.join(USUAL))
}

fn usual_ssh(settings: &Settings) -> Option<PathBuf> {
    let home = settings.get("HOME").map(PathBuf::from)?;
    USUAL_SSH.iter().map(|name| home.join(name)).find(|path| path.exists())
}

impl AtHand {
    /// Tells what a person should know.
    pub(crate) fn told(self) -> Self {
        for notice in &self.notices {
            output::talk(&format!("notice: {notice}"));
        }
        self
    }

    /// Takes the identities of a text in.
    fn take(&mut self, place: String, text: &Secret) -> Result<(), Problem> {
        let identities = Identities::parse(text).map_err(|error| unusable(&place, &error))?;
        self.identities.add(identities);
        self.places.push(place);
        Ok(())
    }

    /// Takes the identities of a file in.
    fn read(&mut self, settings: &Settings, named: &str, path: &Path) -> Result<(), Problem> {
        let place = format!("{} ({named})", path.display());
        let failed = |why: String| {
            let mut problem =
                Problem::usage(format!("the age identity in {place} can not be read"));
            problem.causes.push(why);
            problem.hint(format!("make one with age-keygen, or give it by {KEY}; nothing was done"))
        };
        let disk = Disk { project: settings.directory.clone(), home: None };
        let content = disk.read(&path.to_string_lossy(), Privacy::Any).map_err(failed)?;
        let content = content.ok_or_else(|| failed("there is no such file".to_owned()))?;
        let text = std::str::from_utf8(&content)
            .map_err(|_| failed("it is not text; is it encrypted?".to_owned()))?;
        self.take(place, &Secret::new(text))?;
        let mode = std::fs::metadata(settings.directory.join(path)).map(|m| m.permissions().mode());
        if let Ok(mode) = mode
            && mode & 0o077 != 0
        {
            let (mode, path) = (mode & 0o777, path.display());
            self.notices.push(format!(
                "others may read the private key in {path} (mode {mode:04o}): chmod 600 it"
            ));
        }
        Ok(())
    }
}

fn unusable(place: &str, error: &SopsError) -> Problem {
    Problem::usage(format!("the age identity in {place} can not be used"))
        .because(error)
        .hint(error.cure())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Made for these tests, and for nothing else.
    const IDENTITY: &str =
        "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";

    /// Likewise.
    const SSH: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n\
QyNTUxOQAAACCBfxUGPpy0qCJQRCNrSuMss2FgkIvKZp+ecDvTJ8zWzgAAAIjKPdwZyj3c\n\
GQAAAAtzc2gtZWQyNTUxOQAAACCBfxUGPpy0qCJQRCNrSuMss2FgkIvKZp+ecDvTJ8zWzg\n\
AAAECB170drP9ngP0s3UATdDdODdYr/+Cn8WWBZWQ35ohPb4F/FQY+nLSoIlBEI2tK4yyz\n\
YWCQi8pmn55wO9MnzNbOAAAABHRlc3QB\n\
-----END OPENSSH PRIVATE KEY-----\n";

    fn settings(home: &Path, variables: &[(&str, &str)]) -> Settings {
        let mut environment: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        environment.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
        Settings {
            environment,
            directory: home.to_owned(),
            host: "h".to_owned(),
            stderr_is_terminal: false,
            stdout_is_terminal: false,
            stdin_is_terminal: false,
            launch: crate::settings::Launch::default(),
            looks: crate::settings::Looks::default(),
        }
    }

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn identities_are_found_where_sops_finds_them() {
        let home = tempfile::tempdir().unwrap();
        let none = at_hand(&settings(home.path(), &[])).unwrap();
        assert!(none.identities.is_empty() && none.places.is_empty());

        write(&home.path().join(".config/sops/age/keys.txt"), IDENTITY, 0o600);
        write(&home.path().join("mine"), &format!("# mine\n{IDENTITY}\n"), 0o644);
        let all = at_hand(&settings(home.path(), &[(KEY, IDENTITY), (KEY_FILE, "mine")])).unwrap();
        let recipients = all.identities.recipients();
        assert_eq!(recipients.texts().count(), 3);
        assert!(recipients.texts().all(|text| text.starts_with("age1")));
        assert!(all.notices.iter().any(|notice| notice.contains("mode 0644")), "{:?}", all.notices);

        // Another folder of configurations stands in the place of the usual one.
        let other = home.path().join("other");
        let other = other.to_string_lossy();
        assert!(
            at_hand(&settings(home.path(), &[("XDG_CONFIG_HOME", &other)]))
                .unwrap()
                .places
                .is_empty()
        );
    }

    #[test]
    fn what_was_named_must_be_usable_and_is_never_repeated() {
        let home = tempfile::tempdir().unwrap();
        let damaged = IDENTITY.replace("2Y5J33", "2Y5J34");
        for variables in [[(KEY, damaged.as_str())], [(KEY_FILE, "none")], [(SSH_FILE, "none")]] {
            let problem = at_hand(&settings(home.path(), &variables)).unwrap_err();
            let text = problem.to_string();
            assert!(text.contains(variables[0].0) && !text.contains("778VQX"), "{text}");
        }
        // An ssh key in its usual place was not named by anybody.
        write(&home.path().join(".ssh/id_rsa"), "-----BEGIN OPENSSH PRIVATE KEY-----\n", 0o600);
        let found = at_hand(&settings(home.path(), &[("SOPS_AGE_KEY_CMD", "pass age")])).unwrap();
        assert!(found.identities.is_empty());
        assert!(found.notices[0].contains("SOPS_AGE_KEY_CMD"), "{:?}", found.notices);
        assert!(found.passed_over[0].contains("id_rsa was passed over"), "{found:?}");
    }

    #[test]
    fn an_ssh_key_that_merely_lies_there_opens_files_and_is_no_recipient_beside_ages_own() {
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join(".ssh/id_ed25519"), SSH, 0o600);
        let own = |variables: &[(&str, &str)]| {
            let found = at_hand(&settings(home.path(), variables)).unwrap();
            let recipients = found.identities.own_recipients();
            let kinds: Vec<String> = recipients.texts().map(|text| text[..4].to_owned()).collect();
            (found.identities.recipients().texts().count(), kinds.join(" "))
        };
        assert_eq!(own(&[]), (1, "ssh-".to_owned()));
        assert_eq!(own(&[(KEY, IDENTITY)]), (2, "age1".to_owned()));
    }
}
