//! SOPS files with age, in process: read, opened, checked, sealed and changed, without the `sops` program.
//!
//! Start at [`Sealed`] (an encrypted file), [`Tree`] (what it holds) and [`seal`]. Keys are in [`Identities`] and
//! [`Recipients`], what is encrypted in [`Rules`]. `docs/reference/sops.md` says what is honoured and what refused.
//!
//! Nothing here touches a file, the environment or a clock. No error and no `Debug` shows a value or a private key.

mod age_file;
mod cipher;
mod error;
mod format;
mod json;
mod keys;
mod limits;
mod opening;
mod rules;
mod scalar;
mod sealed;
mod sealing;
mod tree;
mod walk;
mod yaml;

#[cfg(test)]
mod tests;

pub use age_file::{open_age, seal_age};
pub use error::{AgeFault, SopsError};
pub use format::Format;
pub use keys::{Identities, Recipients};
pub use rules::{Pattern, Rules, Selection, UNENCRYPTED_SUFFIX};
pub use sealed::Sealed;
pub use sealing::seal;
pub use tree::{Branch, Bytes, List, Tree, Value};
pub use yaml::{check_yaml, plain_entries};

/// Where something stands in clear in a file that should be sealed: values and comments. Needs no identity.
///
/// # Errors
/// If the file is not sealed at all, or can not be read.
pub fn in_clear(text: &str, format: Format) -> Result<Vec<String>, SopsError> {
    Ok(Sealed::read(text, format)?.in_clear())
}

/// Checks that a file opens, that its MAC fits, and that nothing stands in clear that should be encrypted,
/// comments too.
///
/// # Errors
/// The first thing that is wrong; places in clear all at once.
pub fn verify(text: &str, format: Format, identities: &Identities) -> Result<Tree, SopsError> {
    let sealed = Sealed::read(text, format)?;
    let places = sealed.in_clear();
    if !places.is_empty() {
        return Err(SopsError::InClear { places });
    }
    sealed.open(identities)
}
