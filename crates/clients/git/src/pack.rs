//! A pack: objects one after the other, some as changes of others, with a check sum over all; read with limits.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_COMPUTE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};
use thiserror::Error;

/// The most objects of one commit: files and folders together.
pub const MOST_OBJECTS: u32 = 100_000;
/// The largest object, unpacked.
pub const LARGEST_OBJECT: usize = 16 << 20;
/// What all objects together may be, unpacked.
pub const LARGEST_TOTAL: usize = 128 << 20;
/// How often changes may be stacked: Git's own limit is 50 unless somebody asks for more.
const DEEPEST: usize = 256;

/// The length of a name of an object.
const ID: usize = 20;

/// The name of an object: SHA-1 over what it is and holds.
pub(crate) type Id = [u8; ID];

/// Why a pack cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PackError {
    /// It does not begin as packs do, or in a version that we do not know.
    #[error("it is not a pack")]
    Kind,
    /// Its check sum is not that of its bytes.
    #[error("its check sum does not fit its bytes")]
    CheckSum,
    /// It ends early.
    #[error("it ends in the middle")]
    Torn,
    /// An object is not what it should be.
    #[error("the object at byte {at} cannot be read: {why}")]
    Object {
        /// Where.
        at: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There are more objects than we read, or they are too large.
    #[error("it is larger than we read: {what}")]
    TooLarge {
        /// Which limit.
        what: &'static str,
    },
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// The objects of a pack by their names.
pub(crate) type Objects = BTreeMap<Id, (Kind, Vec<u8>)>;

/// An object that is told as the change of another.
struct Delta {
    at: usize,
    base: Base,
    change: Vec<u8>,
}

enum Base {
    At(usize),
    Named(Id),
}

/// Reads a pack.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Objects, PackError> {
    let end = bytes.len().checked_sub(ID).ok_or(PackError::Torn)?;
    let (body, sum) = bytes.split_at(end);
    let number = |range: std::ops::Range<usize>| {
        body.get(range).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes)
    };
    let count = number(8..12).ok_or(PackError::Torn)?;
    if !body.starts_with(b"PACK") || !matches!(number(4..8), Some(2 | 3)) {
        return Err(PackError::Kind);
    }
    if digest(&SHA1_FOR_LEGACY_USE_ONLY, body).as_ref() != sum {
        return Err(PackError::CheckSum);
    }
    if count > MOST_OBJECTS {
        return Err(PackError::TooLarge { what: "too many objects" });
    }
    let mut reader = Reader { bytes: body, at: 12, left: LARGEST_TOTAL };
    let mut found = Found::default();
    let mut deltas = Vec::new();
    for _ in 0..count {
        match reader.object()? {
            Read::Whole(at, kind, bytes) => found.put(at, kind, bytes),
            Read::Delta(delta) => deltas.push(delta),
        }
    }
    found.resolve(deltas, &mut reader.left)?;
    Ok(found.objects)
}

enum Read {
    Whole(usize, Kind, Vec<u8>),
    Delta(Delta),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How many bytes may still be unpacked.
    left: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, PackError> {
        let byte = *self.bytes.get(self.at).ok_or(PackError::Torn)?;
        self.at += 1;
        Ok(byte)
    }

    /// One object: its kind and size, what it is a change of, and its bytes.
    fn object(&mut self) -> Result<Read, PackError> {
        let at = self.at;
        let wrong = |why| PackError::Object { at, why };
        let first = self.byte()?;
        let kind = first >> 4 & 7;
        let mut size = usize::from(first & 15);
        let mut shift = 4;
        let mut more = first & 128 != 0;
        while more {
            let byte = self.byte()?;
            if shift > 32 {
                return Err(wrong("its size has no end"));
            }
            size |= usize::from(byte & 127) << shift;
            shift += 7;
            more = byte & 128 != 0;
        }
        let whole = match kind {
            1 => Ok(Kind::Commit),
            2 => Ok(Kind::Tree),
            3 => Ok(Kind::Blob),
            4 => Ok(Kind::Tag),
            6 => Err(Base::At(self.earlier(at)?)),
            7 => {
                let id = self.bytes.get(self.at..self.at + ID).ok_or(PackError::Torn)?;
                self.at += ID;
                Err(Base::Named(id.try_into().map_err(|_| PackError::Torn)?))
            }
            _ => return Err(wrong("its kind is not known")),
        };
        let bytes = self.inflate(at, size)?;
        Ok(match whole {
            Ok(kind) => Read::Whole(at, kind, bytes),
            Err(base) => Read::Delta(Delta { at, base, change: bytes }),
        })
    }

    /// The place of an earlier object, told as a distance.
    fn earlier(&mut self, at: usize) -> Result<usize, PackError> {
        let wrong = PackError::Object { at, why: "what it is a change of is not in the pack" };
        let mut byte = self.byte()?;
        let mut distance = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.byte()?;
            if distance > self.bytes.len() {
                return Err(wrong);
            }
            distance = (distance + 1) << 7 | usize::from(byte & 127);
        }
        at.checked_sub(distance).filter(|place| *place < at).ok_or(wrong)
    }

    /// Unpacks bytes whose unpacked size is known.
    fn inflate(&mut self, at: usize, size: usize) -> Result<Vec<u8>, PackError> {
        take(&mut self.left, size)?;
        let mut out = vec![0; size];
        let flags = TINFL_FLAG_PARSE_ZLIB_HEADER
            | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
            | TINFL_FLAG_COMPUTE_ADLER32;
        let mut state = Box::<DecompressorOxide>::default();
        let (status, read, written) =
            decompress(&mut state, &self.bytes[self.at..], &mut out, 0, flags);
        if status != TINFLStatus::Done || written != size {
            return Err(PackError::Object { at, why: "it cannot be unpacked to its size" });
        }
        self.at += read;
        Ok(out)
    }
}

/// Counts unpacked bytes against the limits.
fn take(left: &mut usize, size: usize) -> Result<(), PackError> {
    if size > LARGEST_OBJECT {
        return Err(PackError::TooLarge { what: "an object of it" });
    }
    *left = left
        .checked_sub(size)
        .ok_or(PackError::TooLarge { what: "all of its objects together" })?;
    Ok(())
}

/// What is whole already.
#[derive(Default)]
struct Found {
    objects: Objects,
    places: BTreeMap<usize, Id>,
}

impl Found {
    fn put(&mut self, at: usize, kind: Kind, bytes: Vec<u8>) {
        let mut whole = format!("{} {}\0", kind.word(), bytes.len()).into_bytes();
        whole.extend_from_slice(&bytes);
        let mut id = [0; ID];
        id.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &whole).as_ref());
        self.places.insert(at, id);
        self.objects.insert(id, (kind, bytes));
    }

    /// Makes the changes whole, as often as one more can be made.
    fn resolve(&mut self, mut deltas: Vec<Delta>, left: &mut usize) -> Result<(), PackError> {
        for _ in 0..DEEPEST {
            let mut later = Vec::new();
            let before = deltas.len();
            for delta in deltas {
                let id = match &delta.base {
                    Base::At(place) => self.places.get(place),
                    Base::Named(id) => Some(id),
                };
                match id.and_then(|id| self.objects.get(id)) {
                    Some((kind, base)) => {
                        let (kind, bytes) = (*kind, changed(&delta, base, left)?);
                        self.put(delta.at, kind, bytes);
                    }
                    None => later.push(delta),
                }
            }
            match later.first() {
                None => return Ok(()),
                Some(delta) if later.len() == before => {
                    let why = "what it is a change of is not in the pack";
                    return Err(PackError::Object { at: delta.at, why });
                }
                Some(_) => deltas = later,
            }
        }
        Err(PackError::TooLarge { what: "changes are stacked too high" })
    }
}

/// An object from another one and what has changed: pieces of the other, and new bytes between.
fn changed(delta: &Delta, base: &[u8], left: &mut usize) -> Result<Vec<u8>, PackError> {
    let wrong = PackError::Object { at: delta.at, why: "its change does not fit" };
    let mut change = delta.change.as_slice();
    let from = varint(&mut change).ok_or_else(|| wrong.clone())?;
    let to = varint(&mut change).ok_or_else(|| wrong.clone())?;
    if from != base.len() {
        return Err(wrong);
    }
    take(left, to)?;
    let mut out = Vec::with_capacity(to);
    while let Some((&code, rest)) = change.split_first() {
        change = rest;
        let piece = if code & 128 != 0 {
            let offset = number(&mut change, code, 4).ok_or_else(|| wrong.clone())?;
            let mut size = number(&mut change, code >> 4, 3).ok_or_else(|| wrong.clone())?;
            if size == 0 {
                size = 0x1_0000;
            }
            base.get(offset..offset.saturating_add(size))
        } else {
            let size = usize::from(code);
            let piece = change.get(..size).filter(|piece| !piece.is_empty());
            change = change.get(size..).unwrap_or_default();
            piece
        };
        let piece = piece.filter(|p| out.len() + p.len() <= to).ok_or_else(|| wrong.clone())?;
        out.extend_from_slice(piece);
    }
    if out.len() == to { Ok(out) } else { Err(wrong) }
}

/// A number of seven bits a byte, the lowest first.
fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift > 35 {
            return None;
        }
        value |= usize::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            return Some(value);
        }
    }
}

/// A number whose bytes are there only if their bit is set.
fn number(bytes: &mut &[u8], present: u8, most: u32) -> Option<usize> {
    let mut value = 0;
    for index in 0..most {
        if present >> index & 1 == 1 {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            value |= usize::from(byte) << (8 * index);
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests;
