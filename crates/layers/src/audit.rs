//! What is there of a whole castle, asked of the world: the platform's part, and what is kept in escrow.

use castle_model::audit::{Item, Kind, Standing};
use castle_model::spec::EscrowAfterDown;
use castle_model::{Audit, Class, Failure, Secret, Spec};
use castle_platforms::audit::{Auditor, patiently};
use castle_platforms::escrow::BUNDLE_KEY;
use castle_platforms::handed::SecretValues;
use castle_wire::World;
use futures::future::join;

use crate::secrets::look::KeptEntry;
use crate::secrets::source::{Access, Sources};

/// Looks at everything that a castle could have left anywhere. `gone` says whether the castle should be no more; where
/// nobody knows, it stands if any machine of it does.
///
/// # Errors
/// If the keys that open the platform can not be had: nothing can be looked at then.
pub async fn audit(
    spec: &Spec,
    world: &World,
    access: &Access,
    gone: Option<bool>,
) -> Result<Audit, Failure> {
    let found = look(spec, world, access, (gone.unwrap_or(false), None)).await?;
    let stands = |item: &Item| item.kind == Kind::Guest && item.standing == Standing::Expected;
    if gone.is_none() && !found.items.iter().any(stands) {
        return look(spec, world, access, (true, None)).await;
    }
    Ok(found)
}

/// Looks at everything that could be left of a castle that has just gone. What was kept in escrow before tells a machine of
/// ours that answers still from anybody else's: by now that is gone from there.
///
/// # Errors
/// As [`audit`].
pub async fn audit_after(
    spec: &Spec,
    world: &World,
    access: &Access,
    kept: Option<&Secret>,
) -> Result<Audit, Failure> {
    look(spec, world, access, (true, kept)).await
}

async fn look(
    spec: &Spec,
    world: &World,
    access: &Access,
    (gone, before): (bool, Option<&Secret>),
) -> Result<Audit, Failure> {
    let sources = Sources::open(spec, world, access)?;
    // Both come from far away, and neither needs the other.
    let escrowed = patiently("look at what is in escrow", |_| (), || sources.escrowed(spec));
    let (secrets, escrowed) = join(keys(&sources, spec, |_| ()), escrowed).await;
    let secrets = secrets?;
    let mut items = Vec::new();
    let mut kept = None;
    // In few words: the rest of the way there stands in the castle file.
    let place = castle_platforms::escrow::words(spec);
    match escrowed {
        Ok((_, entries)) => {
            kept = bundle(&entries);
            items.extend(entries.iter().filter_map(|entry| escrow(spec, &place, entry, gone)));
        }
        Err(failure) => {
            let why = format!("it can not be looked at: {failure}");
            let unseen = Item::new(Standing::Unseen, Kind::Escrow, "what is in escrow", place, why);
            items.push(unseen.advice("mend that, then run `castle audit`"));
        }
    }
    let kept = kept.as_ref().or(before);
    let auditor = Auditor { spec, world, secrets: &secrets, kept, gone };
    items.extend(auditor.look().await);
    Ok(Audit::new(spec.name.clone(), gone, items))
}

/// The values of the keys that open the platform, and no others: what is missing beside them stops nobody who cleans up.
/// `waits` is told of what is waited for.
///
/// # Errors
/// If a source can not be read, or none has a key.
pub async fn platform_keys(
    spec: &Spec,
    world: &World,
    access: &Access,
    waits: impl FnMut(&str) + Send,
) -> Result<SecretValues, Failure> {
    keys(&Sources::open(spec, world, access)?, spec, waits).await
}

async fn keys(
    sources: &Sources,
    spec: &Spec,
    mut waits: impl FnMut(&str) + Send,
) -> Result<SecretValues, Failure> {
    let mut values = SecretValues::default();
    for key in spec.platform.secrets() {
        let what = format!("read {}, which opens the platform", key.0);
        let read = || sources.value(spec, &key.0);
        let Some(found) = patiently(&what, &mut waits, read).await? else {
            let places = sources.places_of(&key.0).join(", nor ");
            return Err(Failure::new(Class::Gone, what, format!("it is not there: {places}"))
                .hint("put it there, then run the same command again"));
        };
        values.0.insert(key.0.clone(), found.value);
    }
    Ok(values)
}

fn bundle(entries: &[KeptEntry]) -> Option<Secret> {
    let entry = entries.iter().find(|entry| entry.key == BUNDLE_KEY)?;
    entry.kept.as_ref().map(|(text, _)| text.clone())
}

fn escrow(spec: &Spec, place: &str, entry: &KeptEntry, gone: bool) -> Option<Item> {
    let (_, life) = entry.kept.as_ref()?;
    let item = |standing, whose: String| {
        Item::new(standing, Kind::Escrow, format!("{} ({})", entry.key, entry.what), place, whose)
    };
    Some(match (life, gone, spec.secrets.escrow.after_down) {
        (Err(why), ..) => item(Standing::Others, format!("not this castle's: {why}")),
        (Ok(life), false, _) => item(Standing::Expected, format!("of the life {life}")),
        (Ok(life), true, EscrowAfterDown::Remove) => {
            item(Standing::Left, format!("of the life {life}")).advice("`castle down` removes it")
        }
        (Ok(life), true, EscrowAfterDown::Keep) => item(
            Standing::Kept,
            format!("of the life {life}; the castle file keeps it (`after_down = \"keep\"`)"),
        ),
    })
}
