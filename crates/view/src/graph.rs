//! The graph of steps as text, dot, Mermaid and JSON, without the edges that others already imply.

use std::collections::BTreeMap;
use std::fmt::Write;

use castle_model::{LayerName, StepDecl, StepId};
use serde_json::json;

use crate::style::{Style, Tone, clean};

/// The edges that matter: what each step needs, without what those needs need themselves.
#[must_use]
pub fn reduced(decls: &[StepDecl]) -> BTreeMap<&StepId, Vec<&StepId>> {
    let numbers: BTreeMap<&StepId, usize> =
        decls.iter().enumerate().map(|(number, decl)| (&decl.id, number)).collect();
    let needs: Vec<Vec<usize>> = decls
        .iter()
        .map(|decl| {
            let mut needs: Vec<usize> =
                decl.needs.iter().filter_map(|need| numbers.get(need).copied()).collect();
            needs.sort_unstable();
            needs.dedup();
            needs
        })
        .collect();
    let behind = all_behind(&needs);
    let implied = |needs: &[usize], need: usize| {
        needs.iter().any(|other| *other != need && has(&behind[*other], need))
    };
    let kept = |needs: &[usize]| -> Vec<&StepId> {
        needs.iter().filter(|need| !implied(needs, **need)).map(|need| &decls[*need].id).collect()
    };
    decls.iter().zip(&needs).map(|(decl, needs)| (&decl.id, kept(needs))).collect()
}

/// For each step a set of bits: everything that it needs, directly or not. Walks without recursion, so that
/// depth costs no stack; a cycle ends the walk.
fn all_behind(needs: &[Vec<usize>]) -> Vec<Vec<u64>> {
    let mut behind: Vec<Vec<u64>> = vec![Vec::new(); needs.len()];
    let mut entered = vec![false; needs.len()];
    for start in 0..needs.len() {
        let mut open = vec![(start, false)];
        while let Some((step, expanded)) = open.pop() {
            if expanded {
                let mut all = vec![0; needs.len().div_ceil(64)];
                for need in &needs[step] {
                    all[need / 64] |= 1 << (need % 64);
                    for (word, further) in all.iter_mut().zip(&behind[*need]) {
                        *word |= further;
                    }
                }
                behind[step] = all;
            } else if !entered[step] {
                entered[step] = true;
                open.push((step, true));
                open.extend(needs[step].iter().map(|need| (*need, false)));
            }
        }
    }
    behind
}

fn has(bits: &[u64], number: usize) -> bool {
    bits.get(number / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
}

/// Steps under their layers, each with what it comes after.
#[must_use]
pub fn text(decls: &[StepDecl], style: Style) -> String {
    let edges = reduced(decls);
    let mut text = String::new();
    for (layer, steps) in by_layer(decls) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&style.paint(Tone::Title, layer.as_str()));
        text.push('\n');
        for decl in steps {
            let title = format!("{} ({})", kind(&decl.id), decl.title);
            text.push_str(&style.hang("  ", &title, None));
            text.push('\n');
            let after: Vec<String> = edges[&decl.id]
                .iter()
                .map(|need| {
                    let same = need.layer() == layer.as_str();
                    if same { kind(need).to_owned() } else { need.to_string() }
                })
                .collect();
            if !after.is_empty() {
                text.push_str(&style.hang("    after ", &after.join(", "), Some(Tone::Quiet)));
                text.push('\n');
            }
        }
    }
    text
}

/// The graph for Graphviz.
#[must_use]
pub fn dot(decls: &[StepDecl]) -> String {
    let mut text = "digraph castle {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (layer, steps) in by_layer(decls) {
        let _ = writeln!(text, "  subgraph \"cluster_{layer}\" {{\n    label=\"{layer}\";");
        for decl in steps {
            let label = format!("{}\\n{}", kind(&decl.id), quoted(&decl.title));
            let _ = writeln!(text, "    \"{}\" [label=\"{label}\"];", decl.id);
        }
        text.push_str("  }\n");
    }
    for (id, needs) in reduced(decls) {
        for need in needs {
            let _ = writeln!(text, "  \"{need}\" -> \"{id}\";");
        }
    }
    text.push_str("}\n");
    text
}

/// The graph for Mermaid, which Markdown readers draw.
#[must_use]
pub fn mermaid(decls: &[StepDecl]) -> String {
    let numbers: BTreeMap<&StepId, usize> =
        decls.iter().enumerate().map(|(number, decl)| (&decl.id, number)).collect();
    let mut text = "flowchart LR\n".to_owned();
    for (layer, steps) in by_layer(decls) {
        let _ = writeln!(text, "  subgraph {layer}");
        for decl in steps {
            let label = format!("{}<br>{}", kind(&decl.id), escaped(&decl.title));
            let _ = writeln!(text, "    s{}[\"{label}\"]", numbers[&decl.id]);
        }
        text.push_str("  end\n");
    }
    for (id, needs) in reduced(decls) {
        for need in needs.iter().filter_map(|need| numbers.get(need)) {
            let _ = writeln!(text, "  s{need} --> s{}", numbers[id]);
        }
    }
    text
}

/// The graph as JSON: every declared step, with `needs` reduced.
#[must_use]
pub fn json(decls: &[StepDecl]) -> String {
    let edges = reduced(decls);
    let steps: Vec<serde_json::Value> = decls
        .iter()
        .map(|decl| {
            json!({
                "id": decl.id,
                "layer": decl.layer,
                "title": decl.title,
                "needs": edges[&decl.id],
                "lane": decl.lane,
                "weight": decl.weight,
            })
        })
        .collect();
    json!({ "v": 1, "steps": steps }).to_string()
}

/// The layers in the order of their first step, each with its steps.
fn by_layer(decls: &[StepDecl]) -> Vec<(&LayerName, Vec<&StepDecl>)> {
    let mut layers: Vec<(&LayerName, Vec<&StepDecl>)> = Vec::new();
    for decl in decls {
        match layers.iter_mut().find(|(layer, _)| *layer == &decl.layer) {
            Some((_, steps)) => steps.push(decl),
            None => layers.push((&decl.layer, vec![decl])),
        }
    }
    layers
}

fn kind(id: &StepId) -> &str {
    id.as_str().split_once('/').map_or(id.as_str(), |(_, rest)| rest)
}

fn quoted(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}

fn escaped(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::decls;

    #[test]
    fn implied_edges_are_left_out() {
        let decls = decls();
        let edges = reduced(&decls);
        let after = |kind: &str| -> Vec<&str> {
            let found = edges.iter().find(|(id, _)| id.as_str() == kind).unwrap();
            found.1.iter().map(|id| id.as_str()).collect()
        };
        assert_eq!(after("platform/vm/cp-01"), ["platform/image"]);
        assert_eq!(after("platform/vip"), ["platform/vm/cp-01", "platform/vm/w-01"]);
        assert!(after("secrets/read").is_empty());
    }

    #[test]
    fn a_deep_graph_needs_no_stack() {
        let id = |n: usize| StepId::of("platform", "x", &n.to_string());
        let decls: Vec<StepDecl> = (0..3000)
            .map(|n: usize| {
                let needs = n.checked_sub(1).into_iter().chain(n.checked_sub(2)).map(id);
                StepDecl::new(id(n), "x", "vm").needs(needs)
            })
            .collect();
        assert_eq!(reduced(&decls).values().map(Vec::len).sum::<usize>(), 2999);
    }

    #[test]
    fn as_text() {
        insta::assert_snapshot!(text(&decls(), Style::default()), @"
        secrets
          read (secrets of blue in Infisical)

        platform
          image (Talos 1.13.9 image on pve:local)
            after secrets/read
          vm/cp-01 (VM cp-01 (421) on pve)
            after image
          vm/w-01 (VM w-01 (431) on pve)
            after image
          vip (API server at 192.168.1.210)
            after vm/cp-01, vm/w-01

        gitops
          flux (Flux and its controllers)
            after platform/vip
        ");
    }

    #[test]
    fn as_dot() {
        insta::assert_snapshot!(dot(&decls()), @r#"
        digraph castle {
          rankdir=LR;
          node [shape=box];
          subgraph "cluster_secrets" {
            label="secrets";
            "secrets/read" [label="read\nsecrets of blue in Infisical"];
          }
          subgraph "cluster_platform" {
            label="platform";
            "platform/image" [label="image\nTalos 1.13.9 image on pve:local"];
            "platform/vm/cp-01" [label="vm/cp-01\nVM cp-01 (421) on pve"];
            "platform/vm/w-01" [label="vm/w-01\nVM w-01 (431) on pve"];
            "platform/vip" [label="vip\nAPI server at 192.168.1.210"];
          }
          subgraph "cluster_gitops" {
            label="gitops";
            "gitops/flux" [label="flux\nFlux and its controllers"];
          }
          "platform/vip" -> "gitops/flux";
          "secrets/read" -> "platform/image";
          "platform/vm/cp-01" -> "platform/vip";
          "platform/vm/w-01" -> "platform/vip";
          "platform/image" -> "platform/vm/cp-01";
          "platform/image" -> "platform/vm/w-01";
        }
        "#);
    }

    #[test]
    fn as_mermaid() {
        insta::assert_snapshot!(mermaid(&decls()), @r#"
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
          s4 --> s5
          s0 --> s1
          s2 --> s4
          s3 --> s4
          s1 --> s2
          s1 --> s3
        "#);
    }

    #[test]
    fn as_json() {
        let value: serde_json::Value = serde_json::from_str(&json(&decls()[..3])).unwrap();
        insta::assert_json_snapshot!(value["steps"][2], @r#"
        {
          "id": "platform/vm/cp-01",
          "layer": "platform",
          "title": "VM cp-01 (421) on pve",
          "needs": [
            "platform/image"
          ],
          "lane": {
            "name": "storage local-lvm",
            "width": 2
          },
          "weight": 1000
        }
        "#);
    }
}
