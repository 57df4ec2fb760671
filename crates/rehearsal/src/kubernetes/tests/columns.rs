//! What `kubectl get` prints of the kinds that releases define, in the columns that the releases ask for.

use super::*;
use crate::kubernetes::kinds::all;
use crate::sources::manifest;

const RELEASES: [(&str, &str); 4] = [
    (
        "github.com",
        "/external-secrets/external-secrets/releases/download/v1.3.2/external-secrets.yaml",
    ),
    ("raw.githubusercontent.com", "/metallb/metallb/v0.15.3/config/manifests/metallb-native.yaml"),
    ("raw.githubusercontent.com", "/longhorn/longhorn/v1.10.0/deploy/longhorn.yaml"),
    ("github.com", "/fluxcd/flux2/releases/download/v2.7.5/install.yaml"),
];

/// What a castle makes of these kinds.
const OWN: &str = "
apiVersion: v1
kind: Secret
metadata: {name: identity, namespace: external-secrets}
stringData: {id: me, secret: right}
---
apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: infisical}
spec:
  provider:
    infisical:
      hostAPI: https://eu.infisical.com
      auth:
        universalAuthCredentials:
          clientId: {name: identity, namespace: external-secrets, key: id}
          clientSecret: {name: identity, namespace: external-secrets, key: secret}
      secretsScope: {projectSlug: p, environmentSlug: dev, secretsPath: /}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: flux-system, namespace: flux-system}
spec:
  refreshInterval: 1h
  secretStoreRef: {name: infisical, kind: ClusterSecretStore}
  target: {name: flux-system, template: {data: {username: git, password: '{{ .token }}'}}}
  data: [{secretKey: token, remoteRef: {key: GITHUB_TOKEN}}]
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: castle, namespace: metallb-system}
spec: {addresses: [192.168.1.240-192.168.1.250, 192.168.2.0/28]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: castle, namespace: metallb-system}
spec: {ipAddressPools: [castle]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: probe, namespace: default, uid: probe}
spec: {storageClassName: longhorn, resources: {requests: {storage: 1Gi}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: 'https://git/x', ref: {branch: main}, secretRef: {name: flux-system}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec: {interval: 10m, path: ./base, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
";

fn documents(text: &str) -> Vec<Value> {
    let parts = text.split("\n---\n").map(|part| yaml_serde::from_str::<Value>(part).unwrap());
    parts.filter(Value::is_object).collect()
}

fn put(rig: &mut Rig, object: &Value) {
    let (version, kind) = (&object["apiVersion"], &object["kind"]);
    let resources = all(&rig.cluster.store);
    let found = resources.into_iter().find(|r| *version == *r.api_version() && *kind == *r.kind);
    let resource = found.unwrap_or_else(|| panic!("nobody knows {kind} of {version}"));
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    let space = object["metadata"]["namespace"].as_str();
    let space = space.map_or_else(String::new, |space| format!("/namespaces/{space}"));
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = format!("/{root}/{}{space}/{}/{name}", resource.api_version(), resource.plural);
    rig.good(&path, object);
}

/// A list as kubectl prints it: columns of a higher priority only where somebody asks for more.
fn printed(rig: &mut Rig, path: &str, wide: bool) -> String {
    let call = HttpCall {
        method: "GET".into(),
        host: "192.168.1.210".into(),
        path: path.into(),
        query: String::new(),
        headers: vec![("accept".into(), "application/json;as=Table;v=v1;g=meta.k8s.io".into())],
        body: Vec::new(),
        peer: Some(Peer { common_name: "admin".into(), organizations: vec![MASTERS.into()] }),
    };
    let reply = rig.turn(|cluster, turn| cluster.call(turn, &call, &Outside::new()));
    let table = whole(&reply);
    let columns =
        table["columnDefinitions"].as_array().unwrap_or_else(|| panic!("{path}: {table}"));
    let shown: Vec<usize> =
        (0..columns.len()).filter(|at| wide || columns[*at]["priority"] == 0).collect();
    let mut lines: Vec<Vec<String>> = vec![
        shown.iter().map(|at| columns[*at]["name"].as_str().unwrap().to_uppercase()).collect(),
    ];
    for row in table["rows"].as_array().unwrap() {
        let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
        let cell = |at: &usize| match &row["cells"][*at] {
            Value::Null => String::new(),
            cell => text(cell),
        };
        lines.push(shown.iter().map(cell).collect());
    }
    let width = |at: usize| lines.iter().map(|line| line[at].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..shown.len()).map(width).collect();
    let line = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn kubectl_prints_the_columns_of_defined_kinds() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.namespace("external-secrets");
    for (host, path) in RELEASES {
        // As castle does: one release leaves its namespace to whoever installs it, another what its pods may; and what
        // defines kinds comes first.
        let text = manifest::find(host, path).unwrap();
        let all = documents(&text.replace("namespace: default", "namespace: external-secrets"));
        let all = all.into_iter().map(|mut object| {
            if object["kind"] == "Namespace" {
                let level = "pod-security.kubernetes.io/enforce";
                object["metadata"]["labels"][level] = "privileged".into();
            }
            object
        });
        let (first, then): (Vec<Value>, Vec<Value>) = all.partition(|object| {
            matches!(object["kind"].as_str(), Some("Namespace" | "CustomResourceDefinition"))
        });
        for object in &first {
            put(&mut rig, object);
        }
        rig.pass(2_000);
        for object in &then {
            put(&mut rig, object);
        }
    }
    rig.pass(120_000);
    for object in &documents(OWN) {
        put(&mut rig, object);
    }
    rig.pass(80_000);
    let shown: Vec<String> = [
        ("/apis/external-secrets.io/v1/clustersecretstores", false),
        ("/apis/external-secrets.io/v1/externalsecrets", false),
        ("/apis/metallb.io/v1beta1/ipaddresspools", false),
        ("/apis/metallb.io/v1beta1/l2advertisements", false),
        ("/apis/metallb.io/v1beta1/l2advertisements", true),
        ("/apis/metallb.io/v1beta1/communities", false),
        ("/apis/longhorn.io/v1beta2/nodes", false),
        ("/apis/longhorn.io/v1beta2/replicas", false),
        ("/apis/source.toolkit.fluxcd.io/v1/gitrepositories", false),
        ("/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations", false),
    ]
    .into_iter()
    .map(|(path, wide)| printed(&mut rig, path, wide))
    .collect();
    insta::assert_snapshot!(shown.join("\n\n"), @r#"
    NAME        AGE   STATUS   CAPABILITIES   READY
    infisical   80s   Valid    ReadOnly       True

    NAME          STORETYPE            STORE       REFRESH INTERVAL   STATUS         READY
    flux-system   ClusterSecretStore   infisical   1h                 SecretSynced   True

    NAME     AUTO ASSIGN   AVOID BUGGY IPS   ADDRESSES
    castle   true          false             ["192.168.1.240-192.168.1.250","192.168.2.0/28"]

    NAME     IPADDRESSPOOLS   IPADDRESSPOOL SELECTORS   INTERFACES
    castle   ["castle"]

    NAME     IPADDRESSPOOLS   IPADDRESSPOOL SELECTORS   INTERFACES   NODE SELECTORS
    castle   ["castle"]

    NAME   AGE

    NAME        READY   ALLOWSCHEDULING   SCHEDULABLE   AGE
    worker-01   True    true              True          2m44s
    worker-02   True    true              True          2m29s

    NAME                                                   DATA ENGINE   STATE     NODE        DISK   INSTANCEMANAGER   IMAGE   AGE
    pvc-8ee5055c-61e5-449d-8efd-45fdc3d8faeb-r-worker-01   v1            stopped   worker-01                                    78s
    pvc-8ee5055c-61e5-449d-8efd-45fdc3d8faeb-r-worker-02   v1            stopped   worker-02                                    78s

    NAME          URL             AGE   READY   STATUS
    flux-system   https://git/x   80s   True    stored artifact for revision 'main@sha1:c0ffee'

    NAME   AGE   READY   STATUS
    base   80s   True    Applied revision: main@sha1:c0ffee
    "#);
}
