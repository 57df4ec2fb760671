//! Adjustments of the releases' shapes: what they change, how they read, and that one without a target is an error.

use castle_model::Spec;
use castle_model::spec::ObjectPatch;
use serde_json::{Value, json};

use super::*;
use crate::release::Release;
use crate::{engine, networking, storage};

fn workload(kind: &str, name: &str, arguments: &[&str]) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "template": {"spec": {
            "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}, {"key": "other"}],
            "containers": [{"name": name, "args": arguments}],
        }}},
    })
}

fn adjusted(release: &Release, spec: &Spec, mut objects: Vec<Value>) -> Vec<Value> {
    adjust("it 1.0.0", &(release.overlay)(spec), &mut objects).unwrap();
    objects
}

fn refused(release: &Release, spec: &Spec, mut objects: Vec<Value>) -> String {
    let failure = adjust("it 1.0.0", &(release.overlay)(spec), &mut objects).unwrap_err();
    assert_eq!(failure.class, Class::Invalid);
    failure.to_string()
}

fn longhorn() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "longhorn-system"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "longhorn-default-setting"},
            "data": {"default-setting.yaml": "priority-class: longhorn-critical\ndefault-data-path: /old"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "longhorn-storageclass"},
            "data": {"storageclass.yaml": "parameters:\n  numberOfReplicas: \"3\"\n  fsType: \"ext4\"\n"}}),
    ]
}

#[test]
fn longhorn_gets_its_copies_its_disk_and_its_promises() {
    let mut spec = castle_config::example();
    spec.storage.over_provisioning = Some(200);
    let objects = adjusted(&storage::RELEASE, &spec, longhorn());
    assert_eq!(
        objects[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "privileged"
    );
    assert_eq!(
        objects[1]["data"]["default-setting.yaml"],
        "priority-class: longhorn-critical\ndefault-data-path: \"/var/mnt/longhorn\"\ndefault-replica-count: \"2\"\n\
         storage-over-provisioning-percentage: \"200\""
    );
    assert_eq!(
        objects[2]["data"]["storageclass.yaml"],
        "parameters:\n  numberOfReplicas: \"2\"\n  fsType: \"ext4\"\n"
    );
    insta::assert_snapshot!(storage::RELEASE.notes(&spec).join("\n"), @r#"
    namespace longhorn-system is labelled for privileged pods (PodSecurity)
    2 copies of each volume
    the same for volumes that people make in Longhorn's UI (default-replica-count)
    volumes live in /var/mnt/longhorn (default-data-path)
    200 % of a disk may be promised to volumes (storage-over-provisioning-percentage)
    "#);
    spec.storage.data_path = Some("/var/mnt/volumes".into());
    let objects = adjusted(&storage::RELEASE, &spec, longhorn());
    let text = objects[1]["data"]["default-setting.yaml"].as_str().unwrap();
    assert!(text.contains("default-data-path: \"/var/mnt/volumes\""), "{text}");
}

#[test]
fn what_matches_nothing_is_an_error_that_names_the_setting_and_the_release() {
    let mut spec = castle_config::example();
    let without = |name: &str| {
        let mut objects = longhorn();
        objects.retain(|object| object["metadata"]["name"] != name);
        objects
    };
    insta::assert_snapshot!(refused(&storage::RELEASE, &spec, without("longhorn-storageclass")), @r#"adjust it 1.0.0: `replicas` of storage "longhorn" is for ConfigMap longhorn-storageclass, and the release has none"#);
    let mut renamed = longhorn();
    renamed[2]["data"]["storageclass.yaml"] = json!("parameters: {}\n");
    insta::assert_snapshot!(refused(&storage::RELEASE, &spec, renamed), @r#"adjust it 1.0.0: `replicas` of storage "longhorn" found nothing to change in ConfigMap longhorn-storageclass of the release"#);
    spec.storage.patches = vec![ObjectPatch {
        kind: "Deployment".into(),
        name: Some("longhorn-ui".into()),
        origin: "castle.hcl:40".into(),
        text: "spec: {replicas: 1}".into(),
    }];
    insta::assert_snapshot!(refused(&storage::RELEASE, &spec, longhorn()), @r#"adjust it 1.0.0: the patch in castle.hcl:40 is for Deployment longhorn-ui, and the release has none"#);
}

#[test]
fn patches_come_last_and_change_what_they_name() {
    let mut spec = castle_config::example();
    let patch = |name: Option<&str>, text: &str| ObjectPatch {
        kind: "DaemonSet".into(),
        name: name.map(str::to_owned),
        origin: "patches/speaker.yaml".into(),
        text: text.into(),
    };
    spec.networking.patches = vec![
        patch(Some("speaker"), "spec: {template: {spec: {tolerations: [{operator: Exists}]}}}"),
        patch(None, "metadata: {labels: {mine: yes-it-is}}"),
    ];
    let objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}}),
        workload("DaemonSet", "speaker", &[]),
    ];
    let objects = adjusted(&networking::RELEASE, &spec, objects);
    assert_eq!(
        objects[1]["spec"]["template"]["spec"]["tolerations"],
        json!([{"operator": "Exists"}])
    );
    assert_eq!(objects[1]["metadata"]["labels"]["mine"], "yes-it-is");
    insta::assert_snapshot!(networking::RELEASE.notes(&spec).join("\n"), @r#"
    namespace metallb-system is labelled for privileged pods (PodSecurity)
    speakers run on control planes and announce from there (--ignore-exclude-lb=true)
    DaemonSet speaker is patched by patches/speaker.yaml
    every DaemonSet is patched by patches/speaker.yaml
    "#);
}

#[test]
fn speakers_run_on_control_planes_and_pass_over_the_label_or_do_neither() {
    let mut spec = castle_config::example();
    let objects = || {
        vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}}),
            workload("DaemonSet", "speaker", &["--port=7472", "--ignore-exclude-lb=false"]),
        ]
    };
    let pod = |spec: &Spec| {
        adjusted(&networking::RELEASE, spec, objects())[1]["spec"]["template"]["spec"].clone()
    };
    let with = pod(&spec);
    assert_eq!(with["containers"][0]["args"], json!(["--port=7472", "--ignore-exclude-lb=true"]));
    let keys: Vec<&str> =
        with["tolerations"].as_array().unwrap().iter().filter_map(|t| t["key"].as_str()).collect();
    assert_eq!(
        keys,
        ["other", "node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"]
    );
    spec.networking.control_planes = false;
    let without = pod(&spec);
    assert_eq!(without["tolerations"], json!([{"key": "other"}]));
    assert_eq!(without["containers"][0]["args"][1], "--ignore-exclude-lb=false", "as released");
}

#[test]
fn external_secrets_is_moved_out_of_the_namespace_default() {
    let mut spec = castle_config::example();
    spec.engine.replicas = Some(2);
    spec.engine.resources.memory_limit = Some("256Mi".into());
    let objects = adjusted(
        &engine::RELEASE,
        &spec,
        vec![
            workload("Deployment", "external-secrets", &["--concurrent=1"]),
            workload(
                "Deployment",
                "webhook",
                &["webhook", "--dns-name=external-secrets-webhook.default.svc"],
            ),
            workload(
                "Deployment",
                "cert-controller",
                &["certcontroller", "--secret-namespace=default"],
            ),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "a"},
                "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]}),
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "c"}, "spec": {"versions": [
                {"schema": {"openAPIV3Schema": {"namespace": "default"}}}]}}),
        ],
    );
    assert_eq!(objects[0]["kind"], "Namespace");
    assert_eq!(objects[0]["metadata"]["name"], "external-secrets");
    let at =
        |index: usize, pointer: &str| objects[index].pointer(pointer).cloned().unwrap_or_default();
    let arguments = "/spec/template/spec/containers/0/args";
    assert_eq!(at(1, "/metadata/namespace"), "external-secrets");
    assert_eq!(at(1, arguments), json!(["--concurrent=1", "--enable-leader-election=true"]));
    assert_eq!(
        at(2, arguments),
        json!(["webhook", "--dns-name=external-secrets-webhook.external-secrets.svc"]),
        "it only answers, so it elects nobody"
    );
    assert_eq!(
        at(3, arguments),
        json!([
            "certcontroller",
            "--secret-namespace=external-secrets",
            "--enable-leader-election=true"
        ])
    );
    assert_eq!(at(1, "/spec/replicas"), 2);
    assert_eq!(
        at(3, "/spec/template/spec/containers/0/resources"),
        json!({"limits": {"memory": "256Mi"}})
    );
    assert_eq!(at(4, "/subjects/0/namespace"), "external-secrets");
    assert_eq!(
        at(5, "/spec/versions/0/schema/openAPIV3Schema/namespace"),
        "default",
        "a schema is not a place"
    );
    insta::assert_snapshot!(engine::RELEASE.notes(&spec).join("\n"), @r#"
    it gets the namespace external-secrets of its own
    2 copies of each Deployment, which elect a leader
    each container asks for memory at most 256Mi
    "#);
}

#[test]
fn a_line_is_set_where_it_stands_or_added() {
    for (text, expected) in [
        ("", "a: 1"),
        ("b: 2", "b: 2\na: 1"),
        ("b: 2\n", "b: 2\na: 1"),
        ("a: 0\nb: 2", "a: 1\nb: 2"),
        ("x:\n  a: 0", "x:\n  a: 1"),
        ("ab: 0", "ab: 0\na: 1"),
    ] {
        assert_eq!(set_line(text, "a", "1"), expected, "{text}");
    }
}
