//! How much of a text is looked at before it is refused. One place, each with its reason.

/// Bytes of a text. Secrets files are kilobytes; this is a thousand times that.
pub(crate) const BYTES: usize = 8 << 20;

/// Levels of nesting. Walking and dropping a tree recurse, so the stack bounds it.
pub(crate) const DEPTH: usize = 128;

/// Keys, values and comments. Each costs up to a hundred bytes of memory beside its text.
pub(crate) const NODES: usize = 200_000;

/// Work for a passphrase, as a power of two: 2^20 needs 1 GiB for some seconds. age writes 18.
pub(crate) const WORK_FACTOR: u8 = 20;
