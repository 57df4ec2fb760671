//! `platform/image`: the Talos image with the wanted extensions lies on the image storage, fetched once.
//!
//! The file carries the castle's name, so that each castle owns its own and can remove it without asking others.

use std::sync::Arc;

use async_trait::async_trait;
use castle_artefact::factory::{image_file, image_url};
use castle_artefact::{Factory, Schematic};
use castle_engine::{Acted, Context, Step};
use castle_model::{Change, Class, Failure, Observed, Verb};
use castle_proxmox::Upid;

use super::wanted::Wanted;
use super::{Site, task};

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

fn file(spec: &Wanted) -> Result<String, Failure> {
    Ok(format!(
        "castle-{}-{}",
        spec.name,
        image_file(&schematic(&spec.platform.extensions)?, spec.talos)
    ))
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
}

#[async_trait]
impl Step for Image {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        Ok(match self.size(cx).await? {
            Some(size) => {
                Observed::right(format!("{} ({} MiB)", volume(&self.0.spec)?, size >> 20))
            }
            None => Observed::Absent,
        })
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let client = self.0.client(cx)?;
        self.settle(cx).await?;
        if self.size(cx).await?.is_some() {
            return Ok(Acted::of(Change::Created));
        }
        let spec = &self.0.spec;
        let (platform, what) = (&spec.platform, self.what());
        let schematic = schematic(&spec.platform.extensions)?;
        let factory = Factory::new(&self.0.world).map_err(|error| error.failure(&what))?;
        factory.register(&schematic).await.map_err(|error| error.failure(&what))?;
        let download = client
            .download(
                &platform.node,
                &platform.image_storage,
                &image_url(&schematic, spec.talos),
                &file(spec)?,
            )
            .await
            .map_err(|error| error.failure(&what))?;
        match task::follow(cx, &client, &download, &what).await {
            // Another download of the same file was faster; the gate looks whether it is there.
            Err(failure) if failure.class == Class::Conflict => Ok(Acted::of(Change::Unchanged)),
            Err(failure) => Err(failure),
            Ok(()) => Ok(Acted::of(Change::Created)),
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        match self.size(cx).await? {
            Some(size) => Ok(format!("{} ({} MiB)", volume(&self.0.spec)?, size >> 20)),
            None => Err(Failure::new(Class::Gone, self.what(), "the file is not on the storage")
                .hint("look at the log of the download task in Proxmox")),
        }
    }

    async fn leftover(&self, cx: &Context) -> Result<Option<String>, Failure> {
        match self.size(cx).await? {
            Some(_) => Ok(Some(format!("image {}", volume(&self.0.spec)?))),
            None if self.download(cx).await?.is_some() => {
                Ok(Some(format!("image {}, still being fetched", volume(&self.0.spec)?)))
            }
            None => Ok(None),
        }
    }

    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        let client = self.0.client(cx)?;
        let platform = &self.0.spec.platform;
        let volume = volume(&self.0.spec)?;
        let what = format!("remove the image {volume}");
        self.settle(cx).await?;
        if self.size(cx).await?.is_none() {
            return Ok(());
        }
        let removal = client
            .delete_volume(&platform.node, &platform.image_storage, &volume)
            .await
            .map_err(|error| error.failure(&what))?;
        task::follow(cx, &client, &removal, &what).await
    }
}
