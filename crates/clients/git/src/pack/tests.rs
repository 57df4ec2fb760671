//! Packs that the git program made, whole and spoiled: eight objects, two of them told as changes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::tree::{Entry, Tree};

/// Changes name what they change by its place.
const BY_PLACE: &str = "\
UEFDSwAAAAIAAAAInAh4nI3KUQqDMAyA4feeIu+Dkc5aG5Cxq6Q1mYKlUjPY8ecR9j9+/NZFoBQaVZFSSDliHrHIw3MOy6B+SEuUSyYN4vhja+\
vAMPNLvlyPXe6tv5/gp0hEGBDhhleutFo3M/lrdrr109wPejEokqIEeJwzMQAChcSCgmKGe4rsv3wkZWyUc955P3CPmMa8QvCmCVg6Oae0uCS1\
qJihQ4EpXrSA60ev3D6u708Nly+siCsBAOSmGCOkBHicMzQwMDMxUUjUq0zMzWFQ8ahO2cruPqVuj2ZqQ5eC5Kcniy8YQlQkQVR8V2mZ0/cr67\
3Wy8iLNW57dLXmpeYAAD4bGve4KXicrc7BDYMwDEbhO1P8K9BCW/XaA3NE1EmsWrZEDGJ8QF3BA7xPT1gJPSwjIbMQvCYHN4hpAamtpSLbgokd\
bnASAXuD0u7YaGlsitTOfK5JC3Vyibdw8R4uDuHiGCn+WL9vfP7yI/z1GS6+IsUDQ6flwuQBdHicm8E6g3XDLMbJixi/cWRn5qVYKThxAQBQ/w\
cGZyB4nJvBOoF1wwQmAApjAnWvAXicMzEAAoWknNJUho81z5cKCnrNE/778ovq3tDK+35GfAC4QQzKogJ4nDM0MDAzMVFI1qtMzM1hqDy0LNEw\
cKlVme6liy1Vd34f1LtQDgDL3w6IVp8FEdGIEpCOdjDlrS1y+05zoLY=";

/// Changes name what they change by its name.
const BY_NAME: &str = "\
UEFDSwAAAAIAAAAInAh4nI3KUQqDMAyA4feeIu+Dkc5aG5Cxq6Q1mYKlUjPY8ecR9j9+/NZFoBQaVZFSSDliHrHIw3MOy6B+SEuUSyYN4vhja+\
vAMPNLvlyPXe6tv5/gp0hEGBDhhleutFo3M/lrdrr109wPejEokqIEeJwzMQAChcSCgmKGe4rsv3wkZWyUc955P3CPmMa8QvCmCVg6Oae0uCS1\
qJihQ4EpXrSA60ev3D6u708Nly+siCsBAOSmGCOkBHicMzQwMDMxUUjUq0zMzWFQ8ahO2cruPqVuj2ZqQ5eC5Kcniy8YQlQkQVR8V2mZ0/cr67\
3Wy8iLNW57dLXmpeYAAD4bGve4KXicrc7BDYMwDEbhO1P8K9BCW/XaA3NE1EmsWrZEDGJ8QF3BA7xPT1gJPSwjIbMQvCYHN4hpAamtpSLbgokd\
bnASAXuD0u7YaGlsitTOfK5JC3Vyibdw8R4uDuHiGCn+WL9vfP7yI/z1GS6+IsUDQ6flwvQBecKmYTFRpTp2LdLRhHrc+8Eu0Hd4nJvBOoN1wy\
zGyYsYv3FkZ+alWCk4cQEAUP8HBnf3JIScjvpq7yrpWdF8RrwtKp5lbHicm8E6gXXDBCYACmMCda8BeJwzMQAChaSc0lSGjzXPlwoKes0T/vvy\
i+re0Mr7fkZ8ALhBDMqiAnicMzQwMDMxUUjWq0zMzWGoPLQs0TBwqVWZ7qWLLVV3fh/Uu1AOAMvfDoinm+9sqEDbTtwukb+T3mPHQVezMg==";

const COMMIT: &str = "2360e18cb906f54b2be0c51bf3f76d97a2569957";

fn bytes(pack: &str) -> Vec<u8> {
    STANDARD.decode(pack).unwrap()
}

/// The pack with a check sum that fits.
fn summed(mut body: Vec<u8>) -> Vec<u8> {
    let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &body);
    body.extend_from_slice(sum.as_ref());
    body
}

/// The body of a pack, changed, with a check sum that fits again.
fn changed_body(pack: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = bytes(pack);
    body.truncate(body.len() - ID);
    change(&mut body);
    summed(body)
}

#[test]
fn objects_have_the_names_that_git_gives_them() {
    for pack in [BY_PLACE, BY_NAME] {
        let objects = unpack(&bytes(pack)).unwrap();
        assert_eq!(objects.len(), 8);
        let tree = Tree::read(COMMIT, &objects).unwrap();
        let paths: Vec<&str> = tree.below("").map(|(path, _)| path).collect();
        let expected = [
            "apps",
            "apps/a.yaml",
            "apps/b.yaml",
            "clusters",
            "clusters/blue",
            "clusters/blue/c.yaml",
        ];
        assert_eq!(paths, expected);
        let Some(Entry::File(text)) = tree.entry("clusters/blue/c.yaml") else { panic!() };
        let text = std::str::from_utf8(text).unwrap();
        assert_eq!(text.lines().nth(5), Some("kind: C"));
        assert_eq!(text.lines().count(), 9);
    }
}

#[test]
fn a_spoiled_pack_is_refused() {
    let whole = bytes(BY_PLACE);
    for at in 0..whole.len() {
        let mut spoiled = whole.clone();
        spoiled[at] ^= 1;
        assert!(unpack(&spoiled).is_err(), "byte {at} does not matter");
        assert!(unpack(&whole[..at]).is_err(), "the bytes from {at} on do not matter");
    }
    assert_eq!(unpack(&changed_body(BY_PLACE, |b| b[0] = b'B')), Err(PackError::Kind));
    assert_eq!(unpack(&changed_body(BY_PLACE, |b| b[7] = 4)), Err(PackError::Kind));
    // One object more than there are.
    assert_eq!(unpack(&changed_body(BY_PLACE, |b| b[11] = 9)), Err(PackError::Torn));
    let many = unpack(&changed_body(BY_PLACE, |b| b[8] = 1));
    assert_eq!(many, Err(PackError::TooLarge { what: "too many objects" }));
}

#[test]
fn sizes_are_limited_before_anything_is_unpacked() {
    // A file that claims to be 4 GiB.
    let claim =
        [b"PACK\0\0\0\x02\0\0\0\x01".as_slice(), &[0xbf, 0xff, 0xff, 0xff, 0x7f, 0x78, 0x9c]];
    let told = unpack(&summed(claim.concat()));
    assert_eq!(told, Err(PackError::TooLarge { what: "an object of it" }));
    // A change that claims to grow ten bytes to 64 MiB.
    let delta = |change: &[u8]| Delta { at: 0, base: Base::At(0), change: change.to_vec() };
    let mut left = LARGEST_TOTAL;
    let grown = changed(&delta(&[10, 0x80, 0x80, 0x80, 0x20]), &[0; 10], &mut left);
    assert_eq!(grown, Err(PackError::TooLarge { what: "an object of it" }));
    let mut left = 5;
    let grown = changed(&delta(&[10, 6, 0x90, 6]), &[0; 10], &mut left);
    assert_eq!(grown, Err(PackError::TooLarge { what: "all of its objects together" }));
}

#[test]
fn changes_take_pieces_of_what_they_change() {
    let apply = |change: &[u8]| {
        let delta = Delta { at: 7, base: Base::At(0), change: change.to_vec() };
        changed(&delta, b"0123456789", &mut LARGEST_TOTAL.clone())
    };
    let wrong = Err(PackError::Object { at: 7, why: "its change does not fit" });
    // Two bytes from place 3, then two new ones.
    assert_eq!(apply(&[10, 4, 0x91, 3, 2, 2, b'a', b'b']), Ok(b"34ab".to_vec()));
    assert_eq!(apply(&[10, 10, 0x90, 10]), Ok(b"0123456789".to_vec()));
    for bad in [
        &[9_u8, 2, 0x90, 2][..], // another size of what is changed
        &[10, 3, 0x90, 2],       // another size of the result
        &[10, 1, 0x90, 2],       // more than the result holds
        &[10, 4, 0x91, 8, 4],    // beyond the end
        &[10, 2, 0],             // the code that means nothing
        &[10, 2, 2, b'a'],       // torn
        &[10],
        &[],
    ] {
        assert_eq!(apply(bad), wrong, "{bad:?}");
    }
}

#[test]
fn a_change_of_something_that_is_not_there_is_refused() {
    // The object that the two changes go back to gets another name.
    let lost = changed_body(BY_NAME, |body| body[384] ^= 1);
    let why = "what it is a change of is not in the pack";
    assert_eq!(unpack(&lost), Err(PackError::Object { at: 382, why }));
}

proptest! {
    #[test]
    fn no_bytes_at_all_can_make_it_fall(body: Vec<u8>, at in 12_usize..516, byte: u8) {
        let _random = unpack(&summed(body.clone()));
        let _begun = unpack(&summed([b"PACK\0\0\0\x02\0\0\0\x02".to_vec(), body].concat()));
        let _spoiled = unpack(&changed_body(BY_PLACE, |body| body[at] = byte));
    }
}
