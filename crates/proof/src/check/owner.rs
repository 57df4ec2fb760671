//! Ownership: what others have put there is as it was, to the byte.

use castle_rehearsal::world::Datacenter;
use serde_json::Value;

use super::Violation;
use super::same::differences;
use crate::setting::Setting;

/// Compares everything foreign before and after.
#[must_use]
pub fn foreign(setting: &Setting, before: &Value, after: &Datacenter) -> Vec<Violation> {
    let now = setting.foreign(after);
    let found = differences(before, &now).into_iter();
    found.map(|what| Violation::new("ownership", what)).collect()
}
