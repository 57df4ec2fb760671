//! Lines with their length in front, which Git says everything in.

use thiserror::Error;

/// The longest line that the protocol knows.
const LONGEST: usize = 65_520;

/// Why bytes are not such lines.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PacketError {
    /// A line's length cannot be read, or is longer than the protocol allows.
    #[error("the line at byte {at} has no proper length")]
    Length {
        /// Where.
        at: usize,
    },
    /// The bytes end within a line, or before the last one.
    #[error("it ends in the middle")]
    Torn,
}

/// One line, or a mark between lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    /// `0000`: all is said.
    Flush,
    /// `0001`: the next part begins.
    Delimiter,
    /// `0002`: the answer is over.
    End,
    /// A line without its line break.
    Line(&'a [u8]),
}

/// Reads lines one after the other.
pub(crate) struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Packets<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next line with its place.
    pub(crate) fn next(&mut self) -> Result<(usize, Packet<'a>), PacketError> {
        let at = self.at;
        let wrong = PacketError::Length { at };
        let head = self.bytes.get(at..at + 4).ok_or(PacketError::Torn)?;
        let digits = std::str::from_utf8(head).map_err(|_| wrong.clone())?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong);
        }
        let length = usize::from_str_radix(digits, 16).map_err(|_| wrong.clone())?;
        let mark = match length {
            0 => Packet::Flush,
            1 => Packet::Delimiter,
            2 => Packet::End,
            4..=LONGEST => {
                let line = self.bytes.get(at + 4..at + length).ok_or(PacketError::Torn)?;
                self.at += length;
                return Ok((at, Packet::Line(line)));
            }
            _ => return Err(wrong),
        };
        self.at += 4;
        Ok((at, mark))
    }
}

/// A line without its line break.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// A line as it is sent.
pub(crate) fn line(text: &str) -> String {
    format!("{:04x}{text}\n", text.len() + 5)
}
