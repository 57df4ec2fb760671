//! Trees as real servers write them, and the laws that every tree keeps.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn words(paths: &[Path<'_>]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// A Deployment as applied, and what an API server 1.36 wrote as the applier's fields.
fn deployment() -> (Value, Value) {
    let wanted = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "b", "labels": {"app": "a"}, "creationTimestamp": null},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {
                    "containers": [{
                        "name": "main", "image": "x:1", "args": ["--a", "--b"], "env": [],
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                        "volumeMounts": [{"mountPath": "/d", "name": "d"}],
                    }],
                    "volumes": [{"name": "d", "emptyDir": {}}],
                },
            },
        },
        "status": {},
    });
    let tree = json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:containers": {"k:{\"name\":\"main\"}": {
                        ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                        "f:ports": {
                            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                            "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
                        },
                        "f:volumeMounts": {"k:{\"mountPath\":\"/d\"}": {".": {}, "f:mountPath": {}, "f:name": {}}},
                    }},
                    "f:volumes": {"k:{\"name\":\"d\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
                },
            },
        },
    });
    (wanted, tree)
}

#[test]
fn what_the_server_wrote_for_us_covers_what_we_applied() {
    let (wanted, tree) = deployment();
    assert_eq!(words(&lost(&wanted, &[&tree])), Vec::<String>::new());
    let all = [
        ".metadata.labels.app",
        ".spec.replicas",
        ".spec.selector.matchLabels.app",
        ".spec.template.metadata.labels.app",
        ".spec.template.spec.containers",
        ".spec.template.spec.volumes",
    ];
    let nothing = json!({});
    assert_eq!(words(&lost(&wanted, &[&nothing])), all);
    assert_eq!(words(&lost(&wanted, &[])), all);
}

#[test]
fn what_somebody_took_over_is_named() {
    let (wanted, mut tree) = deployment();
    let edited = json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {
        "k:{\"name\":\"main\"}": {"f:image": {}},
        "k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}, "f:image": {}},
    }}}}});
    tree["f:spec"].as_object_mut().unwrap().remove("f:replicas");
    let containers = &mut tree["f:spec"]["f:template"]["f:spec"]["f:containers"];
    containers["k:{\"name\":\"main\"}"].as_object_mut().unwrap().remove("f:image");
    let paths = lost(&wanted, &[&tree]);
    let both = [".spec.replicas", ".spec.template.spec.containers[name=\"main\"].image"];
    assert_eq!(words(&paths), both);
    assert!(paths.iter().all(|path| holds(&edited, path)));
    assert!(!paths.iter().any(|path| holds(&tree, path)));
    assert_eq!(words(&held(&wanted, &edited)), both, "what only they have is not ours to tell");
    // Two entries of ours, as after a change of the kind's version, count together.
    assert_eq!(lost(&wanted, &[&tree, &edited]), []);
}

#[test]
fn sets_and_missing_entries() {
    let wanted = json!({"metadata": {"name": "a", "finalizers": ["x/a", "x/b"]}, "spec": {"ports": [{"port": 1}, {"port": 2}]}});
    let tree = json!({
        "f:metadata": {"f:finalizers": {".": {}, "v:\"x/a\"": {}}},
        "f:spec": {"f:ports": {"k:{\"port\":2,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}},
    });
    assert_eq!(
        words(&lost(&wanted, &[&tree])),
        [".metadata.finalizers[=\"x/b\"]", ".spec.ports[port=1]"]
    );
}

#[test]
fn a_part_can_be_left_out() {
    let wanted =
        json!({"webhooks": [{"name": "a", "clientConfig": {"caBundle": "Cg==", "url": "u"}}]});
    let tree = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:clientConfig": {"f:url": {}}}}});
    let paths = lost(&wanted, &[&tree]);
    assert_eq!(words(&paths), [".webhooks[name=\"a\"].clientConfig.caBundle"]);
    assert_eq!(paths[0].last(), "caBundle");
    let mut rest = wanted.clone();
    paths[0].remove_from(&mut rest);
    assert_eq!(rest, json!({"webhooks": [{"name": "a", "clientConfig": {"url": "u"}}]}));
    assert_eq!(lost(&rest, &[&tree]), []);
}

#[test]
fn trees_that_make_no_sense_hold_nothing() {
    let wanted = json!({"spec": {"list": [{"name": "a"}], "x": 1}});
    for tree in [
        json!({"f:spec": {"f:list": {"k:{broken": {}, "k:[]": {}, "v:": {}, "i:x": {}, "q": {}}, "f:x": {}}}),
        json!({"f:spec": {"f:list": {"k:{}": {}}, "f:x": 7}}),
    ] {
        assert_eq!(words(&lost(&wanted, &[&tree])), [".spec.list[0]"], "{tree}");
    }
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"f:spec": deep});
    }
    assert_eq!(words(&held(&wanted, &deep)), Vec::<String>::new());
}

/// The tree that a server writes for an object whose lists have the key `name`.
fn tree_of(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (format!("f:{name}"), tree_of(value)))
            .collect::<Map<String, Value>>()
            .into(),
        Value::Array(list) => list
            .iter()
            .map(|entry| {
                let mut below = tree_of(entry);
                below["."] = json!({});
                (format!("k:{}", json!({"name": entry["name"]})), below)
            })
            .collect::<Map<String, Value>>()
            .into(),
        _ => json!({}),
    }
}

/// Values of objects whose lists have entries with different names.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i32>().prop_map(Value::from), "[a-z]{0,3}".prop_map(Value::from)];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-z]{1,3}", inner.clone(), 1..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            prop::collection::btree_map("[A-Z]{1,2}", inner, 1..3).prop_map(|entries| {
                entries
                    .into_iter()
                    .map(|(name, value)| json!({"name": name, "value": value}))
                    .collect()
            }),
        ]
    })
}

/// Takes the leaf of a tree that is this many leaves away; says whether there was one.
fn pluck(tree: &mut Value, nth: &mut usize) -> bool {
    let Some(map) = tree.as_object_mut() else { return false };
    let names: Vec<String> = map.keys().filter(|name| *name != ".").cloned().collect();
    for name in names {
        if is_whole(&map[&name]) {
            if *nth == 0 {
                map.remove(&name);
                return true;
            }
            *nth -= 1;
        } else if pluck(&mut map[&name], nth) {
            // Servers write no empty nodes for what is only on the way.
            if is_whole(&map[&name]) {
                map.remove(&name);
            }
            return true;
        }
    }
    false
}

proptest! {
    #[test]
    fn a_tree_of_all_fields_covers_its_object_and_one_without_a_leaf_lacks_it(
        spec in values(),
        nth in 0_usize..8,
    ) {
        let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"all": spec, "more": 1}});
        let mut tree = tree_of(&wanted);
        prop_assert_eq!(lost(&wanted, &[&tree]), []);
        let whole = tree.clone();
        prop_assert!(!held(&wanted, &whole).is_empty());
        let mut nth = nth;
        if pluck(&mut tree["f:spec"], &mut nth) {
            let missing = lost(&wanted, &[&tree]);
            prop_assert!(!missing.is_empty());
            for path in &missing {
                prop_assert!(holds(&whole, path) && !holds(&tree, path), "{}", path);
            }
            prop_assert_eq!(lost(&wanted, &[&tree, &whole]), []);
        }
    }
}
