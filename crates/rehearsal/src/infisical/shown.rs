//! Secrets as the API shows them: every kind of reply shows a little more or less.

use serde_json::{Value, json};

use super::request::Place;
use super::vault::{Earlier, Kept, stamp};

/// What stands in the place of a value that was not asked for.
pub(super) const HIDDEN: &str = "<hidden-by-infisical>";

/// How much of a secret a reply shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Everything, as reads do.
    Read,
    /// As a create shows it.
    Created,
    /// As an update shows it: no comment, although it is kept.
    Updated,
    /// As a batch shows it.
    Batched,
}

/// A secret in a reply.
pub(super) fn shown(place: &Place, key: &str, kept: &Kept, value: &str, view: View) -> Value {
    let comment = if view == View::Updated { "" } else { &kept.comment };
    let mut shown = json!({
        "id": kept.id,
        "_id": kept.id,
        "workspace": place.project,
        "environment": place.environment,
        "version": kept.version,
        "type": "shared",
        "secretKey": key,
        "secretValue": value,
        "secretComment": comment,
        "secretReminderNote": null,
        "secretReminderRepeatDays": null,
        "skipMultilineEncoding": kept.multiline,
        "createdAt": stamp(kept.made),
        "updatedAt": stamp(kept.changed),
        "isRotatedSecret": false,
        "rotationId": null,
    });
    if view != View::Created {
        shown["secretValueHidden"] = json!(value == HIDDEN);
    }
    if view == View::Read {
        shown["secretPath"] = json!(place.path);
        shown["tags"] = json!([]);
        shown["secretMetadata"] = notes(kept);
    }
    shown
}

/// One version of a secret in a reply.
pub(super) fn version_shown(
    (place, key): (&Place, &str),
    (kept, version): (&Kept, u64),
    once: &Earlier,
    value: &str,
) -> Value {
    json!({
        "id": kept.id,
        "_id": kept.id,
        "workspace": place.project,
        "environment": place.environment,
        "version": version,
        "type": "shared",
        "secretKey": key,
        "secretValue": value,
        "secretComment": once.comment,
        "secretReminderNote": null,
        "secretReminderRepeatDays": null,
        "skipMultilineEncoding": kept.multiline,
        "createdAt": stamp(once.written),
        "updatedAt": stamp(once.written),
        "secretValueHidden": value == HIDDEN,
        "secretPath": place.path,
    })
}

/// The notes on a secret.
pub(super) fn notes(kept: &Kept) -> Value {
    let notes = kept.metadata.iter();
    notes.map(|note| json!({"key": note.key, "value": note.value, "isEncrypted": false})).collect()
}
