//! Which layer brings an object: one alone.

use castle_engine::{Context, Key};
use castle_kubernetes::Object;
use castle_model::{Class, Failure, Finding, LayerName};

/// The layer that has an object in this run, by the object's name.
const BRINGER: Key<LayerName> = Key::new("manifest/bringer");

/// Refuses objects that another layer of this castle has too: each would take them from the other, for ever.
pub(super) fn once(
    cx: &Context,
    name: &str,
    layer: &LayerName,
    objects: &[Object],
) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for object in objects {
        let thing = format!("{} {}", object.group(), object.id());
        match cx.outputs().get_of(&BRINGER, &thing) {
            Ok(other) if *other != *layer => {
                let why = format!("the layer {} has it too", other.as_str());
                findings.push(Finding::new(
                    object.id().to_string(),
                    why,
                    "leave it to one of the two",
                ));
            }
            _ => cx.outputs().put_of(&BRINGER, &thing, layer.clone()),
        }
    }
    let Some(first) = findings.first() else { return Ok(()) };
    let more = match findings.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = format!("{}: {}{more}", first.place, first.why);
    Err(Failure::new(Class::Invalid, format!("read {name}"), why)
        .findings(findings)
        .hint("take it out of one of the layers, and name the other in `after`"))
}
