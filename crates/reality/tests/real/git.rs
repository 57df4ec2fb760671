//! The git program: it clones what the rehearsed Git host holds, and what it serves is read by our client.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use castle_git::{Entry, GitError};
use castle_reality::asked::Asked;
use castle_reality::asked::git::ASKED;
use castle_reality::cluster::Authority;
use castle_reality::web::{Web, answer_by_git, certificate};
use castle_reality::{Real, outside, run};
use castle_wire::World;
use http::Request;
use tempfile::TempDir;

use crate::datacenter::{Datacenter, proxmox};
use crate::setting::{SOON, ask_all, folder, pem, with, write};

/// The program, without anybody's settings.
pub(crate) fn git(place: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("HOME", place)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0");
    let who = [("AUTHOR", "nobody"), ("COMMITTER", "nobody")];
    for (role, name) in who {
        command.env(format!("GIT_{role}_NAME"), name);
        command.env(format!("GIT_{role}_EMAIL"), "nobody@castle.invalid");
        command.env(format!("GIT_{role}_DATE"), "1769990400 +0000");
    }
    command
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_rehearsed_repository_is_cloned() {
    if Real::find("git").is_none() {
        return;
    }
    let mut spec = proxmox(83);
    spec.gitops.url = "https://127.0.83.3:8443/example/blue".to_owned();
    let datacenter = Datacenter::open(spec).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let trust = format!("http.sslCAInfo={}", write(place.path(), "ca.pem", &roots).display());
    let token = datacenter.host.read(|world| world.birth.sources.token.clone().unwrap());
    let url = |who: &str, name: &str| format!("https://{who}127.0.83.3:8443/example/{name}");
    let here = place.path().display().to_string();
    let url = (
        url(&format!("git:{token}@"), "blue"),
        url("git:guess@", "blue"),
        url("", "blue"),
        url("git:guess@", "green"),
    );
    let names = [
        ("here", here.as_str()),
        ("url", &url.0),
        ("wrong", &url.1),
        ("anonymous", &url.2),
        ("nobody", &url.3),
    ];
    let command = |asked: &Asked, words: &[&str]| {
        let mut command = git(place.path());
        if asked.who != "trusting nobody" {
            command.args(["-c", &trust]);
        }
        if let Some(version) = asked.who.strip_prefix("version ") {
            command.args(["-c", &format!("protocol.version={version}")]);
        }
        with(command, words)
    };
    ask_all(ASKED, &names, command).await;
    let text = |clone: &str| std::fs::read(place.path().join(clone).join("apps/static/blog.yaml"));
    assert_eq!(text("two").unwrap(), text("zero-shallow").unwrap());
}

/// A repository of real git.
async fn repository() -> TempDir {
    let place = folder();
    let inner = place.path().join("x");
    fill(&inner);
    let words: [&[&str]; 4] = [
        &["init", "--quiet", "--initial-branch=main", "."],
        &["config", "uploadpack.allowFilter", "true"],
        &["add", "."],
        &["commit", "--quiet", "-m", "first"],
    ];
    for words in words {
        drop(run(with(within(&inner), words), SOON).await.expect_success());
    }
    place
}

/// The program in a repository.
fn within(place: &Path) -> Command {
    let mut command = git(place);
    command.current_dir(place);
    command
}

/// Files that Git tells as changes of each other, one that is large, a link, and folders that sort by their slash.
fn fill(place: &Path) {
    let text = |n: usize| {
        let line =
            |i: usize| format!("line {i} of a file that is long enough to be told as a change\n");
        (0..200).map(line).collect::<String>() + &format!("number: {n}\n")
    };
    for n in 0..20 {
        let folder = place.join(format!("apps/part-{}", n % 3));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{n}.yaml")), text(n)).unwrap();
    }
    std::fs::write(place.join("apps.txt"), "beside\n").unwrap();
    std::fs::write(place.join("large.bin"), vec![7; 3 << 20]).unwrap();
    std::os::unix::fs::symlink("apps", place.join("link")).unwrap();
}

/// Reads a repository that git's own server gives, in the version of the protocol that is asked for or in the first one.
async fn read(place: &Path, two: bool) {
    let authority = Authority::new();
    let web = Web::listen(&authority, &[], Ipv4Addr::new(127, 0, 84, 2), 8443).await;
    let answer = async |mut request: Request<Bytes>| {
        if !two {
            request.headers_mut().remove("git-protocol");
        }
        answer_by_git(place, request).await
    };
    let roots = Arc::new(vec![certificate(&authority.certificate)]);
    let world = World { roots, ..outside() };
    let url = "https://127.0.84.2:8443/x";
    let reading = async {
        let read = castle_git::tree(&world, url, "main", None).await;
        let tree = read.unwrap_or_else(|e| panic!("{two}: {}", e.failure("read")));
        let inner = place.join("x");
        let at = run(with(within(&inner), &["rev-parse", "HEAD"]), SOON).await.expect_success();
        assert_eq!(tree.commit(), at.trim());
        assert_eq!(tree.below("apps").count(), 23, "20 files in 3 folders");
        let Some(Entry::File(text)) = tree.entry("apps/part-1/7.yaml") else { panic!("{two}") };
        assert_eq!(text.as_ref(), std::fs::read(inner.join("apps/part-1/7.yaml")).unwrap());
        assert_eq!(tree.entry("large.bin"), Some(&Entry::Left), "larger than we ask for");
        assert_eq!(tree.entry("link"), Some(&Entry::Link("apps".into())));
        let lost = castle_git::head(&world, url, "mian", None).await;
        assert!(matches!(lost, Err(GitError::NoBranch { .. })), "{lost:?}");
        let nobody = castle_git::head(&world, "https://127.0.84.2:8443/y", "main", None).await;
        assert!(matches!(nobody, Err(GitError::NotFound { .. })), "{nobody:?}");
    };
    tokio::select! {
        biased;
        () = reading => {}
        _ = web.serve(answer) => {}
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn what_git_serves_is_read_in_both_versions_of_its_protocol() {
    let place = repository().await;
    for two in [true, false] {
        read(place.path(), two).await;
    }
}
