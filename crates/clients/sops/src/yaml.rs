//! YAML to tree and back: what sops itself understands of it, with the comments.

mod comments;
mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;

#[cfg(test)]
mod tests;
