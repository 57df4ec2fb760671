//! Stories that are read, and those that are not.

use std::time::Duration;

use castle_model::failure::Class;

use super::*;
use crate::render;

fn sources(text: &str) -> Sources {
    Sources { file: "my.hcl".to_owned(), text: text.as_bytes().to_vec(), ..Sources::default() }
}

fn shown(text: &str) -> String {
    let sources = sources(text);
    let read = read(&sources);
    assert_eq!(read.story.is_none(), !read.findings.is_empty());
    render(&read.findings, &sources, false, 100)
}

const GOOD: &str = r#"
story "A machine dies" {
  told = <<EOT
    Once a machine died,
    and nobody said so.
  EOT
  from = ["D 5", "a diary"]

  castle {
    change {
      from = "replicas = 2"
      to   = "replicas = 1"
    }
  }
  run "up" {
    break   = ["talos cp-02: dead from 0:40"]
    exit    = 1
    says    = ["cp-02", "hint"]
    fails   = ["platform/vm/cp-02: conflict"]
    within  = "10m"
  }
  meanwhile {
    poke   = ["talos cp-02: revived"]
    later  = "1m"
    forget = true
  }
  run "up" { changes = 0 }
  world {
    guests   = [421, 422]
    handover = true
  }
}
"#;

#[test]
fn a_story_is_read_in_its_order() {
    let read = read(&sources(GOOD));
    assert_eq!(read.findings, []);
    let story = read.story.unwrap();
    assert_eq!(story.title, "A machine dies");
    assert_eq!(story.told, "Once a machine died, and nobody said so.");
    assert_eq!(story.from, ["D 5", "a diary"]);
    assert_eq!(story.changes[0].from.text, "replicas = 2");
    let [Act::Run(first), Act::Meanwhile(then), Act::Run(second), Act::World(world)] =
        story.acts.as_slice()
    else {
        panic!("{:?}", story.acts)
    };
    let rule = &first.rules[0];
    assert_eq!(&GOOD[rule.range.clone()], "\"talos cp-02: dead from 0:40\"");
    assert_eq!(first.exit, 1);
    assert_eq!(first.fails, Some(vec![("platform/vm/cp-02".to_owned(), Class::Conflict)]));
    assert_eq!(first.within, Some(Duration::from_mins(10)));
    assert!(first.yes);
    assert!(then.forget);
    assert_eq!(then.later, Some(Duration::from_mins(1)));
    assert_eq!((second.exit, second.changes, &second.fails), (0, Some(0), &None));
    assert_eq!(world.guests, Some(vec!["421".to_owned(), "422".to_owned()]));
    assert_eq!((world.handover, world.running.as_ref()), (Some(true), None));
}

#[test]
fn every_mistake_is_told_with_its_place_and_its_cure() {
    let text = r#"
story "A machine dies" {
  told = "Once."
  form = ["D 5"]
  run "op" {}
  run "up" {
    exti  = 1
    fails = ["platform/vm-cp-02: conflit", "vm: gone"]
    says  = "cp-02"
  }
  world {}
}
extra = 1
"#;
    insta::assert_snapshot!(shown(text), @r#"
    error[C0102]: there is no key `form` here
     --> my.hcl:4:3
      |
    4 |   form = ["D 5"]
      |   ^^^^ unknown in `story`
      |
      = hint: did you mean `from`?

    error[C0108]: `run` of an unknown kind
     --> my.hcl:5:7
      |
    5 |   run "op" {}
      |       ^^^^ not known to this version
      |
      = why: this version knows `up`, `down`, `plan`, `status`, `audit` and `wipe`
      = hint: did you mean run "up"?

    error[C0102]: there is no key `exti` here
     --> my.hcl:7:5
      |
    7 |     exti  = 1
      |     ^^^^ unknown in `run`
      |
      = hint: did you mean `exit`?

    error[C1104]: a failure is expected as LAYER/STEP: CLASS
     --> my.hcl:8:14
      |
    8 |     fails = ["platform/vm-cp-02: conflit", "vm: gone"]
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not such a failure
      |
      = why: the class is `transient`, `conflict`, `denied`, `invalid`, `gone` or `bug`
      = hint: did you mean "platform/vm-cp-02: conflict"?

    error[C1104]: a failure is expected as LAYER/STEP: CLASS
     --> my.hcl:8:44
      |
    8 |     fails = ["platform/vm-cp-02: conflit", "vm: gone"]
      |                                            ^^^^^^^^^^ not such a failure
      |
      = why: the class is `transient`, `conflict`, `denied`, `invalid`, `gone` or `bug`
      = hint: write it like "platform/vm/cp-02: conflict"

    error[C0201]: `says` takes a list of texts
     --> my.hcl:9:13
      |
    9 |     says  = "cp-02"
      |             ^^^^^^^ of another type
      |
      = why: this is text
      = hint: put brackets around it: ["cp-02"]

    error[C1102]: nothing is expected of the world here
      --> my.hcl:11:3
       |
    11 |   world {}
       |   ^^^^^ an empty look
       |
       = hint: say what must be true, such as guests = [421, 422]

    error[C1101]: a story file holds one block `story`, and nothing else
      --> my.hcl:13:1
       |
    13 | extra = 1
       | ^^^^^ this stands beside it
       |
       = hint: move it into the block, or into a file of its own

    my.hcl: 8 errors
    "#);
}

#[test]
fn a_look_with_a_mistake_is_no_empty_one_and_a_story_with_mistakes_has_rules() {
    let text = r#"
story "Mistakes" {
  told = "Once."
  from = ["D 5"]
  run "pla" {
    exi   = 1
    break = ["talos cp-9: dead"]
  }
  world {
    nothing_left = 3
  }
}
"#;
    let read = read(&sources(text));
    let codes: Vec<&str> = read.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["C0108", "C0102", "C0201"]);
    assert_eq!(read.story, None);
    let draft = read.draft.unwrap();
    let [Act::Run(run), Act::World(_)] = draft.acts.as_slice() else { panic!("{draft:?}") };
    assert_eq!(run.rules[0].text, "talos cp-9: dead");
    // Of whose machines a rule speaks, nobody can say here.
    let other = text.replace("  world", "  castle {\n    file = 3\n  }\n  world");
    assert_eq!(super::read(&sources(&other)).draft, None);
}

#[test]
fn a_story_needs_a_run() {
    let text = "story \"Nothing\" {\n  told = \"Once.\"\n  from = [\"D 5\"]\n}\n";
    insta::assert_snapshot!(shown(text), @r#"
    error[C1102]: nothing is run in this story
     --> my.hcl:1:1
      |
    1 | story "Nothing" {
      | ^^^^^^^^^^^^^^^ this story
      |
      = hint: add run "up" { … }

    my.hcl: 1 error
    "#);
    let shown = shown("castle \"blue\" {}\n");
    assert!(shown.contains("there is no story in the file"), "{shown}");
}

#[test]
fn complaints_are_shown_at_their_place() {
    let sources = sources(GOOD);
    let start = GOOD.find("talos cp-02").unwrap();
    let findings = complain(
        &sources,
        [Complaint {
            code: "C1103",
            title: "there is no machine `cp-02`".to_owned(),
            range: start + 6..start + 11,
            label: "not in this castle".to_owned(),
            notes: Vec::new(),
            help: Some("did you mean `cp-01`?".to_owned()),
        }],
    );
    insta::assert_snapshot!(render(&findings, &sources, false, 100), @r#"
    error[C1103]: there is no machine `cp-02`
      --> my.hcl:16:23
       |
    16 |     break   = ["talos cp-02: dead from 0:40"]
       |                       ^^^^^ not in this castle
       |
       = hint: did you mean `cp-01`?

    my.hcl: 1 error
    "#);
}
