//! The written forms of single values: lengths of time, addresses of servers, paths, fingerprints and the like.

use std::time::Duration;

use castle_model::VmId;
use castle_model::name::check_label;

use crate::function;

/// Checks a name as Proxmox takes it.
pub(crate) fn check_word(text: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("`{c}` is not allowed")),
        None if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
            Err("it must begin with a letter or digit".to_owned())
        }
        None => Ok(()),
    }
}

/// Checks a key of the secret source.
pub(crate) fn check_key(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("a key is empty".to_owned());
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("`{c}` is not allowed in a key (letters, digits, `-`, `_`, `.`)")),
        None => Ok(()),
    }
}

/// Checks a recipient of age by how it begins; whether it is one, age itself says when it is used.
pub(crate) fn check_recipient(text: &str) -> Result<(), String> {
    let bech32 = text.strip_prefix("age1").is_some_and(|rest| {
        rest.len() >= 50 && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    });
    let ssh = ["ssh-ed25519 ", "ssh-rsa "].iter().any(|kind| text.starts_with(kind));
    match (bech32 || ssh, text.starts_with("age1")) {
        (true, _) => Ok(()),
        (false, true) => Err("the recipient is not whole".to_owned()),
        (false, false) => {
            Err("a recipient begins with `age1`, `ssh-ed25519` or `ssh-rsa`".to_owned())
        }
    }
}

pub(crate) fn check_host(text: &str) -> Result<(), String> {
    let label = |part: &str| check_label(&part.to_ascii_lowercase()).is_ok();
    let good = text.parse::<std::net::IpAddr>().is_ok()
        || (text.len() <= 253 && text.split('.').all(label));
    if good { Ok(()) } else { Err(format!("`{text}` is neither a host name nor an address")) }
}

pub(crate) fn vmids(text: &str) -> Result<(VmId, VmId), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let parse = |part: &str| {
        let part = part.trim();
        part.parse::<u32>().map_err(|_| format!("`{part}` is not a VM id"))
    };
    let (first, last) = (parse(first)?, parse(last)?);
    if first > last {
        return Err(format!("{first} comes after {last}"));
    }
    for id in [first, last] {
        if !(VmId::MIN..=VmId::MAX).contains(&VmId(id)) {
            return Err(format!(
                "{id} is not a VM id: Proxmox takes {} to {}",
                VmId::MIN,
                VmId::MAX
            ));
        }
    }
    Ok((VmId(first), VmId(last)))
}

/// Reads `90s`, `5m`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let nonsense = || format!("`{text}` is not a length of time (write it as 90s, 5m or 1h30m)");
    let (mut seconds, mut rest, mut last) = (0_u64, text.trim(), 0);
    while !rest.is_empty() {
        let split = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(nonsense)?;
        let number: u64 = rest[..split].parse().map_err(|_| nonsense())?;
        let (rank, unit) = match rest.as_bytes()[split] {
            b'h' => (1, 3600),
            b'm' => (2, 60),
            b's' => (3, 1),
            _ => return Err(nonsense()),
        };
        if rank <= last {
            return Err(nonsense());
        }
        last = rank;
        let part = number.checked_mul(unit).ok_or_else(nonsense)?;
        seconds = seconds.checked_add(part).ok_or_else(nonsense)?;
        rest = &rest[split + 1..];
    }
    match seconds {
        0 if last == 0 => Err(nonsense()),
        0 => Err("nothing can be waited for in no time".to_owned()),
        1..=86_400 => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("`{text}` is more than a day")),
    }
}

/// Splits an https address into what follows the scheme.
pub(crate) fn https(text: &str) -> Result<&str, String> {
    let Some(rest) = text.strip_prefix("https://") else {
        return Err(match text.split_once("://") {
            Some((scheme, _)) => format!("`{scheme}` is not `https`"),
            None => "it does not begin with `https://`".to_owned(),
        });
    };
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("it holds white space".to_owned());
    }
    if rest.contains(['?', '#']) {
        return Err("it may not hold `?` or `#`".to_owned());
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("it may not hold a user or a password".to_owned());
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
    check_host(host)?;
    match port {
        Some(port) if port.parse::<u16>().map_or(true, |p| p == 0) => {
            Err(format!("`{port}` is not a port"))
        }
        _ => Ok(rest),
    }
}

pub(crate) fn server(text: &str) -> Result<String, String> {
    let bare = text.strip_suffix('/').unwrap_or(text);
    if https(bare)?.contains('/') {
        return Err("only the server is wanted, without a path".to_owned());
    }
    Ok(bare.to_owned())
}

pub(crate) fn repository(text: &str) -> Result<String, String> {
    let bare = text.strip_suffix('/').unwrap_or(text);
    match https(bare)?.split_once('/') {
        Some((_, path)) if !path.is_empty() => Ok(bare.to_owned()),
        _ => Err("it names a server, but no repository on it".to_owned()),
    }
}

pub(crate) fn vault_path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err(format!("`{text}` does not begin with `/`"));
    }
    let parts: Vec<&str> = text.split('/').filter(|p| !p.is_empty()).collect();
    for part in &parts {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if let Some(c) = part.chars().find(|c| !allowed(*c)) {
            return Err(format!(
                "in `{part}`: `{c}` is not allowed in the name of a folder of Infisical"
            ));
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

pub(crate) fn repository_path(text: &str) -> Result<String, String> {
    match text.trim_end_matches('/') {
        "." | "./" => Ok(".".to_owned()),
        _ => function::inside(text)
            .map_err(|reason| format!("`{text}` is not inside of the repository: {reason}")),
    }
}

pub(crate) fn certificates(text: &str) -> Result<String, String> {
    if text.contains("PRIVATE KEY-----") {
        return Err("it holds a private key; only the certificate is wanted".to_owned());
    }
    let begins = text.matches("-----BEGIN CERTIFICATE-----").count();
    if begins == 0 || begins != text.matches("-----END CERTIFICATE-----").count() {
        return Err("it holds no whole block `-----BEGIN CERTIFICATE-----`".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) fn fingerprint(text: &str) -> Result<String, String> {
    let digits: String =
        text.chars().filter(|c| *c != ':').collect::<String>().to_ascii_lowercase();
    match digits.bytes().find(|b| !b.is_ascii_hexdigit()) {
        Some(_) => Err("it holds something else than hexadecimal digits and `:`".to_owned()),
        None if digits.len() == 40 => {
            Err("it has 20 bytes: that is a SHA-1 fingerprint".to_owned())
        }
        None if digits.len() != 64 => {
            Err(format!("it has {} hexadecimal digits, not 64", digits.len()))
        }
        None => Ok(digits),
    }
}

/// Checks a UUID as SMBIOS gives it: 8, 4, 4, 4 and 12 hexadecimal digits.
pub(crate) fn check_uuid(text: &str) -> Result<(), String> {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    match (digits, lengths.as_slice()) {
        (true, [8, 4, 4, 4, 12]) => Ok(()),
        _ => Err(format!(
            "`{text}` is not a UUID (write it as 4c4c4544-0039-3010-8036-b7c04f4b4d31)"
        )),
    }
}

/// Checks the address of a mirror: http is allowed, because images are verified by their digests.
pub(crate) fn check_mirror(text: &str) -> Result<(), String> {
    let secure = match text.strip_prefix("http://") {
        Some(rest) => format!("https://{rest}"),
        None => text.to_owned(),
    };
    https(&secure).map(|_| ())
}

/// Checks the name of a registry: a host, perhaps with a port, or `*` for all others.
pub(crate) fn check_registry(text: &str) -> Result<(), String> {
    if text == "*" {
        return Ok(());
    }
    if text.contains('/') {
        return Err("only the host is wanted, without `https://` and without a path".to_owned());
    }
    https(&format!("https://{text}")).map(|_| ())
}

/// Checks the name of a kernel module.
pub(crate) fn check_module(text: &str) -> Result<(), String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    if !text.is_empty() && text.bytes().all(allowed) {
        return Ok(());
    }
    Err(format!("`{text}` is not the name of a kernel module"))
}

/// Reads the path of a disk.
pub(crate) fn device(text: &str) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"/-_.:".contains(&b);
    match text.strip_prefix("/dev/") {
        Some(rest) if !rest.is_empty() && !rest.contains("..") && rest.bytes().all(allowed) => {
            Ok(text.to_owned())
        }
        _ => Err(format!("`{text}` is not the path of a disk, such as /dev/sda")),
    }
}

/// Checks the name of a Kubernetes object: labels of RFC 1123 with dots between them.
pub(crate) fn check_object_name(text: &str) -> Result<(), String> {
    let wrong = text.split('.').find_map(|label| check_label(label).err());
    wrong.map_or(Ok(()), |reason| Err(format!("`{text}` is not the name of an object: {reason}")))
}

/// Reads processor time: cores, or thousandths of one.
pub(crate) fn cpu(text: &str) -> Result<String, String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let good = match (text.strip_suffix('m'), text.split_once('.')) {
        (Some(thousandths), _) => digits(thousandths),
        (None, Some((whole, part))) => digits(whole) && digits(part) && part.len() <= 3,
        (None, None) => digits(text),
    };
    if good && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is neither a number of cores nor one of thousandths"))
}

/// Reads memory. A bare number or `128m` would be bytes and less than that, which nobody means.
pub(crate) fn memory(text: &str) -> Result<String, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    match (number.parse::<u64>(), unit) {
        (Ok(1..), "Ki" | "Mi" | "Gi" | "Ti") => Ok(text.to_owned()),
        (Ok(1..), "") => Err("it has no unit, so it would be bytes".to_owned()),
        (Ok(1..), unit) => Err(format!("`{unit}` is not `Ki`, `Mi` or `Gi`")),
        _ => Err(format!("`{text}` is not a whole number with a unit")),
    }
}

/// Reads a folder of a machine: Talos keeps everything outside of `/var` as it is in its image.
pub(crate) fn node_path(text: &str) -> Result<String, String> {
    let bare = text.trim_end_matches('/');
    let Some(rest) = bare.strip_prefix("/var/") else {
        return Err(format!("`{text}` is not below `/var`, and Talos writes nowhere else"));
    };
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let good = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(allowed);
    if rest.split('/').all(good) {
        return Ok(bare.to_owned());
    }
    Err(format!("`{text}` is not a plain path of letters, digits, `-`, `_` and `.`"))
}

/// Reads the address of a manifest.
pub(crate) fn manifest_url(text: &str) -> Result<String, String> {
    if text.starts_with("file:") {
        return plain_file(text, "file:///srv/manifest.yaml");
    }
    match https(text)?.split_once('/') {
        Some((_, path)) if !path.is_empty() => Ok(text.to_owned()),
        _ => Err("it names a server, but no file on it".to_owned()),
    }
}

/// Reads the address of a folder that mirrors others.
pub(crate) fn mirror_url(text: &str) -> Result<String, String> {
    let bare = text.trim_end_matches('/');
    if text.starts_with("file:") {
        return plain_file(bare, "file:///srv/castle");
    }
    https(bare).map(|_| bare.to_owned())
}

/// A file or folder by its whole path. Nothing in it is decoded, so what would have to be is refused.
fn plain_file(text: &str, example: &str) -> Result<String, String> {
    let path = text.strip_prefix("file://").unwrap_or_default();
    if path.len() < 2 || !path.starts_with('/') {
        return Err(format!("a file is named by its whole path: {example}"));
    }
    if path.contains(['%', '?', '#']) || path.chars().any(char::is_control) {
        return Err("the path of a file is taken as it is: no `%`, `?` or `#` in it".to_owned());
    }
    if path.split('/').any(|part| part == "..") {
        return Err("the path leads upwards".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads a SHA-256.
pub(crate) fn sha256(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    match (digits.len(), digits.bytes().all(|b| b.is_ascii_hexdigit())) {
        (64, true) => Ok(digits),
        (64, false) => Err("it holds something else than hexadecimal digits".to_owned()),
        (length, _) => Err(format!("it has {length} digits, not 64")),
    }
}
