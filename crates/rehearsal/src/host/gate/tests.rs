//! Heads in pieces and heads of any bytes: what comes of them never depends on how they were cut.

use castle_model::time::Moment;
use http::{HeaderName, HeaderValue, Method, Uri};
use proptest::prelude::*;

use super::body::{Body, Fed};
use super::head::{Head, Kind, Verdict};

const KINDS: [Kind; 3] = [Kind::Go, Kind::Proxmox, Kind::Node];

/// What a server makes of bytes that come in pieces of a size, and of how many of them.
fn verdict(kind: Kind, bytes: &[u8], piece: usize) -> (String, usize) {
    let mut head = Head::new(kind, Moment(1_800_000_000_000), false);
    let (mut came, mut taken) = (Vec::new(), 0);
    for piece in bytes.chunks(piece) {
        came.extend_from_slice(piece);
        loop {
            let end = came.iter().position(|byte| *byte == b'\n');
            let line: Vec<u8> = came.drain(..end.map_or(0, |end| end + 1)).collect();
            taken += line.len();
            let verdict = if end.is_some() { head.line(&line) } else { head.part(&came) };
            match verdict {
                Some(Verdict::Sound(sound)) => {
                    let plain = String::from_utf8_lossy(&sound.head).into_owned();
                    return (format!("{plain}{:?}", sound.body), taken);
                }
                Some(Verdict::Refused(answer)) => {
                    return (String::from_utf8_lossy(&answer).into_owned(), 0);
                }
                Some(Verdict::Deaf) => return ("deaf".to_owned(), 0),
                None if end.is_none() => break,
                None => {}
            }
        }
    }
    (format!("{:?}", head.end(&came)), 0)
}

/// Bytes that are a request, nearly.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("GET"),
        Just("POST"),
        Just("PRI"),
        Just("CONNECT"),
        Just("get"),
        Just(" "),
        Just("  "),
        Just("/"),
        Just("/a?b"),
        Just("*"),
        Just("http://a:1/"),
        Just("%zz"),
        Just("HTTP/1.1"),
        Just("HTTP/1.0"),
        Just("HTTP/2.0"),
        Just("HTTP/9.9"),
        Just("\r\n"),
        Just("\n"),
        Just("\r"),
        Just("\r\n\r\n"),
        Just("Host: a"),
        Just("Content-Length: 2"),
        Just("Content-Length: 99999999999999999999"),
        Just("Transfer-Encoding: chunked"),
        Just("Expect: x"),
        Just("A : b"),
        Just(": b"),
        Just("A"),
        Just("\t"),
        Just("\0"),
        Just("\u{e4}"),
        Just("GET / HTTP/1.1\r\nHost: a\r\n"),
    ];
    let bytes = prop_oneof![
        8 => word.prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(bytes, 0..20).prop_map(|words| words.concat())
}

/// Whether our library can read a head: it has its own ideas of methods, targets and fields.
fn is_plain(head: &str) -> bool {
    let Some((head, _)) = head.split_once("\r\n\r\n") else { return false };
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return false };
    let fields = lines.all(|line| {
        line.split_once(": ").is_some_and(|(name, value)| {
            HeaderName::from_bytes(name.as_bytes()).is_ok()
                && HeaderValue::from_bytes(value.as_bytes()).is_ok()
        })
    });
    fields
        && Method::from_bytes(method.as_bytes()).is_ok()
        && target.parse::<Uri>().is_ok()
        && matches!(version, "HTTP/1.0" | "HTTP/1.1")
}

proptest! {
    #[test]
    fn what_is_made_of_bytes_does_not_depend_on_their_pieces(bytes in nearly(), piece in 1_usize..40) {
        for kind in KINDS {
            prop_assert_eq!(verdict(kind, &bytes, piece), verdict(kind, &bytes, usize::MAX));
        }
    }

    #[test]
    fn what_goes_on_can_be_read_by_our_library(bytes in nearly()) {
        for kind in KINDS {
            let (plain, taken) = verdict(kind, &bytes, usize::MAX);
            if taken > 0 {
                prop_assert!(is_plain(&plain), "{kind:?} {plain:?}");
            }
        }
    }

    #[test]
    fn chunks_end_where_they_end_in_any_pieces(
        sizes in proptest::collection::vec(1_usize..50, 0..5),
        piece in 1_usize..20,
        rest in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let chunks = sizes.iter().map(|size| format!("{size:x};x=y\r\n{}\r\n", "z".repeat(*size)));
        let body = chunks.collect::<String>() + "0\r\nTrailer: x\r\n\r\n";
        let all = [body.as_bytes(), &rest].concat();
        let mut reader = Body::announced(true, 0).unwrap();
        let (mut taken, mut over) = (0, false);
        while !over {
            let end = (taken + piece).min(all.len());
            let fed = reader.feed(&all[taken..end]);
            prop_assert_eq!(fed.broken, None);
            taken += fed.taken;
            over = fed.over;
        }
        prop_assert_eq!(taken, body.len());
    }

    #[test]
    fn no_bytes_are_too_much_for_a_reader_of_chunks(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let Fed { taken, .. } = Body::announced(true, 0).unwrap().feed(&bytes);
        prop_assert!(taken <= bytes.len());
    }
}

#[test]
fn chunks_of_no_size_are_none() {
    for broken in ["zz\r\n", "\r\n", "2\n{}", "2\r\n{}x", "11111111111111111\r\n", "0\r\na\n"] {
        let fed = Body::announced(true, 0).unwrap().feed(broken.as_bytes());
        assert!(fed.broken.is_some(), "{broken:?}");
    }
}
