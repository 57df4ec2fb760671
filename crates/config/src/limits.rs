//! The limits of a castle file, each with its reason: a file from a stranger must never hang or crash `castle`.

/// The largest castle file, in bytes. A real one has some 3 KiB; whoever reads it from disk stops here too.
pub const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting of blocks, lists, objects, parentheses, templates and heredocs: the parser recurses.
pub const MAX_DEPTH: usize = 64;

/// The most settings in a file: the parser compares each key of an object with all others of that object.
pub const MAX_SETTINGS: usize = 4096;

/// The most words and signs outside of text and comments: the syntax tree keeps some 250 bytes for each.
pub const MAX_TOKENS: usize = 1 << 16;

/// The most findings that are kept; the rest is counted.
pub const MAX_FINDINGS: usize = 1000;

/// The most layers of one's own: each is compared with all others.
pub const MAX_LAYERS: usize = 100;

/// The most machines of one role: beyond it, a slip of the keyboard is likelier than a wish.
pub const MAX_MACHINES: i64 = 500;

/// The largest patch of a machine config, in bytes: Talos' API takes 32 MiB, people write some hundred bytes.
pub const MAX_PATCH_BYTES: usize = 256 << 10;

/// The most bytes that are parsed again and again to find the next syntax error after a first one.
pub(crate) const REPARSED_BYTES: usize = 2 << 20;
