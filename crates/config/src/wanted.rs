//! Says which other files a castle file names, so that a caller can load them before it is read.

use std::collections::BTreeSet;

use hcl_edit::expr::{Expression, FuncCall};
use hcl_edit::structure::Body;
use hcl_edit::visit::{Visit, visit_func_call};

use crate::finding::Findings;
use crate::function::{inside, literal_path};
use crate::layers::is_manifest;
use crate::syntax;

/// The relative paths that `file("…")`, patches and the layers' `manifests` name, sorted; a folder ends with `/` and means
/// every manifest below it. Paths that lead out of the project folder are left out: [`crate::read`] refuses them.
#[must_use]
pub fn wanted_files(text: &[u8]) -> Vec<String> {
    let mut findings = Findings::default();
    let Some(text) = syntax::readable(text, &mut findings) else { return Vec::new() };
    let Some(tree) = syntax::parse(text, &mut findings) else { return Vec::new() };
    let mut wanted = Wanted::default();
    wanted.visit_body(&tree.body);
    for castle in tree.body.get_blocks("castle") {
        wanted.manifests(&castle.body);
        wanted.patches(&castle.body);
    }
    wanted.0.into_iter().collect()
}

#[derive(Default)]
struct Wanted(BTreeSet<String>);

impl Wanted {
    fn manifests(&mut self, castle: &Body) {
        for layer in castle.get_blocks("layer") {
            let path = layer.body.get_attribute("manifests").map(|a| &a.value);
            if let Some(Expression::String(path)) = path
                && let Ok(path) = inside(path.value())
            {
                self.0.insert(if is_manifest(&path) { path } else { path + "/" });
            }
        }
    }

    fn patches(&mut self, castle: &Body) {
        let patched = ["machine", "engine", "networking", "storage", "gitops"];
        let blocks = patched.into_iter().flat_map(|keyword| castle.get_blocks(keyword));
        for patch in blocks.flat_map(|block| block.body.get_blocks("patch")) {
            if let Some(Expression::String(path)) =
                patch.body.get_attribute("file").map(|a| &a.value)
                && let Ok(path) = inside(path.value())
            {
                self.0.insert(path);
            }
        }
    }
}

impl Visit for Wanted {
    fn visit_func_call(&mut self, node: &FuncCall) {
        if node.name.name.as_str() == "file"
            && let Some((path, _)) = literal_path(node)
            && let Ok(path) = inside(path)
        {
            self.0.insert(path);
        }
        visit_func_call(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_found_wherever_they_stand() {
        let text = r#"castle "x" {
          platform "proxmox" { ca = file("./certs/pve.pem") }
          gitops "flux" {
            patch { file = "patches/flux.yaml" }
            vars = { a = "${file("a.txt")}", b = [file("../b"), file("/etc/passwd"), file("c" == "d" ? "e" : "f")] }
          }
          machine {
            patch "a" { file = "./patches/a.yaml" }
            patch "b" { file = "../b.yaml" }
          }
          layer "one" { manifests = "./metrics" }
          layer "two" { manifests = "two.yaml" }
          layer "three" { manifests = "../elsewhere" }
          memory = 8GiB
        }"#;
        assert_eq!(
            wanted_files(text.as_bytes()),
            [
                "a.txt",
                "certs/pve.pem",
                "metrics/",
                "patches/a.yaml",
                "patches/flux.yaml",
                "two.yaml"
            ]
        );
    }

    #[test]
    fn nonsense_wants_nothing() {
        assert_eq!(wanted_files(b"\xff{{{"), Vec::<String>::new());
        assert_eq!(wanted_files("[".repeat(1 << 21).as_bytes()), Vec::<String>::new());
    }
}
