//! `castle lock`: what is pinned, what is compared, and what `up` refuses.

use std::fs;

use crate::context::{Context, example};

/// The rehearsal's lock, changed.
fn edit(castle: &Context, change: impl Fn(&str) -> String) {
    let path = castle.datacenter().join("castle.lock");
    let text = fs::read_to_string(&path).unwrap();
    let other = change(&text);
    assert_ne!(text, other, "the change changes nothing");
    fs::write(&path, other).unwrap();
}

/// What stands between the quotes after a word, from a place on.
fn after<'a>(text: &'a str, place: &str, word: &str) -> &'a str {
    let rest = text.split_once(place).unwrap().1;
    rest.split_once(&format!("\"{word}\": \"")).unwrap().1.split('"').next().unwrap()
}

#[test]
fn a_lock_pins_everything_and_up_takes_nothing_else() {
    let castle = Context::new();
    let plan = castle.run(&["plan"]).ends(0);
    assert!(plan.out.contains("Talos 1.13.9 on local, unverified"), "{}", plan.out);
    assert!(
        plan.err.contains(
            "notice: nothing pins the manifests of external-secrets 1.3.2, flux 2.9.3, longhorn 1.10.0, metallb 0.15.3 (unverified); `castle lock` does"
        ),
        "{}",
        plan.err
    );
    let said = castle.run(&["lock", "--check"]).ends(1);
    assert_eq!(said.out.matches("not pinned: ").count(), 5, "{}", said.out);
    insta::assert_snapshot!(said.out, @"
    not pinned: 88d1f7a5c4f1d3aba7df787c448c1d3d008ed29cfb34af53fa0df4336a56040b/v1.13.9/nocloud-amd64.qcow2: sha256 3c08be60deabfbe16eaaf67905cdccdc2a8118e8b8703685848911b2fc06d150, 8388608 bytes
    not pinned: external-secrets 1.3.2: sha256 a60d87596874ef3700fa1a06818fa1c55f9e0bda553c0260b631408c3dfdbaee, 10805 bytes
    not pinned: flux 2.9.3: sha256 03faa462a3eff763fc274887260284eeaec4623022edb95b55df3ee6fb5ca48d, 12499 bytes
    not pinned: longhorn 1.10.0: sha256 1ea120e470ae561d3f0cffe90b5b9d1105b9ab51a9a0d5a7b30878357ce29a25, 15010 bytes
    not pinned: metallb 0.15.3: sha256 355497c7975d0562fb617a2b2719d7152b71eebd910444e5cf9f534b35a07070, 11857 bytes
    ");
    assert!(said.err.contains("does not pin everything that was found"), "{}", said.err);
    assert!(said.err.contains("hint: `castle lock` pins it"), "{}", said.err);
    let said = castle.run(&["lock"]).ends(0);
    assert_eq!(said.out.matches("sha256 ").count(), 5, "{}", said.out);
    let path = castle.datacenter().join("castle.lock");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        after(&text, "\"flux\"", "url"),
        "https://github.com/fluxcd/flux2/releases/download/v2.9.3/install.yaml"
    );
    let said = castle.run(&["lock", "--check"]).ends(0);
    assert_eq!(said.out.matches("as pinned: ").count(), 5, "{}", said.out);
    insta::assert_snapshot!(said.out, @"
    as pinned: 88d1f7a5c4f1d3aba7df787c448c1d3d008ed29cfb34af53fa0df4336a56040b/v1.13.9/nocloud-amd64.qcow2: sha256 3c08be60deabfbe16eaaf67905cdccdc2a8118e8b8703685848911b2fc06d150, 8388608 bytes
    as pinned: external-secrets 1.3.2: sha256 a60d87596874ef3700fa1a06818fa1c55f9e0bda553c0260b631408c3dfdbaee, 10805 bytes
    as pinned: flux 2.9.3: sha256 03faa462a3eff763fc274887260284eeaec4623022edb95b55df3ee6fb5ca48d, 12499 bytes
    as pinned: longhorn 1.10.0: sha256 1ea120e470ae561d3f0cffe90b5b9d1105b9ab51a9a0d5a7b30878357ce29a25, 15010 bytes
    as pinned: metallb 0.15.3: sha256 355497c7975d0562fb617a2b2719d7152b71eebd910444e5cf9f534b35a07070, 11857 bytes
    ");
    castle.run(&["lock"]).ends(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "the same again changes nothing");
    let plan = castle.run(&["plan"]).ends(0);
    assert!(!plan.out.contains("unverified") && !plan.err.contains("unverified"), "{}", plan.err);
    castle.run(&["up"]).ends(0);
}

#[test]
fn a_manifest_with_another_byte_is_refused_before_it_is_read() {
    let castle = Context::new();
    castle.run(&["lock"]).ends(0);
    edit(&castle, |text| text.replace(after(text, "\"metallb\"", "sha256"), &"0".repeat(64)));
    let said = castle.run(&["lock", "--check"]).ends(1);
    assert!(said.out.contains("pinned: metallb 0.15.3: sha256 0000"), "{}", said.out);
    assert!(said.err.contains("is not the one that castle.lock pins"), "{}", said.err);
    let said = castle.run(&["lock"]).ends(3);
    assert!(said.err.contains("remove its entry from castle.lock"), "{}", said.err);
    let said = castle.run(&["up"]).ends(1);
    assert!(said.out.contains("pinned is 0000000000"), "{}", said.out);
    assert!(said.out.contains("find out why it changed"), "{}", said.out);
}

#[test]
fn an_image_with_other_content_is_refused() {
    let castle = Context::new();
    castle.run(&["lock"]).ends(0);
    edit(&castle, |text| text.replace(after(text, "\"images\"", "sha256"), &"0".repeat(64)));
    let said = castle.run(&["lock", "--images", "--check"]).ends(1);
    assert!(said.err.contains("is not the one that castle.lock pins"), "{}", said.err);
    castle.run(&["lock", "--manifests", "--check"]).ends(0);
    castle.run(&["lock", "--images"]).ends(3);
}

#[test]
fn what_an_existing_lock_does_not_pin_is_refused() {
    let castle = Context::new();
    castle.run(&["lock", "--images"]).ends(0);
    let said = castle.run(&["up"]).ends(3);
    assert!(said.err.contains("castle.lock does not pin metallb 0.15.3"), "{}", said.err);
    assert!(said.err.contains("hint: `castle lock` pins what is missing"), "{}", said.err);
    assert_eq!(castle.guests(), [0; 0], "nothing was done");
    castle.run(&["plan"]).ends(3);
    castle.run(&["lock", "--manifests"]).ends(0);
    castle.run(&["plan"]).ends(0);
    edit(&castle, |text| text.replace("/metallb/v0.15.3/", "/metallb/v0.15.2/"));
    let said = castle.run(&["up"]).ends(3);
    assert!(said.err.contains("metallb/v0.15.2/config"), "{}", said.err);
}

#[test]
fn an_older_version_is_pinned_only_if_that_is_meant() {
    let castle = Context::new();
    castle.run(&["lock"]).ends(0);
    edit(&castle, |text| text.replace("0.15.3", "0.15.9"));
    let said = castle.run(&["lock"]).ends(3);
    assert!(
        said.err.contains(
            "castle.lock pins metallb 0.15.9, this version of castle has the older 0.15.3"
        ),
        "{}",
        said.err
    );
    let said = castle.run(&["lock", "--check"]).ends(1);
    assert!(said.out.contains("pinned: metallb 0.15.9: "), "{}", said.out);
    castle.run(&["lock", "--check", "--allow-downgrade"]).ends(2);
    castle.run(&["lock", "--allow-downgrade"]).ends(0);
    castle.run(&["lock", "--check"]).ends(0);
}

#[test]
fn a_lock_that_can_not_be_written_stays_as_it_was() {
    let castle = Context::new();
    castle.run(&["lock", "--images"]).ends(0);
    let path = castle.datacenter().join("castle.lock");
    let before = fs::read_to_string(&path).unwrap();
    fs::create_dir(castle.datacenter().join(".castle.lock.new")).unwrap();
    let said = castle.run(&["lock"]).ends(1);
    assert!(said.err.contains("castle.lock could not be written"), "{}", said.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!(!castle.folder().join(".cache").exists(), "a rehearsal keeps nothing there");
}

#[test]
fn a_second_life_that_failed_before_its_first_vm_goes_on() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["down", "--yes"]).ends(0);
    castle.run(&["lock"]).ends(0);
    let path = castle.datacenter().join("castle.lock");
    let right = fs::read_to_string(&path).unwrap();
    edit(&castle, |text| text.replace(after(text, "\"images\"", "sha256"), &"0".repeat(64)));
    let said = castle.run(&["up"]).ends(1);
    assert!(said.out.contains("checksum mismatch"), "{}", said.out);
    fs::write(&path, right).unwrap();
    castle.run(&["up"]).ends(0);
}

#[test]
fn a_lock_that_is_damaged_is_a_finding_and_never_rehearsed() {
    let castle = Context::new();
    castle.write("castle.hcl", &example("one-and-one"));
    castle.write("castle.lock", "{\"format\": 1,");
    let said = castle.run(&["check"]).ends(2);
    assert!(said.err.contains("C1001") && said.err.contains("castle.lock"), "{}", said.err);
    castle.run(&["rehearse", "plan"]).ends(0);
    castle.run(&["rehearse", "lock"]).ends(0);
    let own = fs::read_to_string(castle.folder().join("castle.lock")).unwrap();
    assert_eq!(own, "{\"format\": 1,", "the images of a rehearsal are not those of the world");
}

#[test]
fn layers_by_address_are_rehearsed_with_stand_ins_and_files_by_their_content() {
    let castle = Context::new();
    castle.write(
        "site/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
    );
    let file = castle.folder().join("site/a.yaml");
    let text = |sha256: &str| {
        let layers = format!(
            "downloads {{\n mirror = \"file:///nowhere\"\n }}\n\
             layer \"far\" {{\n url = \"https://charts.lan/x.yaml\"\n sha256 = \"{}\"\n }}\n\
             layer \"near\" {{\n url = \"file://{}\"\n sha256 = \"{sha256}\"\n }}\n  deadlines {{",
            "ab".repeat(32),
            file.display()
        );
        example("blue").replacen("deadlines {", &layers, 1)
    };
    castle.write("castle.hcl", &text(&"cd".repeat(32)));
    let said = castle.run(&["rehearse", "up"]).ends(1);
    assert!(said.out.contains(&format!("pinned is {}", "cd".repeat(32))), "{}", said.out);
    let found = said.out.split("has the sha256 ").nth(1).unwrap()[..64].to_owned();
    castle.write("castle.hcl", &text(&found));
    castle.run(&["rehearse", "up"]).ends(0);
}

#[test]
fn a_hint_names_the_rehearsal_that_it_is_about() {
    let castle = Context::new();
    fs::write(
        castle.folder().join("own.hcl"),
        include_str!("../../../../examples/blue/castle.hcl"),
    )
    .unwrap();
    let said = castle.run(&["rehearse", "-f", "own.hcl", "lock", "--check"]).ends(1);
    assert!(said.err.contains("`castle rehearse -f own.hcl lock` pins it"), "{}", said.err);
}
