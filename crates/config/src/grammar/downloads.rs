//! The part of the grammar about where what castle installs is fetched from.

use super::table::optional;
use super::{Block, Kind, Label, Presence, Times};

pub(super) const DOWNLOADS: Block = Block {
    keyword: "downloads",
    label: Label::None,
    times: Times::AtMostOnce,
    doc: "Where manifests and images are fetched from. A rehearsal has releases and a factory of its own and asks neither. \
          See `lock.md`.",
    attributes: &[
        optional(
            "mirror",
            Kind::MirrorUrl,
            Presence::Optional,
            "\"https://mirror.lan/castle\"",
            "A folder that has every manifest as `<host>/<path>` of its own address: `https://…`, or `file:///…` for one \
             on the disk. `castle.lock` keeps the address upstream, and the digest decides in either case.",
        ),
        optional(
            "factory",
            Kind::Server,
            Presence::Derived("the public one, `https://factory.talos.dev`"),
            "\"https://factory.lan\"",
            "The image factory of Talos: castle registers its schematic there, Proxmox fetches the disk image from it, and \
             the machines pull their installer from it, as from a registry. On a living castle another one changes the \
             machines' configs.",
        ),
    ],
    open: None,
    blocks: &[],
};
