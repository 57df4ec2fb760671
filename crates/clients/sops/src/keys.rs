//! Who may open a file (identities, secret) and for whom it is sealed (recipients, public).

use std::fmt;
use std::iter;

use age::secrecy::SecretString;
use age::{scrypt, ssh, tag, tagpq, x25519};
use castle_model::Secret;

use crate::{SopsError, limits};

const SECRET_KEY: &str = "AGE-SECRET-KEY-";
const CURE_IDENTITY: &str = "give an identity as age-keygen writes it: AGE-SECRET-KEY-1…";
const CURE_RECIPIENT: &str =
    "give a recipient as age-keygen -y prints it: age1…, or an ssh public key";

/// Private keys that open files. `Debug` tells only how many there are.
#[derive(Default)]
pub struct Identities(Vec<Identity>);

enum Identity {
    X25519(x25519::Identity),
    Ssh(ssh::Identity),
    Passphrase(scrypt::Identity),
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identities({})", self.0.len())
    }
}

impl Identities {
    /// Reads the text of an identity file: keys on lines of their own, comments with `#`, or one ssh private key.
    ///
    /// # Errors
    /// If a line is not an identity, or one that castle can not use.
    pub fn parse(text: &Secret) -> Result<Self, SopsError> {
        let text = text.expose();
        if text.trim_start().starts_with("-----BEGIN ") {
            return Ok(Self(vec![armored(text)?]));
        }
        let mut identities = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                identities.push(Identity::X25519(key(line, number + 1)?));
            }
        }
        if identities.is_empty() { Err(SopsError::NoIdentities) } else { Ok(Self(identities)) }
    }

    /// One identity from 32 random bytes, for who has randomness of his own.
    #[must_use]
    pub fn of_seed(seed: &[u8; 32]) -> Self {
        let text = bech32::Hrp::parse("age-secret-key-")
            .ok()
            .and_then(|name| bech32::encode_upper::<bech32::Bech32>(name, seed).ok());
        let identity = text.and_then(|text| text.parse().ok()).map(Identity::X25519);
        Self(identity.into_iter().collect())
    }

    /// A passphrase; it opens plain age files only, since sops has none.
    #[must_use]
    pub fn passphrase(passphrase: &Secret) -> Self {
        let mut identity =
            scrypt::Identity::new(SecretString::from(passphrase.expose().to_owned()));
        identity.set_max_work_factor(limits::WORK_FACTOR);
        Self(vec![Identity::Passphrase(identity)])
    }

    /// Takes the others in as well.
    pub fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The recipients that these identities open files of; a passphrase has none.
    #[must_use]
    pub fn recipients(&self) -> Recipients {
        let recipient = |identity: &Identity| match identity {
            Identity::X25519(identity) => {
                let recipient = identity.to_public();
                Some(Recipient { text: recipient.to_string(), key: Box::new(recipient) })
            }
            Identity::Ssh(identity) => {
                let recipient = ssh::Recipient::try_from(identity.clone()).ok()?;
                Some(Recipient { text: recipient.to_string(), key: Box::new(recipient) })
            }
            Identity::Passphrase(_) => None,
        };
        Recipients(self.0.iter().filter_map(recipient).collect())
    }

    /// Whom to seal for where nobody is named: the holder of these identities, by age's own keys. An ssh key that
    /// merely lies in its usual place counts only if there is nothing else.
    #[must_use]
    pub fn own_recipients(&self) -> Recipients {
        let mut recipients = self.recipients();
        if recipients.texts().any(|text| text.starts_with("age1")) {
            recipients.0.retain(|recipient| recipient.text.starts_with("age1"));
        }
        recipients
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &dyn age::Identity> {
        self.0.iter().map(|identity| match identity {
            Identity::X25519(identity) => identity as &dyn age::Identity,
            Identity::Ssh(identity) => identity,
            Identity::Passphrase(identity) => identity,
        })
    }
}

fn key(line: &str, number: usize) -> Result<x25519::Identity, SopsError> {
    let wrong = |why, cure| SopsError::Identity { line: number, why, cure };
    let upper = line.to_ascii_uppercase();
    if upper.starts_with("AGE-SECRET-KEY-PQ-") {
        let cure = "use an X25519 identity until the age library reads these, or open the file with sops itself";
        return Err(wrong(
            "a post-quantum identity, which castle's age library can not use yet",
            cure,
        ));
    }
    if upper.starts_with("AGE-PLUGIN-") {
        return Err(wrong(
            "an identity of an age plugin, which castle does not start",
            CURE_IDENTITY,
        ));
    }
    if upper.starts_with("AGE1") {
        return Err(wrong("a recipient (public), not an identity (private)", CURE_IDENTITY));
    }
    if !upper.starts_with(SECRET_KEY) {
        return Err(wrong("not an age identity", CURE_IDENTITY));
    }
    line.parse().map_err(|_| wrong("an age identity that is damaged or cut off", CURE_IDENTITY))
}

fn armored(text: &str) -> Result<Identity, SopsError> {
    let wrong = |why, cure| SopsError::Identity { line: 1, why, cure };
    if text.trim_start().starts_with("-----BEGIN AGE ENCRYPTED FILE-----") {
        let cure = "decrypt the identity file first, and give the identity itself";
        return Err(wrong("an identity file that is encrypted with a passphrase", cure));
    }
    let identity = ssh::Identity::from_buffer(text.trim_start().as_bytes(), None);
    match identity {
        Ok(identity @ ssh::Identity::Unencrypted(_)) => Ok(Identity::Ssh(identity)),
        Ok(ssh::Identity::Encrypted(_)) => {
            let cure = "give a copy without passphrase in memory, or use an age identity";
            Err(wrong("an ssh key with a passphrase, which castle does not ask for", cure))
        }
        Ok(ssh::Identity::Unsupported(_)) => Err(wrong(
            "an ssh key of a kind that age can not use",
            "use an ssh-ed25519 or ssh-rsa key",
        )),
        Err(_) => Err(wrong("not a private key that age can use", CURE_IDENTITY)),
    }
}

/// Public keys that files are sealed for.
#[derive(Default)]
pub struct Recipients(Vec<Recipient>);

pub(crate) struct Recipient {
    pub(crate) text: String,
    pub(crate) key: Box<dyn age::Recipient + Send>,
}

impl fmt::Debug for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.texts()).finish()
    }
}

impl Recipients {
    /// Reads recipients, separated by commas or on lines of their own, comments with `#`.
    ///
    /// # Errors
    /// If one is none, or a private key. It is never repeated in the error.
    pub fn parse(list: &str) -> Result<Self, SopsError> {
        let lines = list.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words =
            lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let mut recipients: Vec<Recipient> = Vec::new();
        for (number, word) in words.enumerate() {
            let recipient = recipient(word, number + 1)?;
            if !recipients.iter().any(|known| known.text == recipient.text) {
                recipients.push(recipient);
            }
        }
        if recipients.is_empty() { Err(SopsError::NoRecipients) } else { Ok(Self(recipients)) }
    }

    /// Takes those of the others in that are not there yet.
    pub fn add(&mut self, others: Self) {
        for recipient in others.0 {
            if !self.0.iter().any(|known| known.text == recipient.text) {
                self.0.push(recipient);
            }
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The recipients as they are written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|recipient| recipient.text.as_str())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Recipient> {
        self.0.iter()
    }
}

fn recipient(word: &str, number: usize) -> Result<Recipient, SopsError> {
    let wrong = |why, cure| SopsError::Recipient { number, why, cure };
    let upper = word.to_ascii_uppercase();
    if upper.contains(SECRET_KEY) {
        let cure = "derive the recipient from it (age-keygen -y, or let castle do it); if this one was shown anywhere, make a new one";
        return Err(wrong("an AGE-SECRET-KEY- is the private identity, not a recipient", cure));
    }
    if upper.starts_with("-----BEGIN") {
        return Err(wrong("a private key, not a recipient", CURE_RECIPIENT));
    }
    if upper.starts_with("AGE1PQ1") {
        let cure =
            "name an X25519 recipient (age1…, shorter) as well, and this one with sops itself";
        return Err(wrong(
            "a post-quantum recipient, which castle's age library can not seal for yet",
            cure,
        ));
    }
    let damaged = |_| wrong("a recipient that is damaged or cut off", CURE_RECIPIENT);
    if upper.starts_with("SSH-") {
        let key: ssh::Recipient = word
            .parse()
            .map_err(|_| wrong("an ssh public key that age can not use", CURE_RECIPIENT))?;
        return Ok(Recipient { text: word.to_owned(), key: Box::new(key) });
    }
    if upper.starts_with("AGE1TAGPQ1") {
        let key: tagpq::Recipient = word.parse().map_err(damaged)?;
        return Ok(Recipient { text: word.to_owned(), key: Box::new(key) });
    }
    if upper.starts_with("AGE1TAG1") {
        let key: tag::Recipient = word.parse().map_err(damaged)?;
        return Ok(Recipient { text: word.to_owned(), key: Box::new(key) });
    }
    if !upper.starts_with("AGE1") {
        return Err(wrong("not an age recipient", CURE_RECIPIENT));
    }
    let key: x25519::Recipient = word.parse().map_err(|_| {
        wrong("a recipient that is damaged, cut off, or of an age plugin", CURE_RECIPIENT)
    })?;
    Ok(Recipient { text: word.to_owned(), key: Box::new(key) })
}

impl Recipient {
    pub(crate) fn once(&self) -> impl Iterator<Item = &dyn age::Recipient> {
        iter::once(&*self.key as &dyn age::Recipient)
    }
}
