//! Parameters as Proxmox reads them: form-encoded, everything escaped, in the order given.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but RFC 3986's unreserved characters. Proxmox splits on `&`, `;` and every `=`, so nothing is left bare.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// One parameter after the other.
pub(crate) fn encode(parameters: &[(&str, String)]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(key, value)| format!("{}={}", segment(key), segment(value)))
        .collect();
    pairs.join("&")
}

/// One piece of a path or query.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_proxmox_splits_on_is_left_bare() {
        let parameters = [
            ("tags", "castle;inc-1".to_owned()),
            ("ipconfig0", "ip=10.0.0.5/24,gw=10.0.0.1".to_owned()),
            ("description", "a & b\n".to_owned()),
        ];
        assert_eq!(
            encode(&parameters),
            "tags=castle%3Binc-1&ipconfig0=ip%3D10.0.0.5%2F24%2Cgw%3D10.0.0.1&description=a%20%26%20b%0A"
        );
    }
}
