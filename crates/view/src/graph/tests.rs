//! The faces of the example's graph.

use super::*;
use crate::example::decls;

fn sketch(expand: bool) -> Sketch {
    let decls = decls();
    Sketch::of(&"blue".parse().unwrap(), &decls, &Times::usual(&decls), expand)
}

#[test]
fn as_text() {
    insta::assert_snapshot!(text(&decls(), &Times::usual(&decls()), Style::default()), @"
    secrets
      read (secrets of blue in Infisical)
        proves every required key is read from its source

    platform
      image (Talos 1.13.9 image on pve:local)
        proves the Talos image is on the image storage
        after secrets/read
      vm/cp-01 (VM cp-01 (421) on pve)
        proves the VM is running
        after image
      vm/w-01 (VM w-01 (431) on pve)
        proves the VM is running
        after image
      vip (API server at 192.168.1.210)
        proves the API server answers through the VIP
        after vm/cp-01, vm/w-01

    gitops
      flux (Flux and its controllers)
        proves Flux' controllers run
        after platform/vip

    critical path (5.0 s by the usual times)
      secrets/read, platform/image, platform/vm/cp-01, platform/vip, gitops/flux
    ");
}

#[test]
fn as_dot() {
    insta::assert_snapshot!(dot(&sketch(true)), @r#"
    digraph castle {
      label="castle blue; critical path: 5.0 s by the usual times";
      rankdir=LR;
      node [shape=box];
      subgraph "cluster_secrets" {
        label="secrets";
        "secrets/read" [label="read\nsecrets of blue in Infisical", style="bold"];
      }
      subgraph "cluster_platform" {
        label="platform";
        "platform/image" [label="image\nTalos 1.13.9 image on pve:local", style="bold"];
        "platform/vm/cp-01" [label="vm/cp-01\nVM cp-01 (421) on pve", style="bold"];
        "platform/vm/w-01" [label="vm/w-01\nVM w-01 (431) on pve"];
        "platform/vip" [label="vip\nAPI server at 192.168.1.210", style="bold"];
      }
      subgraph "cluster_gitops" {
        label="gitops";
        "gitops/flux" [label="flux\nFlux and its controllers", style="bold"];
      }
      "secrets/read" -> "platform/image" [label="every required key is read\nfrom its source", style=bold];
      "platform/image" -> "platform/vm/cp-01" [label="the Talos image is on the\nimage storage", style=bold];
      "platform/image" -> "platform/vm/w-01" [label="the Talos image is on the\nimage storage"];
      "platform/vm/cp-01" -> "platform/vip" [label="the VM is running", style=bold];
      "platform/vm/w-01" -> "platform/vip" [label="the VM is running"];
      "platform/vip" -> "gitops/flux" [label="the API server answers\nthrough the VIP", style=bold];
    }
    "#);
}

#[test]
fn as_mermaid() {
    insta::assert_snapshot!(mermaid(&sketch(true)), @r#"
    ---
    title: "castle blue; critical path: 5.0 s by the usual times"
    ---
    flowchart LR
      subgraph secrets
        s0["read<br>secrets of blue in Infisical"]
      end
      subgraph platform
        s1["image<br>Talos 1.13.9 image on pve:local"]
        s2["vm/cp-01<br>VM cp-01 (421) on pve"]
        s3["vm/w-01<br>VM w-01 (431) on pve"]
        s4["vip<br>API server at 192.168.1.210"]
      end
      subgraph gitops
        s5["flux<br>Flux and its controllers"]
      end
      s0 ==>|"every required key is read from its source"| s1
      s1 ==>|"the Talos image is on the image storage"| s2
      s1 -->|"the Talos image is on the image storage"| s3
      s2 ==>|"the VM is running"| s4
      s3 -->|"the VM is running"| s4
      s4 ==>|"the API server answers through the VIP"| s5
      classDef critical stroke-width:3px
      class s0,s1,s2,s4,s5 critical
    "#);
}

#[test]
fn as_json() {
    let decls = &decls()[..3];
    insta::assert_json_snapshot!(json(decls, &Times::usual(decls)), @r#"
    {
      "layers": [
        {
          "layer": "secrets",
          "steps": [
            "secrets/read"
          ]
        },
        {
          "layer": "platform",
          "steps": [
            "platform/image",
            "platform/vm/cp-01"
          ]
        }
      ],
      "steps": [
        {
          "id": "secrets/read",
          "layer": "secrets",
          "title": "secrets of blue in Infisical",
          "needs": [],
          "proves": "every required key is read from its source",
          "takes_ms": 1000,
          "lane": null,
          "weight": 1000
        },
        {
          "id": "platform/image",
          "layer": "platform",
          "title": "Talos 1.13.9 image on pve:local",
          "needs": [
            "secrets/read"
          ],
          "proves": "the Talos image is on the image storage",
          "takes_ms": 1000,
          "lane": null,
          "weight": 1000
        },
        {
          "id": "platform/vm/cp-01",
          "layer": "platform",
          "title": "VM cp-01 (421) on pve",
          "needs": [
            "platform/image"
          ],
          "proves": "the VM is running",
          "takes_ms": 1000,
          "lane": {
            "name": "storage local-lvm",
            "width": 2
          },
          "weight": 1000
        }
      ],
      "critical": {
        "run": null,
        "steps": [
          "secrets/read",
          "platform/image",
          "platform/vm/cp-01"
        ],
        "takes_ms": 3000
      }
    }
    "#);
}

#[test]
fn machines_that_are_alike_are_one_box() {
    let decls = decls();
    let folded = sketch(false);
    let names: Vec<&str> = folded.boxes.iter().map(|drawn| drawn.name.as_str()).collect();
    assert_eq!(names, ["read", "image", "vm × 2", "vip", "flux"]);
    let alone = Sketch::of(&"blue".parse().unwrap(), &decls[..3], &Times::usual(&decls), false);
    assert_eq!(alone.boxes[2].name, "vm/cp-01");
}

#[test]
fn the_times_on_the_critical_path_add_up_to_its_own() {
    let mut decls = decls();
    let machine = |name: &str| StepId::of("platform", "vm", name);
    let answers = |name: &str| StepId::of("platform", "boot", name);
    for name in ["cp-01", "w-01"] {
        let decl =
            StepDecl::new(answers(name), "it answers", "boot", "it is done").needs([machine(name)]);
        decls.push(decl);
    }
    let mut times = Times::usual(&decls);
    // The machine that took longest to make was not the one that was waited for in the end.
    for (id, took) in [
        (machine("cp-01"), 5_100),
        (machine("w-01"), 4_900),
        (answers("cp-01"), 14_000),
        (answers("w-01"), 15_000),
    ] {
        times.steps.insert(id, took);
    }
    let sketch = Sketch::of(&"blue".parse().unwrap(), &decls, &times, false);
    let on_path = sketch.boxes.iter().filter(|drawn| drawn.critical);
    let told: Vec<(&str, u64)> = on_path.map(|drawn| (drawn.name.as_str(), drawn.takes)).collect();
    assert_eq!(told, [("read", 1000), ("image", 1000), ("vm × 2", 4_900), ("boot × 2", 15_000)]);
    assert!(sketch.critical.starts_with("21.9 s"), "{}", sketch.critical);
}

#[test]
fn the_critical_path_is_that_of_the_times_that_are_given() {
    let decls = decls();
    let mut times = Times::usual(&decls);
    let critical = |times: &Times| -> Vec<String> {
        let path = json(&decls, times)["critical"]["steps"].clone();
        serde_json::from_value(path).unwrap()
    };
    times.steps.insert(StepId::of("platform", "vm", "cp-01"), 9_000);
    assert_eq!(critical(&times)[2], "platform/vm/cp-01");
    times.steps.insert(StepId::of("platform", "vm", "w-01"), 9_001);
    assert_eq!(critical(&times)[2], "platform/vm/w-01");
}
