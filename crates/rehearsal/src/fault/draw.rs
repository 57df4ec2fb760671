//! Draws rules from a seed, for those who want to be surprised, and to be surprised again in the same way.

use crate::birth::dice_for;
use crate::turn::Dice;

use super::kind::{Kind, Make, Shape, Slot, kinds};
use super::names::Names;
use super::rule::{Rule, Who};
use super::value::{span, written};

/// The most rules of one seed.
const RULES_MAX: u64 = 3;
/// A bring-up takes about so long, in milliseconds: rules strike within it.
const RUN: u64 = 200_000;
/// What a clock jumps by, in hours, where it does not jump by seconds: an hour of summer time, or years, back to 1970 and
/// beyond.
const JUMPS: [u64; 4] = [1, 1, 12 * 8766, 58 * 8766];
/// The statuses that are drawn.
const STATUSES: [u64; 7] = [401, 403, 409, 429, 500, 503, 596];

/// One to three rules that a seed stands for.
#[must_use]
pub fn draw(seed: u64, names: &Names) -> Vec<Rule> {
    let mut dice = dice_for(seed, "faults");
    let wanted = 1 + dice.below(RULES_MAX);
    let pool: Vec<&'static Kind> = kinds().filter(|kind| is_drawable(kind, names)).collect();
    let mut rules = Vec::new();
    while rules.len() < usize::try_from(wanted).unwrap_or(1) && !pool.is_empty() {
        let kind = pool[pick(&mut dice, pool.len())];
        let text = compose(kind, names, &mut dice);
        // What is composed here can be read, or a test fails.
        rules.extend(Rule::parse(&text, names));
    }
    rules
}

/// Whether everything that a kind needs can be drawn.
fn is_drawable(kind: &Kind, names: &Names) -> bool {
    let slots = kind.object.iter().chain(kind.arguments).filter(|slot| !slot.optional);
    let can = |slot: &Slot| match slot.shape {
        Shape::Text | Shape::Object | Shape::Json | Shape::Setting | Shape::Value => false,
        Shape::Storage => !names.storages.is_empty(),
        Shape::Machine | Shape::Guest | Shape::Address => !names.machines.is_empty(),
        _ => true,
    };
    let proxmox = kind.who == [Who::Proxmox] && names.storages.is_empty();
    // What breaks of castle's own computer is not drawn: it has a proof of its own, which breaks it at every write.
    let own = matches!(kind.make, Make::Own(_));
    !proxmox && !own && slots.into_iter().all(can)
}

fn compose(kind: &Kind, names: &Names, dice: &mut Dice) -> String {
    let who = kind.who[pick(dice, kind.who.len())];
    let mut text = who.name().to_owned();
    let needed = |slot: &&Slot| !slot.optional;
    if let Some(slot) = kind.object.as_ref().filter(needed) {
        text = format!("{text} {}", value(slot, names, dice));
    }
    text = format!("{text}: {}", kind.name);
    for slot in kind.arguments.iter().filter(needed) {
        let given = match kind.make {
            Make::Clock(_) => jump(dice),
            _ => value(slot, names, dice),
        };
        text = format!("{text} {given}");
    }
    if matches!(kind.make, Make::Answer(_)) && dice.below(2) == 0 {
        return format!("{text} the {}th", 4 + dice.below(15));
    }
    let from = dice.below(RUN / 1000) * 1000;
    text = format!("{text} from {}", span(from));
    if kind.can_end() {
        text = format!("{text} for {}", span(1000 * (5 + dice.below(40))));
    }
    text
}

fn value(slot: &Slot, names: &Names, dice: &mut Dice) -> String {
    let one_of = |words: Vec<&str>, dice: &mut Dice| written(words[pick(dice, words.len())]);
    match slot.shape {
        Shape::Machine | Shape::Guest | Shape::Address | Shape::Target => {
            one_of(names.machines.keys().map(String::as_str).collect(), dice)
        }
        Shape::Storage => one_of(names.storages.iter().map(String::as_str).collect(), dice),
        Shape::Word(words) => one_of(words.to_vec(), dice),
        Shape::Time => span(1000 * (1 + dice.below(20))),
        Shape::Status => STATUSES[pick(dice, STATUSES.len())].to_string(),
        Shape::Number
        | Shape::Text
        | Shape::Object
        | Shape::Json
        | Shape::Setting
        | Shape::Value => (1 + dice.below(5)).to_string(),
    }
}

/// How far a clock jumps: by seconds, an hour, or years. One draw, as any other time, so that the rest of a seed's rules
/// does not hang on it.
fn jump(dice: &mut Dice) -> String {
    let drawn = dice.below(20);
    let hours = usize::try_from(drawn).ok().and_then(|at| JUMPS.get(at % 8));
    span(hours.map_or(1000 * (1 + drawn), |hours| hours * 3_600_000))
}

fn pick(dice: &mut Dice, length: usize) -> usize {
    let length = u64::try_from(length).unwrap_or(1).max(1);
    usize::try_from(dice.below(length)).unwrap_or(0)
}
