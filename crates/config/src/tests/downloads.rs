//! Where manifests come from: mirrors that are taken as they stand, and those that are refused.

use super::{Sources, changed, codes, example, read, shown};

/// The example with this mirror.
fn with(mirror: &str) -> Sources {
    let block = format!("downloads {{\n    mirror = \"{mirror}\"\n  }}\n  deadlines {{");
    changed(&[("deadlines {", &block)])
}

#[test]
fn a_mirror_is_a_folder_at_https_or_on_the_disk() {
    for (written, meant) in [
        ("https://mirror.lan/castle/", "https://mirror.lan/castle"),
        ("https://mirror.lan:8443", "https://mirror.lan:8443"),
        ("file:///srv/castle/", "file:///srv/castle"),
    ] {
        let spec = read(&with(written)).spec.unwrap();
        assert_eq!(spec.downloads.mirror.as_deref(), Some(meant));
    }
    assert_eq!(example().downloads.mirror, None);
    for wrong in [
        "http://mirror.lan",
        "file:castle",
        "file://srv",
        "file:///",
        "file:///a/../b",
        "file:///a%20b",
        "/srv",
    ] {
        let sources = with(wrong);
        assert_eq!(codes(&sources).len(), 1, "{wrong}\n{}", shown(&sources));
    }
}
