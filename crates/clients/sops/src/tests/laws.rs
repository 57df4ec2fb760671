//! Laws over any tree: sealed and opened it is the same; changed anywhere it does not open.

use castle_model::Secret;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{NOW, filler, identities, sealed};
use crate::tree::{Branch, Bytes, Element, Item, List, Tree, Value};
use crate::{Format, Rules, Sealed, Selection, SopsError, seal, verify};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{0,12}",
        2 => any::<String>().prop_map(|text| text.chars().take(20).collect()),
        1 => "[a-z]{1,4}(\n[ a-z#:]{0,6}){1,4}\n?",
        1 => prop::sample::select(vec![
            "", "~", "null", "true", "yes", "0x1f", "010", "1e3", "2024-01-02", "- a", "a: b", "a #b", "#", "|", "ENC[",
            "---", "...", "<<", "\t", " ", "\u{feff}x", "\u{85}", "a\r\nb", "'", "\"", "\\", "%", "@", "`", "!!str x",
        ]).prop_map(str::to_owned),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => text().prop_map(|text| Value::Text(Secret::new(text))),
        1 => any::<i64>().prop_map(Value::Integer),
        1 => any::<f64>().prop_filter("a number", |number| number.is_finite()).prop_map(Value::Float),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => Just(Value::Null),
        1 => vec(any::<u8>(), 0..9).prop_map(|rest| Value::Bytes(Bytes([vec![255], rest].concat()))),
        1 => (1000_u32..3000, 1_u32..13, 1_u32..29, 0_u32..24)
            .prop_map(|(year, month, day, hour)| Value::Time(format!("{year}-{month:02}-{day:02}T{hour:02}:00:00.5Z"))),
    ]
}

fn comment() -> impl Strategy<Value = Secret> {
    "[ -~]{0,10}[!-~]".prop_map(Secret::new)
}

/// Mappings keep their keys apart; a comment stands where a reader finds it again: never first, since what is
/// first in an item of a list is read as standing before the item.
fn branch(
    inner: impl Strategy<Value = Value> + 'static,
    commented: bool,
) -> impl Strategy<Value = Branch> {
    let key = prop_oneof![3 => "[a-z]{1,3}", 1 => text()];
    let entries = vec((key, inner, prop::option::of(comment())), 1..4);
    (entries, prop::option::of(comment())).prop_map(move |(entries, last)| {
        let mut items: Vec<Item> = Vec::new();
        for (key, value, comment) in entries {
            let known =
                items.iter().any(|item| matches!(item, Item::Entry(name, _) if *name == key));
            if known || key == "sops" {
                continue;
            }
            if let Some(comment) = comment.filter(|_| commented && !items.is_empty()) {
                items.push(Item::Comment(comment));
            }
            items.push(Item::Entry(key, value));
        }
        if let Some(last) = last.filter(|_| commented && !items.is_empty()) {
            items.push(Item::Comment(last));
        }
        Branch(items)
    })
}

fn value(commented: bool) -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            branch(inner.clone(), commented).prop_map(Value::Branch),
            vec((inner, prop::option::of(comment())), 0..4).prop_map(move |values| {
                let elements =
                    values.into_iter().enumerate().flat_map(|(number, (value, comment))| {
                        let comment = comment.filter(|_| commented && number > 0);
                        comment.map(Element::Comment).into_iter().chain([Element::Value(value)])
                    });
                Value::List(List(elements.collect()))
            }),
        ]
    })
}

fn tree(commented: bool) -> impl Strategy<Value = Tree> {
    branch(value(commented), commented).prop_map(|branch| Tree { documents: vec![branch] })
}

fn opened(text: &str, format: Format) -> Result<Tree, SopsError> {
    Sealed::read(text, format)?.open(&identities())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_in_yaml_is_read_as_it_was_written(tree in tree(true)) {
        let text = tree.to_text(Format::Yaml).unwrap();
        let again = Tree::read(text.expose(), Format::Yaml);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{}", text.expose())))?;
        let second = again.to_text(Format::Yaml).unwrap();
        prop_assert_eq!(text.expose(), second.expose());
        prop_assert!(again == tree, "{}", text.expose());
    }

    #[test]
    fn a_sealed_tree_opens_as_it_was(tree in tree(true), only in any::<bool>(), plain in any::<bool>()) {
        let suffix = if plain { "a" } else { "_unencrypted" };
        let selection = Selection::UnencryptedSuffix(suffix.to_owned());
        let rules = Rules { selection, mac_only_encrypted: only };
        let text = seal(&tree, Format::Yaml, &identities().recipients(), &rules, NOW, &mut filler());
        let text = text.map_err(|error| TestCaseError::fail(format!("{error}")))?;
        let again = opened(&text, Format::Yaml).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let (was, is) = (tree.to_text(Format::Yaml).unwrap(), again.to_text(Format::Yaml).unwrap());
        prop_assert_eq!(was.expose(), is.expose());
        prop_assert!(again == tree, "{}", text);
    }

    #[test]
    fn json_opens_as_it_was(tree in tree(false)) {
        // Bytes that are no text, and only those, have no form in JSON.
        let recipients = identities().recipients();
        let Ok(plain) = tree.to_text(Format::Json) else { return Ok(()) };
        let text = seal(&tree, Format::Json, &recipients, &Rules::default(), NOW, &mut filler()).unwrap();
        let again = opened(&text, Format::Json).unwrap();
        let again = again.to_text(Format::Json).unwrap();
        prop_assert_eq!(again.expose(), plain.expose());
    }

    #[test]
    fn no_text_makes_the_readers_fall(text in any::<String>()) {
        // Whatever it says, it answers.
        drop(Tree::read(&text, Format::Yaml));
        drop(Tree::read(&text, Format::Json));
    }

    #[test]
    fn no_broken_yaml_makes_the_reader_fall(text in "[-a:#\\[\\]{}, \n|>'\"&*!?%]{0,40}") {
        drop(Tree::read(&text, Format::Yaml));
    }
}

/// Another character of the same alphabet, so that only the meaning changes and not the shape.
fn other(character: char) -> char {
    match character {
        'A' => 'B',
        'a' => 'b',
        '0' => '1',
        character if character.is_ascii_uppercase() => 'A',
        character if character.is_ascii_lowercase() => 'a',
        _ => '0',
    }
}

#[test]
fn a_changed_character_anywhere_in_a_ciphertext_is_noticed() {
    let file =
        sealed("# a note\na: hunter2\nl:\n    # one\n    - 5\n", Format::Yaml, &Rules::default());
    assert!(opened(&file, Format::Yaml).is_ok());
    let mut changed = 0;
    let mut in_armor = false;
    let mut start = 0;
    for line in file.split_inclusive('\n') {
        in_armor = (in_armor || line.contains("BEGIN AGE")) && !line.contains("END AGE");
        let body = if let Some(at) = line.find("ENC[") {
            at..line.trim_end().len()
        } else if in_armor && !line.contains("---") {
            line.len() - line.trim_start().len()..line.trim_end().len()
        } else {
            0..0
        };
        for at in body {
            let at = start + at;
            let Some(character) = file[at..].chars().next() else { break };
            let mut tampered = file.clone();
            tampered.replace_range(at..=at, &other(character).to_string());
            if tampered == file {
                continue;
            }
            changed += 1;
            let error = verify(&tampered, Format::Yaml, &identities());
            assert!(error.is_err(), "{at}: {character}\n{tampered}");
        }
        start += line.len();
    }
    assert!(changed > 900, "{changed}");
}

#[test]
fn values_can_not_change_places() {
    let file = sealed(
        "a: one\nb: two\nl:\n    - x\n    - y\nm_unencrypted: 1\nn_unencrypted: 2\n",
        Format::Yaml,
        &Rules::default(),
    );
    let lines: Vec<&str> = file.lines().collect();
    let value = |line: usize| lines[line][lines[line].find("ENC[").unwrap_or(0)..].to_owned();
    let swapped = |one: usize, two: usize| {
        let (first, second) = (value(one), value(two));
        file.replace(&first, "\u{1}").replace(&second, &first).replace('\u{1}', &second)
    };
    let error = opened(&swapped(0, 1), Format::Yaml).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a: damaged, moved from elsewhere, or encrypted with another key"
    );
    // Items of one list are bound to the same path: the MAC tells.
    assert_eq!(opened(&swapped(3, 4), Format::Yaml).unwrap_err(), SopsError::Mac);
    let clear =
        file.replace("m_unencrypted: 1\nn_unencrypted: 2", "m_unencrypted: 2\nn_unencrypted: 1");
    assert_eq!(opened(&clear, Format::Yaml).unwrap_err(), SopsError::Mac);
    let without = file.replacen(&format!("{}\n", lines[0]), "", 1);
    assert_eq!(opened(&without, Format::Yaml).unwrap_err(), SopsError::Mac);
}
