//! The flags of `castle lock`.

use clap::Args;

/// What to pin.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct LockArgs {
    /// The disk image of Talos, read from the image factory to its end (default: images and manifests)
    #[arg(long)]
    pub(crate) images: bool,
    /// The manifests of the releases that castle installs (default: images and manifests)
    #[arg(long)]
    pub(crate) manifests: bool,
    /// Change nothing: say whether the content is what castle.lock pins
    #[arg(long)]
    pub(crate) check: bool,
    /// Pin an older version than castle.lock does
    #[arg(long, conflicts_with = "check")]
    pub(crate) allow_downgrade: bool,
}

impl LockArgs {
    /// Whether the image is meant.
    pub(crate) fn wants_images(&self) -> bool {
        self.images || !self.manifests
    }

    /// Whether the manifests are meant.
    pub(crate) fn wants_manifests(&self) -> bool {
        self.manifests || !self.images
    }
}
