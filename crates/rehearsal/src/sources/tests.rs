//! Tests of the sources: ids as the real factory computes them, manifests that hold what gates look for.

use super::*;

fn birth() -> SourcesBirth {
    SourcesBirth {
        url: "https://github.com/example/castle".to_owned(),
        branch: "main".to_owned(),
        path: "clusters/blue".to_owned(),
        token: Some("token".to_owned()),
        manifests: vec!["https://charts.lan:8443/a/b.yaml".to_owned()],
    }
}

fn post(sources: &mut Sources, body: &str) -> HttpReply {
    ask(sources, "POST", "/schematics", body)
}

fn ask(sources: &mut Sources, method: &str, path: &str, body: &str) -> HttpReply {
    sources.call(&HttpCall {
        method: method.to_owned(),
        host: FACTORY_HOST.to_owned(),
        path: path.to_owned(),
        query: String::new(),
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
        peer: None,
    })
}

fn id(reply: &HttpReply) -> String {
    let HttpBody::Whole(body) = &reply.body else { panic!("a watch") };
    let value: serde_json::Value = serde_json::from_slice(body).unwrap();
    value["id"].as_str().unwrap().to_owned()
}

#[test]
fn schematics_have_the_ids_that_the_factory_gives() {
    let extensions = |names: &[&str]| {
        let lines: Vec<String> =
            names.iter().map(|name| format!("\n      - siderolabs/{name}")).collect();
        let lines = lines.concat();
        format!("customization:\n  systemExtensions:\n    officialExtensions:{lines}\n")
    };
    let cases = [
        (
            "customization: {}".to_owned(),
            "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba",
        ),
        (
            "{\"customization\":{\"extraKernelArgs\":[\"noapic\",\"nolapic\"]}}".to_owned(),
            "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c",
        ),
        (
            extensions(&["qemu-guest-agent"]),
            "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
        ),
        (
            extensions(&["iscsi-tools", "util-linux-tools"]),
            "613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245",
        ),
    ];
    let mut sources = Sources::new(&birth());
    for (text, expected) in cases {
        let reply = post(&mut sources, &text);
        assert_eq!((reply.status, reply.mutated), (201, true), "{text}");
        assert_eq!(id(&reply), expected, "{text}");
    }
    assert_eq!(post(&mut sources, "customisation: {}").status, 400);
    assert!(!post(&mut sources, "customization: {}").mutated, "the same again changes nothing");
    let image = "talos-1.13.9-613e1592b2da41ae5e265e8789429f22.qcow2";
    assert_eq!(
        sources.extensions(Some(image)),
        ["siderolabs/iscsi-tools", "siderolabs/util-linux-tools"]
    );
    assert_eq!(sources.extensions(Some("talos-1.13.9.qcow2")), [""; 0]);
}

#[test]
fn images_are_made_of_what_is_registered_and_known() {
    let mut sources = Sources::new(&birth());
    let id = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba";
    let path = |rest: &str| format!("/image/{id}/{rest}");
    let good = path("v1.13.9/nocloud-amd64.qcow2");
    assert_eq!(ask(&mut sources, "HEAD", &good, "").status, 404, "nobody has registered it");
    post(&mut sources, "customization: {}");
    let reply = ask(&mut sources, "GET", &good, "");
    let HttpBody::Whole(body) = &reply.body else { panic!("a watch") };
    assert_eq!((reply.status, body.len() as u64), (200, factory::IMAGE_LENGTH));
    let cases = [
        (path("v1.14.0-rc.1/metal-amd64.raw.zst"), 200),
        (path("latest/nocloud-amd64.qcow2"), 400),
        (path("v1.13.9/nocloud-amd64.vhd"), 400),
        (path("v1.13.9/nocloud-amd64.qcow2.sha256"), 402),
        ("/image/beef/v1.13.9/nocloud-amd64.qcow2".to_owned(), 404),
        ("/versions".to_owned(), 200),
        ("/".to_owned(), 404),
    ];
    for (path, status) in cases {
        assert_eq!(ask(&mut sources, "GET", &path, "").status, status, "{path}");
    }
}

#[test]
fn manifests_hold_what_gates_look_for() {
    let cases = [
        (
            "github.com",
            "/external-secrets/external-secrets/releases/download/v1.3.2/external-secrets.yaml",
            ["ClusterSecretStore", "external-secrets-webhook", "v1.3.2"],
        ),
        (
            "raw.githubusercontent.com",
            "/metallb/metallb/v0.15.3/config/manifests/metallb-native.yaml",
            ["metallb-webhook-service", "l2advertisementvalidationwebhook.metallb.io", "v0.15.3"],
        ),
        (
            "raw.githubusercontent.com",
            "/longhorn/longhorn/v1.10.0/deploy/longhorn.yaml",
            ["longhorn-manager", "longhorn-driver-deployer", "v1.10.0"],
        ),
        (
            "github.com",
            "/fluxcd/flux2/releases/download/v2.9.3/install.yaml",
            ["kustomize-controller", "gitrepositories.source.toolkit.fluxcd.io", "v2.9.3"],
        ),
    ];
    for (host, path, words) in cases {
        let text = manifest::find(host, path).unwrap_or_else(|| panic!("{path} is missing"));
        for word in words {
            assert!(text.contains(word), "{word} is not in {path}");
        }
        let documents: Vec<serde_json::Value> = text
            .split("---\n")
            .skip(1)
            .map(|document| yaml_serde::from_str(document).unwrap())
            .collect();
        assert!(documents.len() > 15, "{path}");
        for document in documents {
            assert!(document["metadata"]["name"].is_string(), "{path}: {document}");
        }
    }
    assert_eq!(
        manifest::find("github.com", "/fluxcd/flux2/releases/download/vlatest/install.yaml"),
        None
    );
}

#[test]
fn what_only_a_castle_file_knows_is_invented() {
    let mut sources = Sources::new(&birth());
    let mut status = |path: &str| {
        let host = "charts.lan".to_owned();
        let (path, query) = (path.to_owned(), String::new());
        let (headers, body, peer) = (Vec::new(), Vec::new(), None);
        let method = "GET".to_owned();
        let reply = sources.call(&HttpCall { method, host, path, query, headers, body, peer });
        (reply.status, reply.body)
    };
    let text = manifest::invented("https://charts.lan:8443/a/b.yaml");
    assert_eq!(status("/a/b.yaml"), (200, HttpBody::Whole(text.clone().into())));
    assert_ne!(status("/a/c.yaml").0, 200);
    let object: serde_json::Value = yaml_serde::from_str(&text).unwrap();
    assert_eq!(object["data"]["url"], "https://charts.lan:8443/a/b.yaml");
}

#[test]
fn a_repository_opens_for_its_token_alone() {
    let sources = Sources::new(&birth());
    let ask = |url, branch, credentials| sources.git_head(url, branch, credentials);
    let url = "https://github.com/example/castle.git";
    assert_eq!(ask(url, "main", Some(("git", "token"))).unwrap().len(), 40);
    assert!(ask(url, "main", None).unwrap_err().contains("authentication required"));
    assert!(
        ask(url, "main", Some(("git", "guess"))).unwrap_err().contains("authentication required")
    );
    assert!(ask(url, "dev", Some(("git", "token"))).unwrap_err().contains("refs/heads/dev"));
    assert!(ask("https://github.com/other/x", "main", None).unwrap_err().contains("not found"));
}

/// The first repository as castle reads it.
async fn read(host: &crate::host::Host, branch: &str) -> Result<castle_git::Tree, String> {
    let (url, token) = host.read(|world| {
        let birth = &world.birth.sources;
        (birth.url.clone(), birth.token.clone().map(castle_model::Secret::new))
    });
    let read = castle_git::tree(&host.world(), &url, branch, token.as_ref()).await;
    read.map_err(|error| error.failure("read").why)
}

#[tokio::test(start_paused = true)]
async fn castle_reads_the_files_that_are_pushed() {
    let spec = crate::testing::spec(1, 1);
    let host = crate::host::Host::open(None, &spec, 3).unwrap();
    let (url, path) = (spec.gitops.url.clone(), spec.gitops.path.clone());
    let tree = read(&host, "main").await.unwrap();
    assert!(tree.entry(&format!("{path}/infrastructure.yaml")).is_some());
    let first = tree.commit().to_owned();
    let files = [
        ("large.txt".to_owned(), Some("0123456789abcdef".repeat(20_000))),
        (format!("{path}/apps.yaml"), None),
    ];
    host.cause(git::GitTrouble::Push {
        url: url.clone(),
        branch: "main".into(),
        files: files.into(),
    });
    let tree = read(&host, "main").await.unwrap();
    assert_ne!(tree.commit(), first);
    let Some(castle_git::Entry::File(large)) = tree.entry("large.txt") else { panic!() };
    assert_eq!(large.len(), 320_000);
    assert_eq!(tree.entry(&format!("{path}/apps.yaml")), None);
    assert!(read(&host, "mian").await.unwrap_err().contains("has no branch `mian`; it has main"));
    let spoil = |broken| git::GitTrouble::Folder {
        url: url.clone(),
        branch: "main".into(),
        path: "./apps/static".into(),
        broken,
    };
    let text = async || {
        let tree = read(&host, "main").await.unwrap();
        let Some(castle_git::Entry::File(blog)) = tree.entry("apps/static/blog.yaml") else {
            panic!("no blog")
        };
        String::from_utf8(blog.to_vec()).unwrap()
    };
    let whole = text().await;
    host.cause(spoil(true));
    assert_eq!(text().await, format!("{whole}---\nkind: [\n"));
    let heads = host.inventory().git;
    host.cause(spoil(true));
    assert_eq!(host.inventory().git, heads, "what is broken is not broken again");
    host.cause(spoil(false));
    assert_eq!(text().await, whole);
    host.cause(git::GitTrouble::Unbranch { url: url.clone(), branch: "main".into() });
    assert!(read(&host, "main").await.unwrap_err().contains("is empty"));
    host.cause(git::GitTrouble::Token { url, token: "another".into() });
    let denied = read(&host, "main").await.unwrap_err();
    assert!(denied.contains("401: the token may not read the repository"), "{denied}");
    host.cause(git::GitTrouble::Away(true));
    assert!(read(&host, "main").await.unwrap_err().contains("answers 503"));
}
