//! `platform/image`: the image factory knows the extensions that the machines' installer is to have.

use async_trait::async_trait;
use castle_artefact::Factory;
use castle_engine::{Acted, Context, Step};
use castle_model::{Change, Failure, Observed, Verb};

use crate::proxmox::image::schematic;
use crate::talos::Realm;

/// The journaled output that says which schematic was registered.
const SCHEMATIC: &str = "schematic";

/// The step.
pub(super) struct Installer(pub(super) Realm);

impl Installer {
    fn wanted(&self) -> Result<String, Failure> {
        Ok(schematic(self.0.spec().platform.extensions())?.id())
    }

    fn words(id: &str) -> String {
        format!("the factory knows the schematic {}", &id[..16])
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the image factory knows the installer with its extensions";

#[async_trait]
impl Step for Installer {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let wanted = self.wanted()?;
        Ok(if cx.state().outputs().get(SCHEMATIC) == Some(&wanted) {
            Observed::right(Self::words(&wanted))
        } else {
            Observed::Absent
        })
    }

    async fn act(&self, _cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let what = "register the extensions with the image factory";
        let place = self.0.spec().downloads.factory();
        let factory = Factory::new(&self.0.world, place).map_err(|error| error.failure(what))?;
        let wanted = schematic(self.0.spec().platform.extensions())?;
        let id = factory.register(&wanted).await.map_err(|error| error.failure(what))?;
        Ok(Acted::of(Change::Unchanged).with(SCHEMATIC, id))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok(Self::words(&self.wanted()?))
    }
}
