//! The manifests of real releases: what the castle file changes of them, and that the rehearsal's stand-ins have their shape.

use std::collections::BTreeSet;
use std::fs;

use castle_kubernetes::manifest::parse;
use castle_layers::adjusted;
use castle_model::Spec;
use castle_model::spec::ObjectPatch;
use castle_reality::Real;
use serde_json::{Value, json};

const STAND_IN: &str = include_str!("../../../rehearsal/src/sources/metallb.yaml");

fn metallb() -> Option<String> {
    let real = Real::find("metallb-manifest")?;
    Some(fs::read_to_string(real.file("metallb-native.yaml")).unwrap())
}

fn read(text: &str) -> Vec<Value> {
    parse("metallb", text).unwrap().into_iter().map(castle_kubernetes::Object::into_value).collect()
}

fn named<'v>(objects: &'v [Value], kind: &str, name: &str) -> &'v Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(is_it).unwrap()
}

fn speaker(spec: &Spec, text: &str) -> Value {
    let objects = adjusted(spec, "metallb", text).unwrap();
    named(&objects, "DaemonSet", "speaker")["spec"]["template"]["spec"].clone()
}

fn taints(pod: &Value) -> Vec<&str> {
    pod["tolerations"].as_array().unwrap().iter().filter_map(|t| t["key"].as_str()).collect()
}

#[test]
#[ignore = "needs real components: cargo xtask test"]
fn metallb_is_changed_where_the_castle_file_says_and_nowhere_else() {
    let Some(text) = metallb() else { return };
    let mut spec = castle_config::example();
    let released = read(&text);
    let changed: Vec<String> = adjusted(&spec, "metallb", &text)
        .unwrap()
        .iter()
        .zip(&released)
        .filter(|(now, before)| now != before)
        .map(|(now, _)| format!("{} {}", now["kind"], now["metadata"]["name"]))
        .collect();
    assert_eq!(changed, ["\"DaemonSet\" \"speaker\""], "its namespace is labelled already");
    let both = ["node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"];
    let pod = speaker(&spec, &text);
    assert_eq!(taints(&pod), both, "each once, though it is released with them");
    let arguments = pod["containers"][0]["args"].as_array().unwrap();
    assert!(arguments.contains(&json!("--ignore-exclude-lb=true")), "{arguments:?}");
    spec.networking.control_planes = false;
    assert_eq!(taints(&speaker(&spec, &text)), Vec::<&str>::new());
    let patch = |name: &str| {
        ObjectPatch {
        kind: "Deployment".into(),
        name: Some(name.into()),
        origin: "castle.hcl:1".into(),
        text: "spec: {template: {spec: {containers: [{name: controller, resources: {limits: {memory: 100Mi}}}]}}}".into(),
    }
    };
    spec.networking.patches = vec![patch("controller")];
    let objects = adjusted(&spec, "metallb", &text).unwrap();
    let container =
        &named(&objects, "Deployment", "controller")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["limits"]["memory"], "100Mi");
    assert_eq!(
        container["image"],
        named(&released, "Deployment", "controller")["spec"]["template"]["spec"]["containers"][0]["image"],
        "the rest of the container stays"
    );
    spec.networking.patches = vec![patch("frr")];
    let failure = adjusted(&spec, "metallb", &text).unwrap_err();
    assert!(failure.why.contains("the release has none"), "{failure}");
}

#[test]
#[ignore = "needs real components: cargo xtask test"]
fn the_stand_in_of_metallb_has_the_shape_of_the_release() {
    let Some(text) = metallb() else { return };
    let names = |objects: &[Value]| -> BTreeSet<String> {
        let of = |o: &Value| format!("{} {} {}", o["apiVersion"], o["kind"], o["metadata"]["name"]);
        objects.iter().map(of).collect()
    };
    let (real, stand_in) = (read(&text), read(STAND_IN));
    let only: Vec<String> = names(&stand_in).difference(&names(&real)).cloned().collect();
    assert_eq!(only, Vec::<String>::new(), "the stand-in has nothing that the release lacks");
    for kind in
        ["Deployment", "DaemonSet", "Service", "ValidatingWebhookConfiguration", "Namespace"]
    {
        let of = |objects: &[Value]| -> BTreeSet<String> {
            let these = objects.iter().filter(|object| object["kind"] == kind);
            these.map(|object| object["metadata"]["name"].to_string()).collect()
        };
        assert_eq!(of(&stand_in), of(&real), "{kind}");
    }
    let tolerations = |objects: &[Value]| {
        let pod = &named(objects, "DaemonSet", "speaker")["spec"]["template"]["spec"];
        pod["tolerations"].as_array().unwrap().len()
    };
    assert_eq!(tolerations(&stand_in), tolerations(&real));
}
