//! Which of the two kinds of text a file is.

use std::path::Path;

use crate::SopsError;

/// The formats that are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML, of one or several documents.
    Yaml,
    /// JSON, one object.
    Json,
}

impl Format {
    /// The format of a file by its name, as sops itself decides.
    ///
    /// # Errors
    /// If sops would take it for dotenv, ini or binary, which are refused by name.
    pub fn of_path(path: &Path) -> Result<Self, SopsError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("yaml" | "yml") => Ok(Self::Yaml),
            Some("json") => Ok(Self::Json),
            Some("env") => Err(SopsError::OtherFormat { name: "dotenv" }),
            Some("ini") => Err(SopsError::OtherFormat { name: "ini" }),
            _ => Err(SopsError::OtherFormat { name: "binary" }),
        }
    }

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_format() {
        let of = |name: &str| Format::of_path(Path::new(name)).map_err(|error| error.to_string());
        assert_eq!(of("a.enc.yaml"), Ok(Format::Yaml));
        assert_eq!(of("a.enc.YML"), Ok(Format::Yaml));
        assert_eq!(of("dir.yaml/a.json"), Ok(Format::Json));
        for (name, word) in
            [("a.env", "dotenv"), ("a.ini", "ini"), ("a.enc", "binary"), ("a", "binary")]
        {
            assert!(of(name).unwrap_err().contains(word), "{name}");
        }
    }
}
