//! What a request is for: URIs as Go takes them, and paths as our library can bear them.

use std::net::Ipv6Addr;

use percent_encoding::percent_decode;

/// The longest target that goes on; our library takes no longer ones.
const TARGET_MAX: usize = 65_000;

/// The path and query of a URI that Go's server takes, in plain form; none if it takes it for none.
pub(super) fn of_uri(uri: &[u8]) -> Option<Vec<u8>> {
    if uri.is_empty() || uri.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return None;
    }
    if uri == b"*" {
        return Some(uri.to_vec());
    }
    let (scheme, rest) = scheme(uri)?;
    let cut = rest.iter().position(|byte| *byte == b'?');
    let (path, query) = match cut {
        Some(cut) => (&rest[..cut], Some(&rest[cut + 1..])),
        None => (rest, None),
    };
    let path = match (scheme, path.strip_prefix(b"//")) {
        (Some(scheme), Some(rest)) => {
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            if !is_authority(scheme, &rest[..end]) {
                return None;
            }
            &rest[end..]
        }
        (Some(_), None) if !path.starts_with(b"/") => b"",
        (None, _) if !path.starts_with(b"/") => return None,
        _ => path,
    };
    // Whoever serves sees the path as it is meant, not as it is written.
    let meant = |path| {
        let meant = percent_decode(path).flat_map(|byte| match byte {
            b'%' => b"%25".to_vec(),
            b'?' => b"%3F".to_vec(),
            other => vec![other],
        });
        meant.collect::<Vec<u8>>()
    };
    is_escaped(path, |_| true).then(|| plain(&meant(path), query))
}

/// A path and a query as our library can bear them.
pub(super) fn plain(path: &[u8], query: Option<&[u8]>) -> Vec<u8> {
    let mut target = Vec::with_capacity(path.len() + 1);
    if !path.starts_with(b"/") {
        target.push(b'/');
    }
    escape(path, &mut target);
    if let Some(query) = query {
        target.push(b'?');
        escape(query, &mut target);
    }
    target.truncate(TARGET_MAX);
    target
}

/// Escapes what may not stand as it is.
fn escape(bytes: &[u8], into: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%?".contains(byte) {
            into.push(*byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            into.extend_from_slice(&[b'%', HEX[high], HEX[low]]);
        }
    }
}

/// The scheme of a URI, if it has one, and what follows it.
fn scheme(uri: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    for (place, byte) in uri.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if place > 0 => {}
            b':' if place > 0 => return Some((Some(&uri[..place]), &uri[place + 1..])),
            b':' => return None,
            _ => break,
        }
    }
    Some((None, uri))
}

/// Whether every `%` is followed by two digits that `also` takes.
fn is_escaped(bytes: &[u8], also: impl Fn([u8; 2]) -> bool) -> bool {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(place, _)| {
        match bytes.get(place + 1..place + 3) {
            Some([high, low]) => {
                high.is_ascii_hexdigit() && low.is_ascii_hexdigit() && also([*high, *low])
            }
            _ => false,
        }
    })
}

fn is_authority(scheme: &[u8], authority: &[u8]) -> bool {
    let at = authority.iter().rposition(|byte| *byte == b'@');
    let (user, host) = match at {
        Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
        None => (None, authority),
    };
    let of_user = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
    user.is_none_or(|user| user.iter().all(of_user) && is_escaped(user, |_| true))
        && is_host(scheme, host)
}

fn is_host(scheme: &[u8], host: &[u8]) -> bool {
    let is_port = |port: &[u8]| port.iter().all(u8::is_ascii_digit);
    match host.iter().rposition(|byte| *byte == b'[') {
        Some(0) => {
            let Some(end) = host.iter().rposition(|byte| *byte == b']') else { return false };
            let (name, port) = (&host[1..end], &host[end + 1..]);
            let address = name.split(|byte| *byte == b'%').next().unwrap_or_default();
            let address = str::from_utf8(address).ok();
            port.strip_prefix(b":").map_or(port.is_empty(), is_port)
                && address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
        }
        Some(_) => false,
        None => {
            let web = [&b"http"[..], b"https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
            let colon = |byte: &u8| *byte == b':';
            let colon =
                if web { host.iter().position(colon) } else { host.iter().rposition(colon) };
            let of_host = |byte: &u8| {
                !byte.is_ascii()
                    || byte.is_ascii_alphanumeric()
                    || b"-_.~!$&'()*+,;=:[]<>\"%".contains(byte)
            };
            // Only what is beyond ASCII may be escaped, and the sign itself.
            let beyond = |[high, low]: [u8; 2]| high >= b'8' || (high, low) == (b'2', b'5');
            colon.is_none_or(|colon| is_port(&host[colon + 1..]))
                && host.iter().all(of_host)
                && is_escaped(host, beyond)
        }
    }
}
