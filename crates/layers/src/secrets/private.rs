//! A file or folder of one's own as a secret source: entries of a file, or the files of a folder.

use std::sync::Arc;

use async_trait::async_trait;
use castle_model::spec::FileSpec;
use castle_model::{Class, Failure, Secret};
use castle_sops::{SopsError, plain_entries};

use super::files::{Content, Files, Privacy};
use super::source::{Source, Values};

/// A file or folder that only its owner can read.
pub(crate) struct Private {
    path: String,
    files: Arc<dyn Files>,
}

impl Private {
    pub(crate) fn new(spec: &FileSpec, files: Arc<dyn Files>) -> Self {
        Self { path: spec.path.clone(), files }
    }

    fn unusable(&self, path: &str, why: String) -> Failure {
        Failure::new(Class::Denied, format!("read secrets from {path}"), why)
            .hint("a file of secrets in clear must be yours, and nobody else may read it; an encrypted one belongs into secrets \"sops\"")
            .evidence(format!("secrets \"file\" {{ path = \"{}\" }}", self.path))
    }

    fn folder(&self, names: &[String], wanted: &[String]) -> Result<Values, Failure> {
        let mut values = Values::new();
        for key in wanted.iter().filter(|key| names.contains(key)) {
            let path = format!("{}/{key}", self.path.trim_end_matches('/'));
            let content = self.files.read(&path, Privacy::Own);
            if let Some(content) = content.map_err(|why| self.unusable(&path, why))? {
                let value = text(&content).map_err(|why| self.unusable(&path, why))?;
                values.insert(key.clone(), value);
            }
        }
        Ok(values)
    }
}

#[async_trait]
impl Source for Private {
    fn place(&self) -> String {
        self.path.clone()
    }

    async fn read(&self, wanted: &[String]) -> Result<Values, Failure> {
        let failed = |why| self.unusable(&self.path, why);
        if let Some(names) = self.files.names(&self.path).map_err(failed)? {
            return self.folder(&names, wanted);
        }
        let Some(content) = self.files.read(&self.path, Privacy::Own).map_err(failed)? else {
            return Err(failed("there is no such file or folder".to_owned()));
        };
        let ending = self.path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let text = text(&content).map_err(failed)?;
        let values = match ending {
            "yaml" | "yml" | "json" => entries(&text),
            _ => lines(&text),
        };
        let values = values.map_err(|why| {
            let failure = failed(why);
            Failure { class: Class::Invalid, ..failure }.hint("write one KEY=value for each line; a file of another form ends with .yaml or .json")
        })?;
        Ok(values)
    }
}

fn text(content: &Content) -> Result<Secret, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not text (UTF-8)".to_owned())?;
    Ok(Secret::new(text))
}

/// `KEY=value`, one for each line; a comment begins with `#`, a pair of quotes around a value is left out.
///
/// # Errors
/// Says which line is not one, never with its value.
pub fn lines(text: &Secret) -> Result<Values, String> {
    let mut values = Values::new();
    for (line, number) in text.expose().lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!("line {number} is not KEY=value"));
        };
        let key = key.trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
            return Err(format!("line {number} does not begin with the name of a key"));
        }
        let value = value.trim();
        let unquoted =
            ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        if values.insert(key.to_owned(), Secret::new(unquoted.unwrap_or(value))).is_some() {
            return Err(format!("line {number} gives {key} a second time"));
        }
    }
    Ok(values)
}

/// The entries of a YAML or JSON document; one inside of another has a key with a dot.
fn entries(text: &Secret) -> Result<Values, String> {
    let values = plain_entries(text.expose()).map_err(|error| match error {
        // The place without the words: those may repeat a piece of a value.
        SopsError::Syntax { line, .. } => format!("it is not YAML (line {line})"),
        other => other.to_string(),
    })?;
    if values.contains_key("sops.mac") {
        return Err("it is encrypted by SOPS: name it in secrets \"sops\"".to_owned());
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_keys_and_values() {
        let values =
            lines(&Secret::new("# mine\nA=1\nexport B = \"two words\" \n\nC=x=y\nD=''\n")).unwrap();
        let shown: Vec<(&str, &str)> =
            values.iter().map(|(k, v)| (k.as_str(), v.expose())).collect();
        assert_eq!(shown, [("A", "1"), ("B", "two words"), ("C", "x=y"), ("D", "")]);
        for (text, why) in [
            ("hunter2", "line 1 is not KEY=value"),
            ("A=1\nA=hunter2", "line 2 gives A a second time"),
            ("a b=hunter2", "line 1 does not begin with the name of a key"),
        ] {
            assert_eq!(lines(&Secret::new(text)).unwrap_err(), why);
        }
    }

    #[test]
    fn documents_are_read_by_dotted_keys_and_never_repeated() {
        let document = Secret::new("A: x\nb: {c: 7, d: {e: true}, l: [1]}\n");
        let values = entries(&document).unwrap();
        let shown: Vec<(&str, &str)> =
            values.iter().map(|(k, v)| (k.as_str(), v.expose())).collect();
        assert_eq!(shown, [("A", "x"), ("b.c", "7"), ("b.d.e", "true")]);
        let named = Secret::new("sops_age_key: x\nsops: y\n");
        assert_eq!(entries(&named).unwrap().len(), 2, "a name that begins so is no encryption");
        let sealed = entries(&Secret::new("A: ENC[x]\nsops:\n  mac: y\n")).unwrap_err();
        assert!(sealed.contains("encrypted by SOPS"), "{sealed}");
        for bad in ["hunter2", "- hunter2", "a: [hunter2", "a: hunter2: b", "sops:\n  mac: hunter2"]
        {
            let why = entries(&Secret::new(bad)).unwrap_err();
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
