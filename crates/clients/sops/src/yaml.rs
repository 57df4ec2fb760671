//! YAML to tree and back: what sops itself understands of it, with the comments.

mod comments;
mod plain;
mod read;
mod write;

pub use plain::{check_yaml, plain_entries};
pub(crate) use read::read;
pub(crate) use write::write;

#[cfg(test)]
mod tests;
