//! Values to the types of the grammar: each way in which a value can be wrong is said here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

use castle_model::name::check_label;
use castle_model::spec::{SecretRef, Version};
use castle_model::{AddressRange, Subnet, VmId};

use crate::finding::Finding;
use crate::forms;
use crate::function;
use crate::grammar::Kind;
use crate::mask::sounds_secret;
use crate::secrets::looks_like_secret;
use crate::suggest::nearest;
use crate::value::{Item, Value};

/// Something and where it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located<T> {
    /// The thing.
    pub(crate) value: T,
    /// Where it stands.
    pub(crate) range: Range<usize>,
}

/// A value of the type that its attribute takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Typed {
    Text(String),
    Integer(i64),
    Boolean(bool),
    Version(Version),
    Address(Ipv4Addr),
    Subnet(Subnet),
    AddressRange(AddressRange),
    VmIds(VmId, VmId),
    Mebibytes(u64),
    Duration(Duration),
    Secret(SecretRef),
    Texts(Vec<Located<String>>),
    Addresses(Vec<Ipv4Addr>),
    Map(BTreeMap<String, String>),
}

/// A setting that a value is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'k> {
    /// Its key.
    pub(crate) key: &'k str,
    /// What it takes.
    pub(crate) kind: Kind,
    /// A value, as HCL.
    pub(crate) example: &'static str,
}

/// Why a value is not of the type that its attribute takes.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It holds a secret, which has been reported from the text; nothing of it may be repeated.
    Secret,
    /// This is to be reported.
    Found(Box<Finding>),
}

/// What is wrong with a value: the reason, and perhaps the cure.
#[derive(Debug)]
struct Wrong {
    code: &'static str,
    reason: String,
    help: Option<String>,
    range: Range<usize>,
}

/// The value as the type of the attribute.
///
/// # Errors
/// Says why there is none.
pub(crate) fn convert(setting: &Setting<'_>, item: &Item) -> Result<Typed, Problem> {
    if holds_secret(item) {
        return Err(Problem::Secret);
    }
    typed(setting.kind, item).map_err(|wrong| {
        let title = format!("`{}` takes {}", setting.key, setting.kind.expected());
        let label = if wrong.code == "C0201" { "of another type" } else { "not such a value" };
        let help = wrong
            .help
            .unwrap_or_else(|| format!("write it like {} = {}", setting.key, setting.example));
        // What stands where a name sounds like a secret may be one.
        let hidden = wrong.code == "C0211" && sounds_secret(setting.key);
        let reason = if hidden { "it is none of them".to_owned() } else { wrong.reason };
        let finding = Finding::error(wrong.code, title).at(&wrong.range, label).note(reason);
        Problem::Found(Box::new(finding.help(help)))
    })
}

fn holds_secret(item: &Item) -> bool {
    match &item.value {
        Value::Text(text) => !item.foreign && looks_like_secret(text),
        Value::List(items) => items.iter().any(holds_secret),
        Value::Map(entries) => entries.iter().any(|(_, item)| holds_secret(item)),
        _ => false,
    }
}

fn wrong<T>(item: &Item, reason: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { code: "C0202", reason: reason.into(), help: None, range: item.range.clone() })
}

fn typed(kind: Kind, item: &Item) -> Result<Typed, Wrong> {
    match kind {
        Kind::Integer(low, high) => integer(item, low, high),
        Kind::Boolean => match item.value {
            Value::Boolean(value) => Ok(Typed::Boolean(value)),
            _ => mismatch(item),
        },
        Kind::TextMap => text_map(item),
        Kind::KeyList
        | Kind::RecipientList
        | Kind::ExtensionList
        | Kind::HostList
        | Kind::AddressList
        | Kind::LayerList
        | Kind::UuidList
        | Kind::MirrorList
        | Kind::ModuleList
        | Kind::NameList
        | Kind::TextList => list(kind, item),
        _ => match &item.value {
            Value::Text(text) => {
                let result = from_text(kind, text, item);
                // What came from the environment or another file is not repeated: it may be anything.
                if item.foreign && result.is_err() {
                    return wrong(item, "the text that is computed here is not one");
                }
                result
            }
            _ => mismatch(item),
        },
    }
}

fn mismatch<T>(item: &Item) -> Result<T, Wrong> {
    let reason = format!("this is {}", item.value.kind());
    Err(Wrong { code: "C0201", reason, help: None, range: item.range.clone() })
}

fn integer(item: &Item, low: i64, high: i64) -> Result<Typed, Wrong> {
    match &item.value {
        Value::Integer(number) if (low..=high).contains(number) => Ok(Typed::Integer(*number)),
        Value::Integer(number) => {
            let side = if *number < low { "less" } else { "more" };
            let reason = format!("{number} is {side} than that");
            Err(Wrong { code: "C0210", reason, help: None, range: item.range.clone() })
        }
        Value::Fraction(text) => {
            let reason = format!("{text} is not a whole number, or too large");
            Err(Wrong { code: "C0210", reason, help: None, range: item.range.clone() })
        }
        Value::Text(text) => {
            let help = match text.trim().parse::<i64>() {
                Ok(number) if !item.foreign => Some(format!("leave the quotes out: {number}")),
                _ => Some("leave the quotes out, or use tonumber(…)".to_owned()),
            };
            let reason = "this is text".to_owned();
            Err(Wrong { code: "C0201", reason, help, range: item.range.clone() })
        }
        _ => mismatch(item),
    }
}

fn text_map(item: &Item) -> Result<Typed, Wrong> {
    let Value::Map(entries) = &item.value else { return mismatch(item) };
    let mut map = BTreeMap::new();
    for (key, entry) in entries {
        let text = match &entry.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(value) => value.to_string(),
            other => {
                let reason = format!("the value of `{key}` is {}", other.kind());
                return Err(Wrong {
                    code: "C0201",
                    reason,
                    help: None,
                    range: entry.range.clone(),
                });
            }
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if key.is_empty() || !key.chars().all(allowed) {
            return wrong(
                entry,
                format!("`{key}` is not a key of a ConfigMap (letters, digits, `-`, `_`, `.`)"),
            );
        }
        map.insert(key.clone(), text);
    }
    Ok(Typed::Map(map))
}

fn list(kind: Kind, item: &Item) -> Result<Typed, Wrong> {
    let Value::List(items) = &item.value else {
        let help = match &item.value {
            Value::Text(text) if !item.foreign => {
                Some(format!("put brackets around it: [\"{text}\"]"))
            }
            _ => None,
        };
        let reason = format!("this is {}", item.value.kind());
        return Err(Wrong { code: "C0201", reason, help, range: item.range.clone() });
    };
    if items.is_empty() && matches!(kind, Kind::AddressList | Kind::HostList) {
        return wrong(item, "the list is empty");
    }
    if kind == Kind::AddressList {
        let addresses: Result<Vec<_>, _> = items
            .iter()
            .map(|item| match typed(Kind::Address, item)? {
                Typed::Address(address) => Ok(address),
                _ => mismatch(item),
            })
            .collect();
        return Ok(Typed::Addresses(addresses?));
    }
    let mut texts: Vec<Located<String>> = Vec::new();
    let mut seen = BTreeSet::new();
    for item in items {
        let text = match &item.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) if kind == Kind::TextList => number.to_string(),
            _ => return mismatch(item),
        };
        if let Err(reason) = element(kind, &text) {
            return wrong(
                item,
                if item.foreign { "an element is not one".to_owned() } else { reason },
            );
        }
        if !seen.insert(text.clone()) {
            return wrong(item, "it stands in the list twice");
        }
        texts.push(Located { value: text, range: item.range.clone() });
    }
    Ok(Typed::Texts(texts))
}

fn element(kind: Kind, text: &str) -> Result<(), String> {
    match kind {
        Kind::KeyList => forms::check_key(text),
        Kind::RecipientList => forms::check_recipient(text),
        Kind::ExtensionList => {
            let part = |part: &str| {
                !part.is_empty()
                    && part.bytes().all(|b| {
                        b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)
                    })
            };
            match text.split_once('/') {
                Some((owner, name)) if part(owner) && part(name) => Ok(()),
                _ => Err(format!(
                    "`{text}` is not an extension (write it as siderolabs/iscsi-tools)"
                )),
            }
        }
        Kind::HostList => forms::check_host(text),
        Kind::UuidList => forms::check_uuid(text),
        Kind::MirrorList => forms::check_mirror(text),
        Kind::ModuleList => forms::check_module(text),
        Kind::NameList => forms::check_object_name(text),
        Kind::TextList if text.trim().is_empty() => Err("it is empty".to_owned()),
        _ => Ok(()),
    }
}

fn from_text(kind: Kind, text: &str, item: &Item) -> Result<Typed, Wrong> {
    let plain = |result: Result<Typed, String>| result.or_else(|reason| wrong(item, reason));
    match kind {
        Kind::Text | Kind::Lines if text.trim().is_empty() => wrong(item, "it is empty"),
        Kind::Text if text.chars().any(char::is_control) => {
            wrong(item, "it holds a control character")
        }
        Kind::Label => match check_label(text) {
            Ok(()) => Ok(Typed::Text(text.to_owned())),
            Err(reason) => {
                let reason = format!("`{text}` is not a name: {reason}");
                Err(Wrong { code: "C0401", reason, help: None, range: item.range.clone() })
            }
        },
        Kind::Word => plain(forms::check_word(text).map(|()| Typed::Text(text.to_owned()))),
        Kind::Choice(words) => choice(words, text, item),
        Kind::Version => version(text, item),
        Kind::Address => match text.parse() {
            Ok(address) => Ok(Typed::Address(address)),
            Err(_) if text.parse::<std::net::Ipv6Addr>().is_ok() => {
                wrong(item, format!("`{text}` is an IPv6 address; this version takes IPv4 only"))
            }
            Err(_) => wrong(item, format!("`{text}` is not an IPv4 address")),
        },
        Kind::Subnet => plain(text.parse().map(Typed::Subnet)),
        Kind::AddressRange => plain(text.parse().map(Typed::AddressRange)),
        Kind::VmIds => plain(forms::vmids(text).map(|(first, last)| Typed::VmIds(first, last))),
        Kind::Size => size(text, item),
        Kind::Duration => plain(forms::duration(text).map(Typed::Duration)),
        Kind::Server => plain(forms::server(text).map(Typed::Text)),
        Kind::Repository => plain(forms::repository(text).map(Typed::Text)),
        Kind::VaultPath => plain(forms::vault_path(text).map(Typed::Text)),
        Kind::RepositoryPath => plain(forms::repository_path(text).map(Typed::Text)),
        Kind::ProjectPath => project_path(text, item),
        Kind::Certificates => plain(forms::certificates(text).map(Typed::Text)),
        Kind::Fingerprint => plain(forms::fingerprint(text).map(Typed::Text)),
        Kind::Device => plain(forms::device(text).map(Typed::Text)),
        Kind::Cpu => plain(forms::cpu(text).map(Typed::Text)),
        Kind::Memory => plain(forms::memory(text).map(Typed::Text)),
        Kind::NodePath => plain(forms::node_path(text).map(Typed::Text)),
        Kind::ManifestUrl => plain(forms::manifest_url(text).map(Typed::Text)),
        Kind::MirrorUrl => plain(forms::mirror_url(text).map(Typed::Text)),
        Kind::Sha256 => plain(forms::sha256(text).map(Typed::Text)),
        _ => Ok(Typed::Text(text.to_owned())),
    }
}

fn choice(words: &[&str], text: &str, item: &Item) -> Result<Typed, Wrong> {
    if words.contains(&text) {
        return Ok(Typed::Text(text.to_owned()));
    }
    let help = nearest(text, words.iter().copied()).map(|near| format!("did you mean \"{near}\"?"));
    let reason = format!("`{text}` is none of them");
    Err(Wrong { code: "C0211", reason, help, range: item.range.clone() })
}

fn version(text: &str, item: &Item) -> Result<Typed, Wrong> {
    text.parse().map(Typed::Version).map_err(|reason: String| {
        let bare = text.trim_start_matches('v');
        let help = bare.parse::<Version>().ok().map(|v| format!("leave the `v` out: \"{v}\""));
        Wrong { code: "C0202", reason, help, range: item.range.clone() }
    })
}

fn size(text: &str, item: &Item) -> Result<Typed, Wrong> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = (&text[..split], text[split..].trim());
    let Ok(number) = number.parse::<u64>() else {
        return wrong(item, format!("`{text}` is not a whole number with a unit"));
    };
    let factor = match unit {
        "MiB" => 1,
        "GiB" => 1024,
        "TiB" => 1024 * 1024,
        _ => {
            let meant = match unit.chars().next() {
                Some('m' | 'M') => "MiB",
                Some('t' | 'T') => "TiB",
                _ => "GiB",
            };
            let reason = match unit {
                "" => "it has no unit".to_owned(),
                _ => format!("`{unit}` is not a unit: Proxmox and Talos count in powers of 1024"),
            };
            let help = Some(format!("write it as \"{number}{meant}\""));
            return Err(Wrong { code: "C0202", reason, help, range: item.range.clone() });
        }
    };
    match number.checked_mul(factor) {
        // Beyond a pebibyte a slip is likelier than a wish.
        Some(0) => wrong(item, "it is zero"),
        Some(size) if size <= 1 << 30 => Ok(Typed::Mebibytes(size)),
        _ => wrong(item, "it is more than 1024 TiB"),
    }
}

fn project_path(text: &str, item: &Item) -> Result<Typed, Wrong> {
    function::inside(text).map(Typed::Text).map_err(|reason| Wrong {
        code: "C0209",
        reason: format!("`{text}` is outside of the project folder: {reason}"),
        help: Some(
            "move it into the folder of the castle file and name it by a relative path".into(),
        ),
        range: item.range.clone(),
    })
}
