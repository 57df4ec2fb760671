//! Downloads from the datacenter's release pages, through the client that castle uses: what breaks, lies or changed.

use castle_artefact::{ArtefactError, Manifest, component, fetch, read};
use castle_model::Class;
use castle_model::lock::ManifestPin;
use castle_model::spec::DownloadsSpec;

use super::*;
use crate::trouble::{Download, SourcesTrouble};

async fn metallb(host: &Host) -> Result<Manifest, ArtefactError> {
    let source = component("metallb").unwrap().offered(&spec(3, 2));
    fetch(&host.world(), &DownloadsSpec::default(), &source.url, &mut |_, _| {}).await
}

fn trouble(how: Download) -> SourcesTrouble {
    SourcesTrouble { address: "githubusercontent.com/metallb/".to_owned(), how }
}

/// The statuses of all that was asked of the release pages.
fn statuses(host: &Host) -> Vec<u16> {
    host.requests().iter().filter(|r| r.server == "sources").map(|r| r.status).collect()
}

#[tokio::test(start_paused = true)]
async fn a_download_that_breaks_off_goes_on_where_it_was() {
    let host = memory(1);
    let whole = metallb(&host).await.unwrap();
    for after in [3_000, 1_000, 1] {
        host.cause(trouble(Download::BreaksOff(after)));
    }
    let mut told = Vec::new();
    let source = component("metallb").unwrap().offered(&spec(3, 2));
    let mut progress = |done, total| told.push((done, total));
    let downloads = DownloadsSpec::default();
    let again = fetch(&host.world(), &downloads, &source.url, &mut progress).await.unwrap();
    assert_eq!(again, whole);
    assert_eq!(statuses(&host), [200, 200, 206, 206, 206]);
    let length = whole.bytes.len() as u64;
    assert_eq!(told.last(), Some(&(length, Some(length))));
    assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "never anew: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_download_that_brings_nothing_more_is_given_up() {
    let host = memory(1);
    host.cause(trouble(Download::BreaksOff(0)));
    assert_eq!(metallb(&host).await.unwrap_err().class(), Class::Transient);
    for _ in 0..20 {
        host.cause(trouble(Download::BreaksOff(10)));
    }
    let error = metallb(&host).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient, "{error}");
    assert_eq!(statuses(&host).len(), 10, "one, and one with eight more");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_does_wrong_is_told() {
    let cases = [
        (Download::Missing, Class::Gone),
        (Download::Packed, Class::Invalid),
        (Download::Swollen(9 << 20), Class::Invalid),
        (Download::PromisesMore(100), Class::Transient),
        (Download::Elsewhere("http://raw.githubusercontent.com/x".to_owned()), Class::Invalid),
        (Download::Elsewhere("file:///etc/passwd".to_owned()), Class::Invalid),
    ];
    let mut said = Vec::new();
    let whole = metallb(&memory(1)).await.unwrap().bytes.len();
    for (how, class) in cases {
        let host = memory(1);
        host.cause(trouble(how));
        let failure = metallb(&host).await.unwrap_err().failure("fetch metallb");
        assert_eq!(failure.class, class, "{failure}");
        said.push(failure.why);
    }
    let said =
        said.join("\n").replace(&component("metallb").unwrap().offered(&spec(3, 2)).url, "URL");
    let said = said.replace(&format!("{whole} bytes of {}", whole + 100), "ALL bytes of MORE");
    insta::assert_snapshot!(said, @r"
    URL answers 404: Not Found
    URL is sent in the encoding `gzip`, which was not asked for
    URL is larger than 8388608 bytes
    URL broke off after ALL bytes of MORE
    URL redirects to `http://raw.githubusercontent.com/x`, which is not an https address
    URL redirects to `file:///etc/passwd`, which is not an https address
    ");
}

#[tokio::test(start_paused = true)]
async fn a_tampered_byte_is_refused_and_named() {
    let host = memory(1);
    let mut spec = spec(3, 2);
    let source = component("metallb").unwrap().offered(&spec);
    let pin: ManifestPin = metallb(&host).await.unwrap().pin(&source);
    spec.lock.manifests.insert("metallb".to_owned(), pin);
    assert!(read(&host.world(), &spec, &source).await.is_ok());
    host.cause(trouble(Download::Tampered));
    let error = read(&host.world(), &spec, &source).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict, "{error}");
    let ArtefactError::OtherContent { pinned, found, .. } = error else { panic!("{error}") };
    assert_ne!(pinned, found);
}

#[tokio::test(start_paused = true)]
async fn what_is_pinned_is_fetched_once_and_a_damaged_copy_anew() {
    let host = memory(1);
    let home = tempfile::tempdir().unwrap();
    let world = castle_wire::World { cache: Some(home.path().to_owned()), ..host.world() };
    let mut spec = spec(3, 2);
    let source = component("metallb").unwrap().offered(&spec);
    let downloads = DownloadsSpec::default();
    let manifest = fetch(&world, &downloads, &source.url, &mut |_, _| {}).await.unwrap();
    spec.lock.manifests.insert("metallb".to_owned(), manifest.pin(&source));
    // Whatever the server has by now: the pinned content is at hand.
    host.cause(trouble(Download::Tampered));
    assert_eq!(read(&world, &spec, &source).await.unwrap(), manifest);
    assert_eq!(statuses(&host), [200]);
    std::fs::write(home.path().join(&manifest.sha256), "damaged").unwrap();
    let error = read(&world, &spec, &source).await.unwrap_err();
    assert!(matches!(error, ArtefactError::OtherContent { .. }), "{error}");
    assert_eq!(statuses(&host), [200, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_mirror_of_files_gives_what_upstream_gave() {
    let host = memory(1);
    let home = tempfile::tempdir().unwrap();
    let manifest = metallb(&host).await.unwrap();
    let mut spec = spec(3, 2);
    let source = component("metallb").unwrap().offered(&spec);
    let path = home.path().join(source.url.trim_start_matches("https://"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, &manifest.bytes).unwrap();
    spec.downloads.mirror = Some(format!("file://{}", home.path().display()));
    spec.lock.manifests.insert("metallb".to_owned(), manifest.pin(&source));
    assert_eq!(read(&host.world(), &spec, &source).await.unwrap(), manifest);
    assert_eq!(statuses(&host), [200], "the server is not asked");
    std::fs::write(&path, "kind: Other").unwrap();
    let error = read(&host.world(), &spec, &source).await.unwrap_err();
    assert!(matches!(error, ArtefactError::OtherContent { .. }), "{error}");
}
