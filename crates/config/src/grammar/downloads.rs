//! The part of the grammar about where what castle installs is fetched from.

use super::table::optional;
use super::{Block, Kind, Label, Presence, Times};

pub(super) const DOWNLOADS: Block = Block {
    keyword: "downloads",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "Where manifests are fetched from. A rehearsal has releases of its own and asks no mirror. See `lock.md`.",
    attributes: &[optional(
        "mirror",
        Kind::MirrorUrl,
        Presence::Optional,
        "\"https://mirror.lan/castle\"",
        "A folder that has every manifest as `<host>/<path>` of its own address: `https://…`, or `file:///…` for one on \
         the disk. `castle.lock` keeps the address upstream, and the digest decides in either case.",
    )],
    open: None,
    blocks: &[],
};
