//! Repositories as people write them, and what is found in each.

use super::*;

fn unit(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: {KUSTOMIZE}\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\n\
         spec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}---\n"
    )
}

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n---\n")
}

fn read(files: &[(&str, &str)]) -> Contents {
    Contents::read(&Tree::of("c0ffee", files.iter().copied()), "clusters/blue")
}

fn names(contents: &Contents) -> Vec<&str> {
    contents.objects.iter().map(|placed| placed.object.name()).collect()
}

fn warnings(contents: &Contents) -> Vec<String> {
    contents.warnings.iter().map(|w| format!("{}: {}", w.place, w.why)).collect()
}

#[test]
fn kustomizations_lead_to_folders_and_folders_to_files() {
    let contents = read(&[
        ("clusters/blue/apps.yaml", &unit("apps", "./apps", "")),
        ("clusters/green/other.yaml", &map("other-cluster")),
        ("apps/a.yaml", &[map("a"), map("b")].concat()),
        ("apps/inner/kustomization.yaml", "resources:\n  - c.yaml\n  - ../../shared\n"),
        ("apps/inner/c.yaml", &map("c")),
        ("apps/inner/unlisted.yaml", &map("unlisted")),
        ("apps/README.md", "# apps"),
        ("shared/d.yml", &map("d")),
    ]);
    assert_eq!(names(&contents), ["apps", "a", "b", "c", "d"]);
    assert_eq!(warnings(&contents), [""; 0]);
    assert!(!contents.partial);
}

#[test]
fn what_flux_will_stumble_over_is_told_with_its_place() {
    let contents = read(&[
        (
            "clusters/blue/all.yaml",
            &[
                unit("lost", "./nowhere", ""),
                unit("file", "./apps/a.yaml", ""),
                unit("out", "../../etc", ""),
                unit("waits", "./apps", "  dependsOn: [{name: ghost}]\n"),
                unit("one", "./apps", "  dependsOn: [{name: two}]\n"),
                unit("two", "./apps", "  dependsOn: [{name: one}, {name: waits}]\n"),
            ]
            .concat(),
        ),
        ("clusters/blue/broken.yaml", "kind: [\n"),
        ("apps/kustomization.yaml", "resources: [a.yaml, missing.yaml]\n"),
        ("apps/a.yaml", &map("a")),
    ]);
    assert_eq!(
        warnings(&contents),
        [
            "clusters/blue/broken.yaml:2:1: did not find expected node content, while parsing a flow node",
            "clusters/blue/all.yaml: Kustomization lost has the path `./nowhere`, which is not there",
            "clusters/blue/all.yaml: Kustomization file has the path `./apps/a.yaml`, which is not a folder",
            "clusters/blue/all.yaml: Kustomization out has the path `../../etc`, which leads out of the repository",
            "apps/kustomization.yaml: it names `missing.yaml`, which is not in the repository",
            "clusters/blue/all.yaml: Kustomization waits depends on flux-system/ghost, which the repository does not declare",
            "clusters/blue/all.yaml: Kustomizations wait for each other in a circle: one, two",
        ]
    );
    assert!(contents.partial);
    assert_eq!(names(&contents).last(), Some(&"a"));
}

#[test]
fn what_lies_elsewhere_is_not_known() {
    let foreign = unit("charts", "./x", "").replace("name: flux-system}\n", "name: charts}\n");
    let contents = read(&[("clusters/blue/charts.yaml", &foreign)]);
    assert!(contents.partial);
    let list = "resources:\n  - https://github.com/metallb/metallb/config/native?ref=v0.15.3\n";
    let contents = read(&[("clusters/blue/kustomization.yaml", list)]);
    assert!(contents.partial);
    assert_eq!(contents.remote.len(), 1);
}

#[test]
fn folders_that_name_each_other_end() {
    let contents = read(&[
        ("clusters/blue/kustomization.yaml", "resources: [../green]\n"),
        ("clusters/green/kustomization.yaml", "resources: [../blue]\n"),
    ]);
    assert_eq!(warnings(&contents), ["clusters/blue: folders name each other in a circle"]);
}

#[test]
fn circles_are_found_once() {
    let edges = |list: &[(u8, &[u8])]| {
        circles(&list.iter().map(|(from, to)| (*from, to.to_vec())).collect())
    };
    assert_eq!(edges(&[(1, &[2]), (2, &[3]), (3, &[])]), Vec::<Vec<u8>>::new());
    assert_eq!(edges(&[(1, &[1])]), [vec![1]]);
    assert_eq!(
        edges(&[(1, &[2]), (2, &[3]), (3, &[2]), (4, &[5]), (5, &[4])]),
        [vec![2, 3], vec![4, 5]]
    );
}
