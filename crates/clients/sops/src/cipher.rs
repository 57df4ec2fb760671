//! One value under the data key: AES-256-GCM with a nonce of 32 bytes, in sops' own notation.

use std::collections::BTreeMap;
use std::fmt;

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::scalar;
use crate::tree::{Bytes, Value};

const BEGIN: &str = "ENC[AES256_GCM,data:";
const NONCE: usize = 32;
const TAG: usize = 16;

/// What a decrypted text was.
pub(crate) enum Plain {
    Value(Value),
    Comment(Secret),
}

/// The key that all values of one file are encrypted with.
pub(crate) struct DataKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

/// The nonces of values as they were, so that an unchanged value keeps its ciphertext.
#[derive(Default)]
pub(crate) struct Nonces(BTreeMap<[u8; 32], [u8; NONCE]>);

impl Nonces {
    /// A value in its place, as a digest: values themselves have no business in a map.
    fn name(bound: &str, kind: &str, plain: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in [bound.as_bytes(), kind.as_bytes(), plain] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

impl DataKey {
    pub(crate) fn new(fill: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        fill(&mut *key);
        Self(key)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|key| Self(Zeroizing::new(key)))
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &*self.0
    }

    fn cipher(&self) -> AesGcm<Aes256, U32> {
        AesGcm::new_from_slice(&*self.0).expect("the key has the 32 bytes of the cipher")
    }

    /// Encrypts bytes of a type; nothing stays nothing, as in sops.
    pub(crate) fn seal(
        &self,
        plain: &[u8],
        kind: &'static str,
        bound: &str,
        nonces: &Nonces,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> String {
        if plain.is_empty() {
            return String::new();
        }
        let known = nonces.0.get(&Nonces::name(bound, kind, plain));
        let nonce = known.copied().unwrap_or_else(|| {
            let mut nonce = [0; NONCE];
            fill(&mut nonce);
            nonce
        });
        let mut body = Zeroizing::new(plain.to_vec());
        let tag = self
            .cipher()
            .encrypt_in_place_detached((&nonce).into(), bound.as_bytes(), &mut body)
            .expect("a value is far shorter than the 64 GiB that the cipher can take");
        let (data, nonce, tag) =
            (STANDARD.encode(&*body), STANDARD.encode(nonce), STANDARD.encode(tag));
        format!("{BEGIN}{data},iv:{nonce},tag:{tag},type:{kind}]")
    }

    /// Decrypts a sealed text that is bound to its place; notes its nonce.
    pub(crate) fn open(
        &self,
        sealed: &str,
        bound: &str,
        nonces: Option<&mut Nonces>,
    ) -> Result<Plain, &'static str> {
        if sealed.is_empty() {
            return Ok(Plain::Value(Value::Text(Secret::new(""))));
        }
        let parts = parse(sealed)?;
        let mut body = Zeroizing::new(parts.data);
        self.cipher()
            .decrypt_in_place_detached(
                (&parts.nonce).into(),
                bound.as_bytes(),
                &mut body,
                (&parts.tag).into(),
            )
            .map_err(|_| "damaged, moved from elsewhere, or encrypted with another key")?;
        let (kind, plain) = plain(&body, &parts.kind)?;
        if let Some(nonces) = nonces {
            nonces.0.insert(Nonces::name(bound, kind, &body), parts.nonce);
        }
        Ok(plain)
    }
}

struct Parts {
    data: Vec<u8>,
    nonce: [u8; NONCE],
    tag: [u8; TAG],
    kind: String,
}

fn parse(sealed: &str) -> Result<Parts, &'static str> {
    let shape = "not in sops' form `ENC[…]`";
    let inner = sealed.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(']')).ok_or(shape)?;
    let (data, rest) = inner.split_once(",iv:").ok_or(shape)?;
    let (nonce, rest) = rest.split_once(",tag:").ok_or(shape)?;
    let (tag, kind) = rest.split_once(",type:").ok_or(shape)?;
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| "its base64 is damaged");
    let nonce = decode(nonce)?.try_into().map_err(|_| "its nonce has not 32 bytes")?;
    let tag = decode(tag)?.try_into().map_err(|_| "its tag has not 16 bytes")?;
    Ok(Parts { data: decode(data)?, nonce, tag, kind: kind.to_owned() })
}

/// Whether a text looks sealed.
pub(crate) fn is_sealed(text: &str) -> bool {
    text.starts_with(BEGIN)
}

/// Whether a text looks like a sealed comment, as sops keeps those of lists.
pub(crate) fn is_sealed_comment(text: &str) -> bool {
    is_sealed(text) && text.ends_with(",type:comment]")
}

fn plain(body: &[u8], kind: &str) -> Result<(&'static str, Plain), &'static str> {
    let text = std::str::from_utf8(body);
    let wrong = "its content does not fit its type";
    let value = match (kind, text) {
        ("str", Ok(text)) => Value::Text(Secret::new(text)),
        // sops seals bytes as text; what is no text must have been bytes.
        ("str", Err(_)) | ("bytes", _) => Value::Bytes(Bytes(body.to_vec())),
        ("int", Ok(text)) => Value::Integer(text.parse().map_err(|_| wrong)?),
        ("float", Ok(text)) => Value::Float(scalar::sealed_float(text).ok_or(wrong)?),
        ("bool", Ok(text)) => Value::Boolean(match text {
            "True" | "true" | "TRUE" | "t" | "T" | "1" => true,
            "False" | "false" | "FALSE" | "f" | "F" | "0" => false,
            _ => return Err(wrong),
        }),
        ("time", Ok(text)) => Value::Time(scalar::time(text).ok_or(wrong)?),
        ("comment", Ok(text)) => return Ok(("comment", Plain::Comment(Secret::new(text)))),
        ("int" | "float" | "bool" | "time" | "comment", Err(_)) => return Err(wrong),
        _ => return Err("its type is none that sops has"),
    };
    Ok((kind_of(&value), Plain::Value(value)))
}

/// The name of a leaf's type in sops.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "int",
        Value::Float(_) => "float",
        Value::Boolean(_) => "bool",
        Value::Time(_) => "time",
        _ => "str",
    }
}
