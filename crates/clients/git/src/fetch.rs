//! What is asked of a server to get one commit with its files, and the pack in what it answers, in both versions.

use thiserror::Error;

use crate::packet::{Packet, PacketError, Packets, line, trimmed};

/// Files above this size are not sent by servers that can leave them out: nobody writes such manifests by hand.
const LARGEST_FILE: &str = "1m";

/// Why an answer holds no pack.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// It is not in lines with their length.
    #[error("its answer cannot be read")]
    Packet(#[from] PacketError),
    /// The server says why not.
    #[error("it says: {0}")]
    Refused(String),
    /// There is none.
    #[error("its answer holds no files")]
    NoPack,
}

/// Asks for the references of all branches, in version 2.
pub(crate) fn ask_references() -> String {
    [
        line("command=ls-refs"),
        line("agent=castle"),
        "0001".to_owned(),
        line("ref-prefix refs/heads/"),
        "0000".to_owned(),
    ]
    .concat()
}

/// Asks for one commit without its past, in version 2.
pub(crate) fn ask_commit(commit: &str, filter: bool) -> String {
    let filter =
        if filter { line(&format!("filter blob:limit={LARGEST_FILE}")) } else { String::new() };
    [
        line("command=fetch"),
        line("agent=castle"),
        "0001".to_owned(),
        line("no-progress"),
        line("ofs-delta"),
        line("deepen 1"),
        filter,
        line(&format!("want {commit}")),
        line("done"),
        "0000".to_owned(),
    ]
    .concat()
}

/// Asks for one commit without its past, in the first version.
pub(crate) fn ask_commit_zero(commit: &str, filter: bool) -> String {
    let can = "no-progress ofs-delta shallow side-band-64k agent=castle";
    let (more, asked) = if filter {
        (" filter", line(&format!("filter blob:limit={LARGEST_FILE}")))
    } else {
        ("", String::new())
    };
    [
        line(&format!("want {commit} {can}{more}")),
        line("deepen 1"),
        asked,
        "0000".to_owned(),
        line("done"),
    ]
    .concat()
}

/// The pack in an answer to [`ask_commit`]: the part that is called so, its bytes in bands.
pub(crate) fn pack(answer: &[u8]) -> Result<Vec<u8>, FetchError> {
    let mut packets = Packets::new(answer);
    loop {
        match packets.next()?.1 {
            Packet::Line(line) if trimmed(line) == b"packfile" => return bands(packets),
            Packet::Line(line) => refused(line)?,
            Packet::Delimiter => {}
            Packet::Flush | Packet::End => return Err(FetchError::NoPack),
        }
    }
}

/// The pack in an answer to [`ask_commit_zero`]: behind where the past was cut off, and a line that nothing is known.
pub(crate) fn pack_zero(answer: &[u8]) -> Result<Vec<u8>, FetchError> {
    let mut packets = Packets::new(answer);
    loop {
        match packets.next()?.1 {
            Packet::Line(line) if trimmed(line) == b"NAK" => return bands(packets),
            Packet::Line(line) => refused(line)?,
            Packet::Delimiter | Packet::Flush => {}
            Packet::End => return Err(FetchError::NoPack),
        }
    }
}

fn refused(line: &[u8]) -> Result<(), FetchError> {
    match line.strip_prefix(b"ERR ") {
        Some(why) => Err(FetchError::Refused(words(why))),
        None => Ok(()),
    }
}

/// Collects the first band; the second tells of progress, the third says what went wrong.
fn bands(mut packets: Packets<'_>) -> Result<Vec<u8>, FetchError> {
    let mut pack = Vec::new();
    while let Packet::Line(line) = packets.next()?.1 {
        match line.split_first() {
            Some((1, bytes)) => pack.extend_from_slice(bytes),
            Some((3, why)) => return Err(FetchError::Refused(words(why))),
            _ => refused(line)?,
        }
    }
    if pack.is_empty() { Err(FetchError::NoPack) } else { Ok(pack) }
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(trimmed(bytes)).chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(number: u8, bytes: &str) -> String {
        format!("{:04x}{}{bytes}", bytes.len() + 5, char::from(number))
    }

    #[test]
    fn the_pack_is_put_together_from_its_band() {
        let answer = [
            line("shallow-info"),
            line("shallow 1111111111111111111111111111111111111111"),
            "0001".into(),
            line("packfile"),
            band(1, "PA"),
            band(2, "Counting objects"),
            band(1, "CK"),
            "0000".into(),
        ]
        .concat();
        assert_eq!(pack(answer.as_bytes()), Ok(b"PACK".to_vec()));
        let zero = [line("shallow 11"), "0000".into(), line("NAK"), band(1, "PACK"), "0000".into()];
        assert_eq!(pack_zero(zero.concat().as_bytes()), Ok(b"PACK".to_vec()));
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let told = |why: &str| Err(FetchError::Refused(why.to_owned()));
        let not_ours = line("ERR upload-pack: not our ref 11");
        assert_eq!(pack(not_ours.as_bytes()), told("upload-pack: not our ref 11"));
        assert_eq!(pack_zero(not_ours.as_bytes()), told("upload-pack: not our ref 11"));
        let late = [line("packfile"), band(1, "PA"), band(3, "out of memory\n")].concat();
        assert_eq!(pack(late.as_bytes()), told("out of memory"));
        assert_eq!(pack(b"0000"), Err(FetchError::NoPack));
        assert_eq!(
            pack([line("packfile"), "0000".into()].concat().as_bytes()),
            Err(FetchError::NoPack)
        );
        assert_eq!(pack(b"000"), Err(FetchError::Packet(PacketError::Torn)));
    }
}
