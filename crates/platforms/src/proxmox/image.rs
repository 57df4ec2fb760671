//! `platform/image`: the Talos image with the wanted extensions lies on the image storage, fetched once.
//!
//! The file is named by what is in it, so that all castles of a host share it. Nobody overwrites it; the last castle
//! that goes takes it along. What `castle.lock` pins is compared by Proxmox itself, when the file is fetched and when it
//! is found; what it does not pin is proven by the end of the download and by the file's length.

use std::sync::Arc;

use async_trait::async_trait;
use castle_artefact::factory::{image_file, image_key, image_url};
use castle_artefact::{Factory, Progress, Schematic};
use castle_engine::{Acted, Context, Key, Step};
use castle_model::lock::ImagePin;
use castle_model::{Change, Class, Failure, Observed, Spec, Verb};
use castle_proxmox::{Download, Upid};
use castle_wire::World;
use futures::future::{try_join, try_join3};

use super::census::{is_declared, neighbours};
use super::mark::castle_tag;
use super::wanted::Wanted;
use super::{Site, task};

/// How long the image is, as far as the factory told; given by `platform/image` to its own gate.
const LENGTH: Key<Option<u64>> = Key::new("platform/image-length");

/// What the journal keeps of an image whose content was compared.
const COMPARED: &str = "sha256";
/// What the journal keeps of an image's length.
const SIZE: &str = "size";

/// The image's schematic: the extensions of the castle file.
///
/// # Errors
/// If the name of an extension is not one.
pub fn schematic(extensions: &[String]) -> Result<Schematic, Failure> {
    Schematic::new(extensions.iter().cloned())
        .map_err(|error| error.failure("compute the schematic of the Talos image"))
}

/// The volume that VMs are made from.
///
/// # Errors
/// If the name of an extension is not one.
pub fn volume(spec: &Wanted) -> Result<String, Failure> {
    Ok(format!("{}:import/{}", spec.platform.image_storage, file(spec)?))
}

/// Under which name `castle.lock` keeps the image; none where the castle's machines are not made from one.
///
/// # Errors
/// If the name of an extension is not one.
pub fn key(spec: &Spec) -> Result<Option<String>, Failure> {
    let Some(platform) = spec.platform.proxmox() else { return Ok(None) };
    Ok(Some(image_key(&schematic(&platform.extensions)?, spec.talos)))
}

/// Reads the image from the factory to its end, and gives what `castle.lock` keeps of it: its name there and its content.
///
/// # Errors
/// If the castle's machines are not made by castle, or the factory does not give the image.
pub async fn pin(
    world: &World,
    spec: &Spec,
    progress: Progress<'_>,
) -> Result<(String, ImagePin), Failure> {
    let what = format!("read the image of Talos {} from the factory", spec.talos);
    let platform = spec.platform.proxmox().ok_or_else(|| {
        Failure::new(Class::Invalid, &what, "this castle's machines are not made from an image")
    })?;
    let schematic = schematic(&platform.extensions)?;
    let factory =
        Factory::new(world, spec.downloads.factory()).map_err(|error| error.failure(&what))?;
    factory.register(&schematic).await.map_err(|error| error.failure(&what))?;
    let pin = factory.digest(&schematic, spec.talos, progress).await;
    let pin = pin.map_err(|error| error.failure(&what))?;
    Ok((image_key(&schematic, spec.talos), pin))
}

/// What the step is called: an image that nothing pins is said to be unverified before anything is done.
pub(super) fn title(spec: &Wanted) -> String {
    let verified = matches!(pinned(spec), Ok(Some(_)));
    let doubt = if verified { "" } else { ", unverified" };
    format!("Talos {} on {}{doubt}", spec.talos, spec.platform.image_storage)
}

fn file(spec: &Wanted) -> Result<String, Failure> {
    Ok(image_file(&schematic(&spec.platform.extensions)?, spec.talos))
}

/// What `castle.lock` says of the image.
fn pinned(spec: &Wanted) -> Result<Option<&ImagePin>, Failure> {
    let key = image_key(&schematic(&spec.platform.extensions)?, spec.talos);
    Ok(spec.lock.images.get(&key))
}

/// The step.
pub(super) struct Image(pub(super) Arc<Site>);

impl Image {
    fn what(&self) -> String {
        let spec = &self.0.spec;
        format!("fetch the image of Talos {} to {}", spec.talos, spec.platform.image_storage)
    }

    /// The download of the image that is going on, whoever began it: the journal that knew of it may be lost.
    async fn download(&self, cx: &Context) -> Result<Option<Upid>, Failure> {
        let (spec, file) = (&self.0.spec, file(&self.0.spec)?);
        let running = self.0.client(cx)?.running_tasks(&spec.platform.node).await;
        let running = running
            .map_err(|error| error.failure(format!("list the tasks of {}", spec.platform.node)))?;
        Ok(running.into_iter().find(|task| task.kind() == "download" && task.object() == file))
    }

    /// Waits for the end of a download that is going on. How it ended does not matter: the storage is looked at next.
    async fn settle(&self, cx: &Context) -> Result<(), Failure> {
        let Some(task) = self.download(cx).await? else { return Ok(()) };
        match task::follow(cx, &self.0.client(cx)?, &task, "a download that was begun before").await
        {
            Err(failure) if failure.is_transient() => Err(failure),
            _ => Ok(()),
        }
    }

    /// The image's size in bytes, if it is there.
    async fn size(&self, cx: &Context) -> Result<Option<u64>, Failure> {
        let spec = &self.0.spec;
        let wanted = volume(spec)?;
        let platform = &spec.platform;
        let volumes = self
            .0
            .client(cx)?
            .content(&platform.node, &platform.image_storage, Some("import"))
            .await
            .map_err(|error| {
                error.failure(format!("list the images on {}", platform.image_storage))
            })?;
        Ok(volumes.iter().find(|found| found.volid == wanted).map(|found| found.size))
    }

    /// A file that is there and is not the image. It may be somebody's, so it is never overwritten or removed.
    fn other(&self, why: impl Into<String>) -> Result<Failure, Failure> {
        let volume = volume(&self.0.spec)?;
        let what = format!("use the image {volume}");
        Ok(Failure::new(Class::Conflict, what, why).hint(format!(
            "castle never overwrites it: if nobody needs it, remove it on the host (pvesm free {volume}), then run the same command again; \
             if castle.lock is wrong, remove its entry there, and `castle lock` pins it anew"
        )))
    }

    /// Compares the length of the file with what is known of it.
    fn judge_size(&self, size: u64, known: Option<u64>, by: &str) -> Result<(), Failure> {
        match known {
            Some(known) if known != size => {
                Err(self.other(format!("the file has {size} bytes, {by} {known}"))?)
            }
            _ => Ok(()),
        }
    }

    fn evidence(&self, size: u64) -> Result<String, Failure> {
        let how = match pinned(&self.0.spec)? {
            Some(_) => "as castle.lock pins it",
            None => "unverified: castle.lock does not pin it",
        };
        Ok(format!("{} ({} MiB, {how})", volume(&self.0.spec)?, size >> 20))
    }

    /// Whether machines that are made from it are there, and the names of other castles with guests on this cluster: they
    /// may want the image, too. A copy of a machine of ours, at another number, is not ours.
    async fn neighbours(&self, cx: &Context) -> Result<(bool, Vec<String>), Failure> {
        let spec = &self.0.spec;
        let own = castle_tag(&spec.name);
        let guests = self.0.client(cx)?.guests().await;
        let guests = guests.map_err(|error| error.failure("look who else uses the image"))?;
        let mut ours = guests.iter().filter(|guest| guest.tags.contains(&own));
        let standing = ours.any(|guest| is_declared(spec, guest.vmid));
        Ok((standing, neighbours(spec, &guests)))
    }

    fn shared(volume: &str, names: &[String]) -> String {
        format!("image {volume} stays: it is shared with other castles ({})", names.join(", "))
    }
}

/// What the factory gave is not what is pinned. Proxmox kept nothing of it.
fn refused(what: &str, why: String) -> Failure {
    Failure::new(Class::Conflict, what, why).hint(
        "the factory gave other content than castle.lock pins, and nothing of it was kept: find out why (`castle lock --images \
         --check` shows both); only if castle.lock is wrong, remove its entry there, and `castle lock` pins it anew",
    )
}

/// What its gate proves.
pub(super) const PROVES: &str =
    "the Talos image is on the image storage, as long as the factory says";

#[async_trait]
impl Step for Image {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let Some(size) = self.size(cx).await? else { return Ok(Observed::Absent) };
        let before = cx.state().outputs();
        let Some(pin) = pinned(&self.0.spec)? else {
            let known = before.get(SIZE).and_then(|text| text.parse().ok());
            self.judge_size(size, known, "it had")?;
            cx.learn(SIZE, size.to_string());
            return Ok(Observed::right(self.evidence(size)?));
        };
        self.judge_size(size, Some(pin.size), "castle.lock says")?;
        if before.get(COMPARED) == Some(&pin.sha256) {
            return Ok(Observed::right(self.evidence(size)?));
        }
        Ok(Observed::wrong("its content is not compared with castle.lock yet"))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let client = self.0.client(cx)?;
        self.settle(cx).await?;
        let spec = &self.0.spec;
        let (platform, what) = (&spec.platform, self.what());
        let (schematic, pin) = (schematic(&platform.extensions)?, pinned(spec)?);
        let there = self.size(cx).await?;
        let mut length = pin.map(|pin| pin.size);
        if there.is_none() || pin.is_none() {
            let factory = Factory::new(&self.0.world, &spec.factory);
            let factory = factory.map_err(|error| error.failure(&what))?;
            factory.register(&schematic).await.map_err(|error| error.failure(&what))?;
            if length.is_none() {
                let said = factory.size(&schematic, spec.talos).await;
                length = said.map_err(|error| error.failure(&what))?;
            }
        }
        cx.outputs().put(&LENGTH, length);
        if let (Some(size), None) = (there, pin) {
            // A download that was begun before has brought it; the gate compares its length.
            return Ok(Acted::of(Change::Created).with(SIZE, size.to_string()));
        }
        let (url, filename) = (image_url(&spec.factory, &schematic, spec.talos), file(spec)?);
        let sha256 = pin.map(|pin| pin.sha256.as_str());
        let wanted = Download { url: &url, filename: &filename, sha256 };
        let download = client
            .download(&platform.node, &platform.image_storage, &wanted)
            .await
            .map_err(|error| error.failure(&what))?;
        let mut acted = Acted::of(Change::Created);
        match task::follow(cx, &client, &download, &what).await {
            // Another download of the same file was faster; the gate looks whether it is there.
            Err(failure) if failure.class == Class::Conflict => acted.change = Change::Unchanged,
            Err(failure) if failure.why.contains("checksum mismatch") => {
                let told = if there.is_some() {
                    self.other(failure.why)?
                } else {
                    refused(&what, failure.why)
                };
                return Err(told.evidence(failure.evidence.unwrap_or_default()));
            }
            Err(failure) => return Err(failure),
            Ok(()) => {}
        }
        if let Some(length) = length {
            acted = acted.with(SIZE, length.to_string());
        }
        if let Some(pin) = pin {
            acted = acted.with(COMPARED, pin.sha256.clone());
        }
        Ok(acted)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let Some(size) = self.size(cx).await? else {
            let why = "the task ended well, and the file is not on the storage";
            return Err(Failure::new(Class::Gone, self.what(), why).hint(
                "look at the log of the download task in Proxmox; then run the same command again",
            ));
        };
        self.judge_size(size, *cx.outputs().get(&LENGTH)?, "the factory says")?;
        self.evidence(size)
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        let volume = volume(&self.0.spec)?;
        // Side by side: at the end of a way down everybody waits for this look.
        let (size, (ours, neighbours)) = try_join(self.size(cx), self.neighbours(cx)).await?;
        let found = match size {
            Some(_) => format!("image {volume}"),
            None if self.download(cx).await?.is_some() => {
                format!("image {volume}, still being fetched")
            }
            None => return Ok(None),
        };
        if neighbours.is_empty() {
            return Ok(Some(found));
        }
        // While machines of ours stand this is asked for the plan; who else is there then is decided when it comes to it.
        if ours {
            let names = neighbours.join(", ");
            return Ok(Some(format!("{found}, unless it is still shared with {names}")));
        }
        cx.notice(Self::shared(&volume, &neighbours));
        Ok(None)
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let client = self.0.client(cx)?;
        let platform = &self.0.spec.platform;
        let volume = volume(&self.0.spec)?;
        let what = format!("remove the image {volume}");
        let look = || try_join3(self.download(cx), self.size(cx), self.neighbours(cx));
        let mut seen = look().await?;
        if seen.0.is_some() {
            self.settle(cx).await?;
            seen = look().await?;
        }
        let (_, size, (_, neighbours)) = seen;
        if size.is_none() {
            return Ok(());
        }
        if !neighbours.is_empty() {
            cx.notice(Self::shared(&volume, &neighbours));
            return Ok(());
        }
        let removal = client
            .delete_volume(&platform.node, &platform.image_storage, &volume)
            .await
            .map_err(|error| error.failure(&what))?;
        task::follow(cx, &client, &removal, &what).await
    }
}
