//! The rules of merging and deleting, one by one. The same against Talos' own code is in the room `reality`.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A config in small: a main document and some beside it.
fn base() -> Vec<Value> {
    vec![
        json!({
            "version": "v1alpha1",
            "debug": false,
            "machine": {
                "type": "controlplane",
                "certSANs": ["a.lan"],
                "ca": { "crt": "Q1JU", "key": "S0VZ" },
                "sysctls": { "net.a": "1" },
                "network": { "interfaces": [
                    { "interface": "eth0", "addresses": ["10.0.0.1/24"], "vlans": [{ "vlanId": 5 }] },
                ] },
            },
            "cluster": {
                "network": { "podSubnets": ["10.244.0.0/16"] },
                "apiServer": {
                    "extraArgs": { "v": ["1", "2"] },
                    "admissionControl": [
                        { "name": "PodSecurity", "configuration": { "defaults": { "enforce": "baseline" } } },
                    ],
                },
            },
        }),
        json!({ "apiVersion": "v1alpha1", "kind": "HostnameConfig", "auto": "off", "hostname": "cp-01" }),
        json!({
            "apiVersion": "v1alpha1", "kind": "UserVolumeConfig", "name": "longhorn",
            "provisioning": { "diskSelector": { "match": "!system_disk" }, "minSize": "1GiB" },
        }),
    ]
}

fn patched(patch: &str) -> Result<Vec<Value>, PatchError> {
    apply(&base(), patch, Contract::V1_13)
}

/// What stands at a place after a patch.
fn after(patch: &str, document: usize, path: &str) -> Value {
    patched(patch).unwrap()[document].pointer(path).cloned().unwrap_or_default()
}

#[test]
fn maps_recurse_lists_append_and_scalars_overwrite() {
    let cases = [
        ("machine: {certSANs: [b.lan]}", "/machine/certSANs", json!(["a.lan", "b.lan"])),
        ("machine: {certSANs: []}", "/machine/certSANs", json!(["a.lan"])),
        ("machine: {certSANs: null}", "/machine/certSANs", json!(["a.lan"])),
        ("machine: {type: worker}", "/machine/type", json!("worker")),
        ("machine: {type: ''}", "/machine/type", json!("controlplane")),
        ("debug: true", "/debug", json!(true)),
        (
            "machine: {sysctls: {net.b: '2'}}",
            "/machine/sysctls",
            json!({ "net.a": "1", "net.b": "2" }),
        ),
        ("machine: {ca: {crt: TkVX}}", "/machine/ca", json!({ "crt": "TkVX" })),
        (
            "cluster: {network: {podSubnets: [10.0.0.0/8]}}",
            "/cluster/network/podSubnets",
            json!(["10.0.0.0/8"]),
        ),
        (
            "cluster: {apiServer: {extraArgs: {v: '4', w: x}}}",
            "/cluster/apiServer/extraArgs",
            json!({ "v": "4", "w": "x" }),
        ),
        (
            "machine: {files: [{path: /var/x, permissions: 0644}]}",
            "/machine/files/0/permissions",
            json!(420),
        ),
    ];
    for (patch, path, wanted) in cases {
        assert_eq!(after(patch, 0, path), wanted, "{patch}");
    }
}

#[test]
fn some_lists_are_merged_by_a_key() {
    let patch = "machine: {network: {interfaces: [
        {interface: eth0, addresses: [10.0.0.2/24], vlans: [{vlanId: 5, mtu: 9000}, {vlanId: 6}]},
        {interface: eth1, dhcp: true}]}}";
    assert_eq!(
        after(patch, 0, "/machine/network/interfaces"),
        json!([
            { "interface": "eth0", "addresses": ["10.0.0.1/24", "10.0.0.2/24"],
              "vlans": [{ "vlanId": 5, "mtu": 9000 }, { "vlanId": 6 }] },
            { "interface": "eth1", "dhcp": true },
        ])
    );
    let patch = "cluster: {apiServer: {admissionControl: [
        {name: PodSecurity, configuration: {defaults: {enforce: privileged}}}]}}";
    let defaults = "/cluster/apiServer/admissionControl/0/configuration/defaults/enforce";
    assert_eq!(after(patch, 0, defaults), "privileged");
}

#[test]
fn documents_are_matched_by_kind_and_name_and_others_are_appended() {
    let patch = "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: other";
    assert_eq!(after(patch, 1, "/hostname"), "other");
    let patch = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: data\n---\n\
        apiVersion: v1alpha1\nkind: TimeSyncConfig\nenabled: false";
    let documents = patched(patch).unwrap();
    assert_eq!(documents.len(), 5);
    assert_eq!((&documents[3]["name"], &documents[4]["enabled"]), (&json!("data"), &json!(false)));
}

#[test]
fn a_volume_loses_what_the_patch_does_not_repeat() {
    let patch = "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: longhorn\n\
        provisioning: {minSize: 5GiB}";
    assert_eq!(after(patch, 2, "/provisioning"), json!({ "diskSelector": {}, "minSize": "5GiB" }));
}

#[test]
fn deletions_take_fields_elements_and_documents() {
    assert_eq!(after("machine: {certSANs: {$patch: delete}}", 0, "/machine/certSANs"), Value::Null);
    assert_eq!(
        after("machine: {sysctls: {net.a: {$patch: delete}}}", 0, "/machine/sysctls"),
        json!({})
    );
    let element = "machine: {network: {interfaces: [{interface: eth0, $patch: delete}]}}";
    assert_eq!(after(element, 0, "/machine/network/interfaces"), json!([]));
    let whole = "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete";
    assert_eq!(patched(whole).unwrap().len(), 2);
    let absent = "apiVersion: v1alpha1\nkind: KubeSpanConfig\n$patch: delete";
    assert_eq!(patched(absent).unwrap(), base(), "a document that is not there is passed over");
    let mixed = "machine: {certSANs: {$patch: delete}, sysctls: {net.c: '3'}}";
    assert_eq!(after(mixed, 0, "/machine/sysctls/net.c"), "3");
    assert_eq!(after(mixed, 0, "/machine/certSANs"), Value::Null);
}

#[test]
fn what_can_not_be_applied_is_refused_in_words() {
    let cases = [
        "- {op: add, path: /machine/x, value: 1}",
        "machine: {type: [",
        "machine: {type: a, type: b}",
        "",
        "just words",
        "machine: {type: worker}\n---\nmachine: {type: worker}",
        "apiVersion: v1alpha1\nkind: KubeletConfig\nimage: x",
        "kind: HostnameConfig\nhostname: x",
        "apiVersion: v1alpha1",
        "machine: {kubelt: {image: x}}",
        "apiVersion: v1alpha1\nkind: HostnameConfig\nhostnam: x",
        "machine: {sysctls: {$patch: replace}}",
        "version: v1alpha1\n$patch: delete",
        "machine: {sysctls: {net.z: {$patch: delete}}}",
        "machine: {network: {interfaces: [{interface: eth0, mtu: {$patch: delete}}]}}",
        "machine: {network: {interfaces: [{$patch: delete}]}}",
        "machine: {network: {interfaces: [{interface: eth7, $patch: delete}]}}",
        "machine: {sysctls: [1]}",
        "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {defaults: {enforce: 5}}}]}}",
        "cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {defaults: null}}]}}",
        "machine: {a: &a {b: c}, d: {<<: *a}}",
    ];
    let words = cases.map(|patch| patched(patch).unwrap_err().to_string()).join("\n");
    insta::assert_snapshot!(words, @r"
    it is a list of operations (JSON 6902), which Talos refuses for configs of several documents
    it is not YAML that can be read (line 2, column 1)
    it is not YAML that can be read (line 1, column 10)
    it holds no document
    its document 1 is not a mapping
    it holds the main document twice, which Talos before 1.14 refuses
    its document 1 is of the kind `KubeletConfig`, which this version of Talos does not know
    its document 1 is without `apiVersion`
    its document 1 is of no known kind
    its document 1 is the main document, with the key `machine.kubelt` that Talos does not know
    its document 1 is HostnameConfig, with the key `hostnam` that Talos does not know
    in the main document, `machine.sysctls`: the `$patch` there is not `delete`
    in the main document, `$patch`: the main document can not be deleted
    in the main document there is no `machine.sysctls.net.z` to delete
    in the main document, `machine.network.interfaces[0].mtu`: a field within a list's element can not be deleted
    in the main document, `machine.network.interfaces[0]`: no key tells which element is to be deleted
    in the main document there is no `machine.network.interfaces[interface: eth7]` to delete
    in the main document, `machine.sysctls` is a mapping in the config and a list in the patch
    in the main document, `cluster.apiServer.admissionControl[*].configuration.defaults.enforce` is a text in the config and a number in the patch
    in the main document, `cluster.apiServer.admissionControl[*].configuration.defaults` is a mapping in the config and nothing in the patch
    it is not YAML that can be read (a merge key in `d`)
    ");
}

#[test]
fn newer_versions_take_one_document_twice_and_more_kinds() {
    let twice = "machine: {type: worker}\n---\nmachine: {type: init}";
    let documents = apply(&base(), twice, Contract::V1_14).unwrap();
    assert_eq!(documents[0]["machine"]["type"], "init");
    let newer = "apiVersion: v1alpha1\nkind: KubeletConfig\nimage: x";
    assert_eq!(apply(&base(), newer, Contract::V1_14).unwrap().len(), 4);
}

#[test]
fn a_patch_can_not_be_made_to_explode() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let last = level - 1;
        let row = vec![format!("*a{last}"); 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{row}]").unwrap();
    }
    assert!(matches!(patched(&bomb), Err(PatchError::Yaml { .. })));
    let deep = format!("machine: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(matches!(patched(&deep), Err(PatchError::Yaml { .. })));
    let long = format!("machine: {{type: {}}}", "x".repeat(LONGEST));
    assert!(matches!(patched(&long), Err(PatchError::Long { .. })));
}

/// Small values without null, as a patch may hold them.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof!["[a-z]{1,3}".prop_map(Value::from), (1..9).prop_map(Value::from)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::btree_map("[a-c]", inner, 1..3)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    })
}

proptest! {
    /// A patch of maps and scalars, applied twice, changes nothing the second time; and what it says is there.
    #[test]
    fn a_patch_without_lists_is_idempotent(parts in prop::collection::btree_map("[a-c]", value(), 1..3)) {
        let part: Value = Value::Object(parts.into_iter().collect());
        let text = yaml_serde::to_string(&json!({ "machine": { "sysctls": part } })).unwrap();
        let once = patched(&text).unwrap();
        prop_assert_eq!(apply(&once, &text, Contract::V1_13).unwrap(), once.clone());
        for (key, value) in part.as_object().unwrap() {
            prop_assert_eq!(&once[0]["machine"]["sysctls"][key], value);
        }
    }
}
