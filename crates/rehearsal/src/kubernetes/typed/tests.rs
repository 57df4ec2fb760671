//! Fields, differences and merges of built-in and of defined kinds.

use serde_json::json;

use super::*;

const POD: fn() -> Shape<'static> = || Shape::built_in("Deployment");

#[test]
fn an_applied_deployment_names_its_fields_by_keys() {
    let config = json!({
        "metadata": {"name": "d", "labels": {"app": "d"}, "finalizers": ["a/b"]},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "d"}},
            "template": {"spec": {
                "containers": [{"name": "x", "args": ["-v"], "ports": [{"containerPort": 80}], "resources": {}}],
                "tolerations": [{"operator": "Exists"}],
                "imagePullSecrets": [{"name": "pull"}],
            }},
        },
    });
    assert_eq!(
        fields_of(&config, &POD()).written(),
        json!({
            "f:metadata": {
                "f:finalizers": {"v:\"a/b\"": {}},
                "f:labels": {"f:app": {}},
                "f:name": {},
            },
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {"f:spec": {
                    "f:containers": {"k:{\"name\":\"x\"}": {
                        ".": {}, "f:args": {}, "f:name": {},
                        "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                        "f:resources": {},
                    }},
                    "f:imagePullSecrets": {"k:{\"name\":\"pull\"}": {}},
                    "f:tolerations": {},
                }},
            },
        })
    );
}

#[test]
fn a_definition_says_how_its_lists_are_merged() {
    let schema = json!({"properties": {"spec": {"properties": {
        "hosts": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"properties": {"name": {}, "port": {}}}},
        "tags": {"x-kubernetes-list-type": "set"},
        "plain": {},
    }}}});
    let config = json!({"spec": {"hosts": [{"name": "a", "port": 1}], "tags": ["t"], "plain": [1, 2], "own": {"x": 1}}});
    assert_eq!(
        fields_of(&config, &Shape::custom(&schema)).written(),
        json!({"f:spec": {
            "f:hosts": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:port": {}}},
            "f:own": {".": {}, "f:x": {}},
            "f:plain": {},
            "f:tags": {"v:\"t\"": {}},
        }})
    );
}

#[test]
fn differences_name_what_changed_and_what_went() {
    let before = json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "x", "image": "a"}, {"name": "y"}]}}}});
    let after = json!({"spec": {"paused": true, "replicas": 1,
        "template": {"metadata": {"labels": {"l": "1"}}, "spec": {"containers": [{"name": "x", "image": "b"}]}}}});
    let difference = compare(&before, &after, &POD());
    assert_eq!(
        difference.changed.written(),
        json!({"f:spec": {"f:paused": {}, "f:template": {
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {"f:image": {}}}},
        }}})
    );
    assert_eq!(
        difference.removed.written(),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"y\"}": {".": {}, "f:name": {}}}}}}})
    );
}

#[test]
fn lists_keep_the_others_entries_and_take_our_order() {
    let list = |names: &[&str]| json!(names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>());
    for (live, wanted, merged) in [
        (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
        (vec!["a", "b"], vec!["x", "b"], vec!["a", "x", "b"]),
        (vec!["s"], vec!["s", "t"], vec!["s", "t"]),
        (vec!["s", "z"], vec!["s", "t"], vec!["s", "z", "t"]),
    ] {
        let mut value = json!({"spec": {"volumes": list(&live)}});
        merge(&mut value, &json!({"spec": {"volumes": list(&wanted)}}), &POD());
        assert_eq!(value["spec"]["volumes"], list(&merged), "{live:?} + {wanted:?}");
    }
}

#[test]
fn an_entry_twice_is_found() {
    let config = json!({"spec": {"volumes": [{"name": "a"}, {"name": "a"}]}});
    assert_eq!(
        twice(&config, &POD(), ""),
        Some((".spec.volumes".to_owned(), "[name=\"a\"]".to_owned()))
    );
    assert_eq!(twice(&json!({"spec": {"args": ["a", "a"]}}), &POD(), ""), None);
}

proptest::proptest! {
    /// Merging a configuration twice is the same as once, and then it holds every field that it names.
    #[test]
    fn merging_is_idempotent(live in names(), wanted in names()) {
        let list = |names: &[String]| -> Value {
            names.iter().map(|n| json!({"name": n, "image": format!("{n}:{}", names.len())})).collect()
        };
        let mut once = json!({"spec": {"containers": list(&live)}});
        let config = json!({"spec": {"containers": list(&wanted)}});
        merge(&mut once, &config, &POD());
        let mut again = once.clone();
        merge(&mut again, &config, &POD());
        proptest::prop_assert_eq!(&once, &again);
        let named = fields_of(&config, &POD());
        proptest::prop_assert_eq!(named.common(&fields_of(&once, &POD())), named);
    }
}

fn names() -> impl proptest::strategy::Strategy<Value = Vec<String>> {
    use proptest::strategy::Strategy as _;
    proptest::collection::btree_set("[a-f]", 0..5)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}
