//! Tests of the language: what is read, what is printed, and what is said about what can not be read.

use proptest::prelude::*;

use super::value::{span, time};
use super::word::RULE_MAX;
use super::*;
use crate::testing::spec;

mod strike;

pub(super) fn names() -> Names {
    Names::of(&spec(3, 2))
}

fn rule(text: &str) -> Rule {
    Rule::parse(text, &names()).unwrap_or_else(|error| panic!("{}", error.picture("test", 1)))
}

fn wrong(text: &str) -> String {
    let error = Rule::parse(text, &names()).map(|rule| rule.to_string()).unwrap_err();
    error.picture("--fault", 1)
}

#[test]
fn every_kind_has_an_example_that_reads_and_prints_the_same() {
    for kind in kinds() {
        let read = rule(kind.example);
        assert_eq!(read.kind(), kind, "{}", kind.example);
        assert_eq!(read.to_string(), kind.example);
        assert_eq!(rule(&read.to_string()), read);
    }
}

#[test]
fn names_of_kinds_are_told_apart() {
    for who in Who::ALL {
        let mut own: Vec<&str> =
            kinds().filter(|kind| kind.who.contains(&who)).map(|kind| kind.name).collect();
        let all = own.len();
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), all, "{}", who.name());
    }
}

#[test]
fn conditions_come_in_any_order_and_are_printed_in_one() {
    let printed = rule("proxmox  421: drops after during machines 5 times for 1:05 the 3rd from 0:40 on post /qemu").to_string();
    assert_eq!(
        printed,
        "proxmox 421: drops after on POST /qemu the 3rd 5 times from 0:40 for 1:05 during machines"
    );
    let quoted = rule("proxmox: task fails qmstart \"no space: \\\"left\\\" on it\" once");
    assert_eq!(
        quoted.to_string(),
        "proxmox: task fails qmstart \"no space: \\\"left\\\" on it\" once"
    );
    for same in [
        "proxmox 421: edited description \"times\"",
        "downloads \"https://a b\": missing",
        "git: removed \"from\"",
    ] {
        assert_eq!(rule(same).to_string(), same);
    }
    assert_eq!(rule("talos cp-02 : dead").to_string(), "talos cp-02: dead");
    assert_eq!(rule("talos cp-02:dead").sentence(), "talos cp-02 is dead");
    assert_eq!(rule("proxmox 421: edited tags").sentence(), "proxmox 421 was edited by hand: tags");
}

#[test]
fn times_are_written_as_the_screen_shows_them() {
    for (text, ms) in
        [("0:40", 40_000), ("12:05", 725_000), ("1:00:00", 3_600_000), ("0:00.25", 250)]
    {
        assert_eq!(time(text), Some(ms), "{text}");
        assert_eq!(time(&span(ms)), Some(ms), "{text}");
    }
    for text in [
        "40",
        "0:4",
        "0:60",
        "0:040",
        "-0:40",
        "0:40.1234",
        "0:+4",
        ":40",
        "1:2:3:4",
        "1:00:60",
        "999999999999:00",
    ] {
        assert_eq!(time(text), None, "{text}");
    }
}

#[test]
fn a_wrong_rule_is_told_with_its_place_and_what_was_meant() {
    insta::assert_snapshot!(wrong("talos cp-2: dead from 0:40"), @r"
    the castle file has no node called `cp-2`
     --> --fault:1:7
      |
    1 | talos cp-2: dead from 0:40
      |       ^^^^ did you mean `cp-02`?
      |
      = hint: there is: cp-01, cp-02, cp-03, worker-01, worker-02
    ");
    insta::assert_snapshot!(wrong("proxmox: drops befor on POST /qemu"), @r"
    proxmox has no fault called `drops befor`
     --> --fault:1:10
      |
    1 | proxmox: drops befor on POST /qemu
      |          ^^^^^^^^^^^ did you mean `drops before`?
      |
      = hint: there is: refuses, drops before, drops after, hangs, slow, drips, answers, limits, answers stale, hears twice, answers twice, node down, full, locked, task hangs, task lies, task fails, task warns, overtaken, token revoked, privilege lost, edited, stopped, destroyed, foreign vm, foreign container, images lost, lost disk
    ");
    let patch = wrong("kubernetes: patched node/worker-01 {\"spec\":{\"taints\":[]}");
    insta::assert_snapshot!(patch, @r#"
    this is no object in JSON: EOF while parsing an object at line 1 column 21
     --> --fault:1:36
      |
    1 | kubernetes: patched node/worker-01 {"spec":{"taints":[]}
      |                                    ^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: such as {"spec":{"replicas":0}}, in quotes if it has spaces
    "#);
    assert!(wrong("kubernetes: patched node/worker-01 [1,2]").starts_with("this is no object"));
    let edited = wrong("proxmox 431: edited memry 4096");
    assert!(edited.starts_with("a VM has no option called `memry`"), "{edited}");
    assert!(edited.contains("did you mean `memory`?"), "{edited}");
    let edited = wrong("proxmox 431: edited cores many");
    assert!(edited.starts_with("`cores` can not be set to `many`"), "{edited}");
    assert!(edited.contains("type check ('integer') failed - got 'many'"), "{edited}");
    let half = wrong("proxmox: drops on POST /qemu");
    assert!(half.contains("^^^^^ did you mean `drops before` or `drops after`?"), "{half}");
    insta::assert_snapshot!(wrong("promox: refuses"), @r"
    nobody is called `promox` here
     --> --fault:1:1
      |
    1 | promox: refuses
      | ^^^^^^ did you mean `proxmox`?
      |
      = hint: there is: proxmox, talos, kubernetes, flux, infisical, git, downloads, network, castle
    ");
    insta::assert_snapshot!(wrong("talos cp-02: dead during etc"), @r"
    there is no phase called `etc`
     --> --fault:1:26
      |
    1 | talos cp-02: dead during etc
      |                          ^^^ did you mean `etcd`?
      |
      = hint: there is: empty, machines, etcd, api, nodes, flux
    ");
    insta::assert_snapshot!(wrong("talos cp-02: dead from 40"), @r"
    `40` is no time
     --> --fault:1:24
      |
    1 | talos cp-02: dead from 40
      |                        ^^
      |
      = hint: a time is written M:SS, such as 0:40
    ");
    insta::assert_snapshot!(wrong("talos cp-02: dead from 0:40 until 0:30"), @r"
    this window is empty: it ends before it begins
     --> --fault:1:29
      |
    1 | talos cp-02: dead from 0:40 until 0:30
      |                             ^^^^^
      |
      = hint: `until` is a time of the run, `for` a length
    ");
}

#[test]
fn what_a_rule_lacks_or_has_too_much_is_told() {
    insta::assert_snapshot!(wrong("proxmox: task hangs"), @r"
    TASK is missing
     --> --fault:1:20
      |
    1 | proxmox: task hangs
      |                    ^
      |
      = hint: there is: download, qmcreate, qmstart, qmstop, qmdestroy, qmshutdown
    ");
    insta::assert_snapshot!(wrong("talos: dead"), @r"
    `NODE` is missing: dead of what?
     --> --fault:1:6
      |
    1 | talos: dead
      |      ^
      |
      = hint: it is written `talos NODE: dead`; there is: cp-01, cp-02, cp-03, worker-01, worker-02
    ");
    insta::assert_snapshot!(wrong("talos cp-02 dead from 0:40"), @r"
    a colon is missing before what happens
     --> --fault:1:13
      |
    1 | talos cp-02 dead from 0:40
      |             ^^^^
      |
      = hint: such as `talos cp-02: dead`
    ");
    insta::assert_snapshot!(wrong("proxmox: dead"), @r"
    proxmox has no fault called `dead`
     --> --fault:1:10
      |
    1 | proxmox: dead
      |          ^^^^
      |
      = hint: it is written `talos NODE: dead`; there is: refuses, drops before, drops after, hangs, slow, drips, answers, limits, answers stale, hears twice, answers twice, node down, full, locked, task hangs, task lies, task fails, task warns, overtaken, token revoked, privilege lost, edited, stopped, destroyed, foreign vm, foreign container, images lost, lost disk
    ");
    insta::assert_snapshot!(wrong("talos cp-02: drips 0:10"), @r"
    talos has no fault called `drips`
     --> --fault:1:14
      |
    1 | talos cp-02: drips 0:10
      |              ^^^^^
      |
      = hint: proxmox, kubernetes, infisical, git, downloads can have it, as `SERVER [OBJECT]: drips TIME`; there is: refuses, drops before, drops after, hangs, slow, answers, dead, revived, reboots, wrong address, clock astray, clock ahead, clock behind, stale etcd, bootstrap lost, usurped, pulls refused, unwritable, data disk gone, extension missing, etcd removed, ghost
    ");
    insta::assert_snapshot!(wrong("proxmox 421: overtaken for 0:30"), @r"
    `overtaken` does not end by itself
     --> --fault:1:24
      |
    1 | proxmox 421: overtaken for 0:30
      |                        ^^^
      |
      = hint: leave `until` or `for` out
    ");
    insta::assert_snapshot!(wrong("proxmox: answers 200"), @r"
    `200` is no status of an error
     --> --fault:1:18
      |
    1 | proxmox: answers 200
      |                  ^^^
      |
      = hint: give one from 400 to 599, such as 401, 403, 409, 429, 500 or 595
    ");
    insta::assert_snapshot!(wrong("infisical: slow 0:02 onse"), @r"
    `onse` is not understood here
     --> --fault:1:22
      |
    1 | infisical: slow 0:02 onse
      |                      ^^^^ did you mean `once`?
      |
      = hint: `SERVER [OBJECT]: slow TIME` can be followed by: on METHOD PATH, the 3rd, once, twice, 5 times, from, until, for, during
    ");
}

#[test]
fn other_wrong_rules_are_refused_too() {
    for (text, words) in [
        ("", "begins with who"),
        (":", "begins with who"),
        ("talos cp-02:", "what happens to talos is missing"),
        ("talos", "a colon and what happens are missing"),
        ("proxmox local: full full", "not understood"),
        ("proxmox lokal: full", "no storage"),
        ("proxmox 42: foreign vm", "neither a node nor the number"),
        ("network 192.168.1.300: stolen", "is no address"),
        ("proxmox cp-01: node down", "is about no one thing"),
        ("talos cp-01: dead twice", "happens once"),
        ("talos cp-01: dead the 3rd", "of which calls"),
        ("talos cp-01: dead for 0:00", "window is empty"),
        ("proxmox: refuses on FETCH /x", "is no method"),
        ("proxmox: drops after on PSOT /qemu the 2nd", "did you mean `POST`?"),
        ("proxmox: refuses on GET", "the path is missing"),
        ("proxmox: refuses the 0th", "is no count"),
        ("proxmox: refuses 99999999999 times", "is no count"),
        ("proxmox: refuses from 0:10 from 0:20", "said twice"),
        ("proxmox: refuses until 0:10 for 0:20", "said twice"),
        ("proxmox: task fails qmstart \"open", "quotation mark is open"),
        ("infisical: stumbles many", "no whole number"),
        ("git: removed \"\"", "must not be empty"),
        ("kubernetes: deleted controller", "is no object"),
        ("talos cp-02:\u{7} dead", "one line of text"),
    ] {
        let told = wrong(text);
        assert!(told.contains(words), "{text}: {told}");
    }
    let long = format!("git: removed {}", "x".repeat(RULE_MAX));
    assert!(wrong(&long).contains("at most 500 letters"));
}

#[test]
fn a_file_tells_all_its_mistakes_at_once() {
    let text =
        "# what happened in spring\n\ntalos cp-02: dead from 0:40 # the second\n  git: away\n";
    assert_eq!(read(text, &names()).unwrap().len(), 2);
    let Err(FileError::Rules(errors)) = read("git: awya\n# no\ntalos: dead\n", &names()) else {
        panic!("it was read");
    };
    assert_eq!(errors.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(read(&"git: away\n".repeat(201), &names()), Err(FileError::TooMany));
    assert_eq!(read(&"#".repeat(70_000), &names()), Err(FileError::TooLarge));
}

#[test]
fn seeds_draw_rules_that_read_the_same_and_differ() {
    let mut drawn = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let rules = draw(seed, &names());
        assert!((1..=3).contains(&rules.len()), "{seed}");
        assert_eq!(rules, draw(seed, &names()));
        for rule in &rules {
            assert_eq!(&self::rule(&rule.to_string()), rule);
            drawn.insert(rule.kind().name);
        }
    }
    assert!(drawn.len() >= 24, "{drawn:?}");
}

#[test]
fn paths_are_told_by_their_end() {
    let on = |path: &str| On { method: "ANY".to_owned(), path: path.to_owned() };
    assert!(on("/qemu").hits("POST", "/api2/json/nodes/pve/qemu"));
    assert!(!on("/qemu").hits("POST", "/api2/json/nodes/pve/qemu/421"));
    assert!(on("/qemu/*").hits("POST", "/api2/json/nodes/pve/qemu/421/config"));
    assert!(on("/nodes/*/config").hits("GET", "/api2/json/nodes/pve/qemu/421/config"));
    assert!(!on("/lxc/*/config").hits("GET", "/api2/json/nodes/pve/qemu/421/config"));
    assert!(on("*").hits("GET", ""));
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,9}",
        "[0-9]{1,4}",
        "[0-9]{1,2}:[0-9]{2}",
        "[ -~]{0,12}".prop_map(|text| format!("\"{}\"", text.replace(['"', '\\'], "/"))),
        proptest::sample::select(
            kinds().flat_map(|kind| kind.example.split(' ')).collect::<Vec<_>>()
        )
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn whatever_is_typed_is_read_or_refused_and_what_is_read_prints_itself(
        words in proptest::collection::vec(word(), 0..12),
    ) {
        let text = words.join(" ");
        match Rule::parse(&text, &names()) {
            Ok(rule) => {
                let printed = rule.to_string();
                prop_assert_eq!(Rule::parse(&printed, &names()), Ok(rule), "{}", printed);
            }
            Err(error) => {
                prop_assert!(error.span.start <= error.span.end);
                prop_assert!(error.rule.get(error.span.clone()).is_some());
                prop_assert!(!error.picture("x", 1).is_empty());
            }
        }
    }

    #[test]
    fn anything_at_all_is_read_or_refused(text in any::<String>()) {
        if let Err(error) = Rule::parse(&text, &names()) {
            prop_assert!(!error.picture("x", 1).chars().any(|c| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn conditions_print_themselves(
        kind in proptest::sample::select(kinds().collect::<Vec<_>>()),
        nth in proptest::option::of(1_u32..30),
        times in proptest::option::of(1_u32..9),
        from in proptest::option::of(0_u64..9_000_000),
        length in proptest::option::of(1_u64..9_000_000),
        phase in proptest::option::of(proptest::sample::select(Phase::ALL.to_vec())),
        on in proptest::option::of("/[a-z0-9/*. ]{0,12}"),
    ) {
        let bare = Rule { when: When::default(), ..rule(kind.example) };
        let when = When {
            on: on.map(|path| On { method: "GET".to_owned(), path }),
            nth, times, from, until: length.map(Until::For), phase,
        };
        let text = format!("{bare}{when}");
        if let Ok(rule) = Rule::parse(&text, &names()) {
            prop_assert_eq!(rule.when(), &when);
            prop_assert_eq!(rule.to_string(), text);
        } else {
            // Only what happens once, or does not end, may refuse a condition.
            prop_assert!(!matches!(kind.make, kind::Make::Answer(_)), "{}", text);
        }
    }
}
