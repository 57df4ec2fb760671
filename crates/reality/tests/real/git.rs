//! The git program: it clones what the rehearsed Git host holds, and what it serves is read by our client.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use castle_git::{Entry, GitError};
use castle_model::Secret;
use castle_reality::{outside, run};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::datacenter::{Datacenter, LIMIT, proxmox};
use crate::setting::{SOON, folder, pem, with, write};

/// The program, without anybody's settings.
fn git(place: &Path) -> Command {
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
    let mut spec = proxmox(83);
    spec.gitops.url = "https://127.0.83.3:8443/example/blue".to_owned();
    let datacenter = Datacenter::open(spec).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let trust = format!("http.sslCAInfo={}", write(place.path(), "ca.pem", &roots).display());
    let token = datacenter.host.read(|world| world.birth.sources.token.clone().unwrap());
    let url = |token: &str| format!("https://git:{token}@127.0.83.3:8443/example/blue");
    let said = with(git(place.path()), &["-c", &trust, "ls-remote", &url(&token)]);
    let said = run(said, LIMIT).await.expect_success();
    let head = said.split_whitespace().next().unwrap().to_owned();
    assert!(said.contains("refs/heads/main"), "{said}");
    for (version, depth) in
        [("2", "--depth=1"), ("2", "--no-tags"), ("0", "--depth=1"), ("0", "--no-tags")]
    {
        let protocol = format!("protocol.version={version}");
        let to = place.path().join(format!("clone-{version}{depth}")).display().to_string();
        let words = ["-c", &trust, "-c", &protocol, "clone", depth, &url(&token), &to];
        run(with(git(place.path()), &words), LIMIT).await.expect_success();
        let checked = run(with(git(place.path()), &["-C", &to, "fsck", "--strict"]), SOON).await;
        checked.expect_success();
        let at = run(with(git(place.path()), &["-C", &to, "rev-parse", "HEAD"]), SOON).await;
        assert_eq!(at.expect_success().trim(), head);
        assert!(Path::new(&to).join("apps/static/blog.yaml").is_file());
    }
    let refused =
        run(with(git(place.path()), &["-c", &trust, "ls-remote", &url("guess")]), LIMIT).await;
    assert_ne!(refused.code, Some(0), "a wrong token opens it");
}

/// A repository of real git behind HTTPS, with every answer made by `git upload-pack`.
struct Served {
    place: TempDir,
    url: String,
    root: CertificateDer<'static>,
}

impl Served {
    /// Serves a repository; whether it speaks the second version of the protocol is up to it.
    async fn open(two: bool) -> Self {
        let place = folder();
        let words: [&[&str]; 4] = [
            &["init", "--quiet", "--initial-branch=main", "."],
            &["config", "uploadpack.allowFilter", "true"],
            &["add", "."],
            &["commit", "--quiet", "-m", "first"],
        ];
        for (index, words) in words.iter().enumerate() {
            if index == 2 {
                fill(place.path());
            }
            let mut command = with(git(place.path()), words);
            command.current_dir(place.path());
            run(command, SOON).await.expect_success();
        }
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let root: CertificateDer<'static> = key.cert.der().clone();
        let private = PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![root.clone()], private)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://127.0.0.1:{}/x", listener.local_addr().unwrap().port());
        let (tls, path) = (TlsAcceptor::from(Arc::new(config)), place.path().to_owned());
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, path) = (tls.clone(), path.clone());
                tokio::task::spawn_local(async move {
                    let Ok(mut stream) = tls.accept(stream).await else { return };
                    while let Some((head, body)) = request(&mut stream).await {
                        let reply = answered(&path, &head, &body, two);
                        if stream.write_all(&reply).await.is_err() {
                            return;
                        }
                        stream.flush().await.ok();
                    }
                });
            }
        });
        Self { place, url, root }
    }
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

/// One request: its head in lower case, and its body.
async fn request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        bytes.push(stream.read_u8().await.ok()?);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

fn answered(place: &Path, head: &str, body: &[u8], two: bool) -> Vec<u8> {
    let mut command = git(place);
    if two && head.contains("git-protocol: version=2") {
        command.env("GIT_PROTOCOL", "version=2");
    }
    let greets = head.starts_with("get ");
    command.args(["upload-pack", "--stateless-rpc", "--strict"]);
    if greets {
        command.arg("--advertise-refs");
    }
    command.arg(place).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), body).unwrap();
    let mut told = child.wait_with_output().unwrap().stdout;
    if greets {
        told = [b"001e# service=git-upload-pack\n0000".to_vec(), told].concat();
    }
    let kind = if greets { "advertisement" } else { "result" };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-{kind}\r\ncontent-length: {}\r\n\r\n",
        told.len()
    );
    [head.into_bytes(), told].concat()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn what_git_serves_is_read_in_both_versions_of_its_protocol() {
    let reading = async {
        for two in [true, false] {
            let served = Served::open(two).await;
            let mut world = outside();
            world.roots = Arc::new(vec![served.root.clone()]);
            let token = Secret::new("any".to_owned());
            let read = castle_git::tree(&world, &served.url, "main", Some(&token)).await;
            let tree = read.unwrap_or_else(|e| panic!("{two}: {}", e.failure("read")));
            let mut command = git(served.place.path());
            command.current_dir(served.place.path()).args(["rev-parse", "HEAD"]);
            assert_eq!(tree.commit(), run(command, SOON).await.expect_success().trim());
            assert_eq!(tree.below("apps").count(), 23, "20 files in 3 folders");
            let Some(Entry::File(text)) = tree.entry("apps/part-1/7.yaml") else { panic!("{two}") };
            let there = std::fs::read(served.place.path().join("apps/part-1/7.yaml")).unwrap();
            assert_eq!(text.as_ref(), there);
            assert_eq!(tree.entry("large.bin"), Some(&Entry::Left), "larger than we ask for");
            assert_eq!(tree.entry("link"), Some(&Entry::Link("apps".into())));
            let lost = castle_git::head(&world, &served.url, "mian", None).await;
            assert!(matches!(lost, Err(GitError::NoBranch { .. })), "{lost:?}");
        }
    };
    tokio::task::LocalSet::new().run_until(reading).await;
}
