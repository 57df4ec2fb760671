//! The arguments of `castle secrets`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::exit::Problem;

/// What to do about secrets.
#[derive(Debug, Args)]
pub(crate) struct Secrets {
    #[command(subcommand)]
    pub(crate) act: SecretsAct,
}

/// What can be done about secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsAct {
    #[command(flatten)]
    Ask(Ask),
    /// Check SOPS files: the MAC, and that nothing stands in clear that should be encrypted
    Verify(Verify),
    /// Encrypt YAML or JSON for age recipients, in the form of SOPS
    Encrypt(Encrypt),
    /// Decrypt a SOPS file to standard output, and to nowhere else
    Decrypt(Decrypt),
}

/// What to ask the secret sources of a rehearsal.
#[derive(Debug, Args)]
pub(crate) struct RehearsedSecrets {
    #[command(subcommand)]
    pub(crate) act: Ask,
}

/// What the secret sources of a castle can be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Ask {
    /// Show every key: what it is for, its form, and where it would come from; never a value
    List,
    /// Check every key as a run would: all that are missing, empty or of a wrong form, at once
    Check,
    /// Print the value of a key
    Get(Get),
    /// Show what is kept of this castle, where, and of which life; never a value
    Escrow,
}

/// Which value.
#[derive(Debug, Clone, Args)]
pub(crate) struct Get {
    /// The key: any that a source has, whether the castle file names it or not
    pub(crate) key: String,
    /// Write it to a new file that only you can read, instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Which files.
#[derive(Debug, Clone, Args)]
pub(crate) struct Verify {
    /// SOPS files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only look for what stands in clear: needs no identity, and does not check the MAC
    #[arg(long)]
    pub(crate) clear_only: bool,
}

/// What to encrypt, for whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct Encrypt {
    #[command(flatten)]
    pub(crate) input: Input,
    /// For whom: an age recipient (age1…) or an ssh public key; repeat it for several (default: you, by the age identity at hand)
    #[arg(short, long = "recipient", value_name = "RECIPIENT")]
    pub(crate) recipients: Vec<String>,
    /// Write to a new file instead of standard output
    #[arg(long, value_name = "FILE", conflicts_with = "in_place")]
    pub(crate) out: Option<PathBuf>,
    /// Put the encrypted file in the place of the plain one
    #[arg(long)]
    pub(crate) in_place: bool,
    #[command(flatten)]
    pub(crate) rule: Rule,
    /// Let the MAC cover only what is encrypted, so that the rest may be edited by hand
    #[arg(long)]
    pub(crate) mac_only_encrypted: bool,
}

/// Which values are encrypted; one rule at most.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub(crate) struct Rule {
    /// Encrypt only values below a key that matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) encrypted_regex: Option<String>,
    /// Leave values in clear below a key that matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) unencrypted_regex: Option<String>,
    /// Encrypt only values below a key that ends so
    #[arg(long, value_name = "SUFFIX")]
    pub(crate) encrypted_suffix: Option<String>,
    /// Leave values in clear below a key that ends so (default: _unencrypted)
    #[arg(long, value_name = "SUFFIX")]
    pub(crate) unencrypted_suffix: Option<String>,
    /// Encrypt only values that follow a comment that matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) encrypted_comment_regex: Option<String>,
    /// Leave values in clear that follow a comment that matches
    #[arg(long, value_name = "REGEX")]
    pub(crate) unencrypted_comment_regex: Option<String>,
}

/// What to decrypt.
#[derive(Debug, Clone, Args)]
pub(crate) struct Decrypt {
    #[command(flatten)]
    pub(crate) input: Input,
}

/// A text from a file or from standard input.
#[derive(Debug, Clone, Args)]
pub(crate) struct Input {
    /// The file, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// What kind of text it is (default: by the ending of the name; standard input is YAML, unless it begins with `{`)
    #[arg(long, value_enum)]
    pub(crate) format: Option<TextFormat>,
}

/// The kinds of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// YAML
    Yaml,
    /// JSON
    Json,
}

/// How private keys begin, in letters of either case.
const PRIVATE: [&str; 2] = ["AGE-SECRET-KEY-", "PRIVATE KEY-----"];

/// Refuses a private key anywhere on the command line, before anybody could repeat it in an error.
pub(crate) fn refuse_private_keys(words: impl Iterator<Item = OsString>) -> Result<(), Problem> {
    let is_private = |word: OsString| {
        let upper = word.to_string_lossy().to_ascii_uppercase();
        PRIVATE.iter().any(|mark| upper.contains(mark))
    };
    if !words.into_iter().any(is_private) {
        return Ok(());
    }
    let mut problem = Problem::usage("a private key was given on the command line");
    problem.causes.push(
        "an AGE-SECRET-KEY-… (or the private half of an ssh key) is the identity that opens files; a recipient is the public half: age1…, ssh-ed25519 …".to_owned(),
    );
    Err(problem.hint(
        "leave --recipient out: castle derives it from the identity at hand (SOPS_AGE_KEY, SOPS_AGE_KEY_FILE or the usual file), and `age-keygen -y` prints it. The history of your shell and the list of processes have seen the key: make a new one if others could read them",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(word: &str) -> bool {
        let words = ["castle", "secrets", "encrypt", word].map(OsString::from);
        match refuse_private_keys(words.into_iter()) {
            Ok(()) => false,
            Err(problem) => {
                assert!(!problem.to_string().contains("1QQQ"), "{problem}");
                true
            }
        }
    }

    #[test]
    fn a_private_key_is_found_wherever_it_stands() {
        for word in [
            "AGE-SECRET-KEY-1QQQ",
            "age-secret-key-1qqq",
            "--recipient=AGE-SECRET-KEY-PQ-1QQQ",
            "# created: 2026\n# public key: age1x\nAGE-SECRET-KEY-1QQQ\n",
            "-----BEGIN OPENSSH PRIVATE KEY-----\n1QQQ",
        ] {
            assert!(refused(word), "{word}");
        }
        for word in ["age1qqq", "ssh-ed25519 AAAA", "AGE-SECRET", "-"] {
            assert!(!refused(word), "{word}");
        }
    }
}
