//! What a person reads: the whole rendered text of a good dozen of findings.

use super::{changed, codes, read, render, shown, sources};
use crate::{Sources, to_json_lines};

/// Replaces one piece of the example and gives the rendered text.
fn after(from: &str, to: &str) -> String {
    shown(&changed(&[(from, to)]))
}

#[test]
fn unknown_key() {
    insta::assert_snapshot!(after("gateway     =", "gatway      ="), @r#"
    error[C0102]: there is no key `gatway` here
      --> castle.hcl:36:5
       |
    36 |     gatway      = "192.168.1.1"
       |     ^^^^^^ unknown in `network`
       |
       = hint: did you mean `gateway`?

    castle.hcl: 1 error
    "#);
}

#[test]
fn key_of_another_block() {
    insta::assert_snapshot!(after("node          = \"pve\"", "node = \"pve\"\n    vip = \"192.168.1.9\""), @r#"
    error[C0102]: there is no key `vip` here
      --> castle.hcl:27:5
       |
    27 |     vip = "192.168.1.9"
       |     ^^^ unknown in `platform`
       |
       = hint: `vip` belongs into `network`

    castle.hcl: 1 error
    "#);
}

#[test]
fn unknown_platform() {
    insta::assert_snapshot!(after("platform \"proxmox\"", "platform \"vsphere\""), @r#"
    error[C0108]: `platform` of an unknown kind
      --> castle.hcl:22:12
       |
    22 |   platform "vsphere" {
       |            ^^^^^^^^^ not known to this version
       |
       = why: this version knows `proxmox` and `machines`
       = hint: write platform "proxmox"

    castle.hcl: 1 error
    "#);
}

#[test]
fn an_empty_block_of_an_unknown_kind_lacks_nothing() {
    let start = crate::EXAMPLE.find("platform \"proxmox\" {").unwrap();
    let end = start + crate::EXAMPLE[start..].find("\n  }").unwrap();
    let body = &crate::EXAMPLE[start..end];
    let text = after(body, "platform \"vsphere\" {\n    datacenter = \"one\"");
    assert!(text.ends_with("castle.hcl: 1 error\n") && text.contains("C0108"), "{text}");
}

#[test]
fn a_deadline_is_called_by_its_name() {
    insta::assert_snapshot!(after("vm = \"5m\"", "vm = \"5 minutes\""), @r#"
    error[C0202]: `vm` takes a length of time in h, m and s
      --> castle.hcl:81:10
       |
    81 |     vm = "5 minutes"
       |          ^^^^^^^^^^^ not such a value
       |
       = why: `5 minutes` is not a length of time (write it as 90s, 5m or 1h30m)
       = hint: write it like vm = "5m"

    castle.hcl: 1 error
    "#);
}

#[test]
fn no_worker() {
    insta::assert_snapshot!(after("count      = 2", "count      = 0"), @r#"
    error[C0509]: a castle without a worker
      --> castle.hcl:55:18
       |
    55 |     count      = 0
       |                  ^ none
       |
       = why: control planes take no workloads: without a worker no layer could ever start
       = hint: set count = 1 or more

    castle.hcl: 1 error
    "#);
}

#[test]
fn the_cure_for_a_worker_is_that_of_a_worker() {
    let text = after("    first_ip   = \"192.168.1.214\"\n", "");
    assert!(text.contains("add it, such as first_ip = \"192.168.1.214\""), "{text}");
    let text = after("first_vmid = 431", "first_vmid = \"four\"");
    assert!(!text.contains("421 "), "{text}");
}

#[test]
fn a_file_that_can_not_be_used() {
    insta::assert_snapshot!(after("node          = \"pve\"", "node          = file(\"node.txt\")"), @r#"
    error[C0208]: `node.txt` can not be used
      --> castle.hcl:26:26
       |
    26 |     node          = file("node.txt")
       |                          ^^^^^^^^^^ read here
       |
       = why: it is not there, is not a regular file, leads out of the project folder or is larger than 1 MiB
       = hint: check the path: it is relative to the folder of the castle file

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_block_left_open() {
    let text = after("  }\n\n  # cp-01 to", "\n\n  # cp-01 to");
    insta::assert_snapshot!(text, @r#"
    error[C0005]: the block `network` is not closed
      --> castle.hcl:34:3
       |
    34 |   network {
       |   ^^^^^^^^^ opened here
       |
       = why: the file ends before it is closed
       = hint: close it where it ends; if it looks closed, a bracket further down is missing

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_misspelt_secret() {
    insta::assert_snapshot!(
        after("token_secret  = secret(\"PROXMOX_TOKEN_SECRET\")", "token_secrt = \"hunter2-8374\""), @r#"
    error[C0102]: there is no key `token_secrt` here
      --> castle.hcl:25:5
       |
    25 |     token_secrt = "************"
       |     ^^^^^^^^^^^ unknown in `platform`
       |
       = hint: did you mean `token_secret`?

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_password_in_the_vars() {
    insta::assert_snapshot!(
        after("domain       = \"tazlab.net\"", "db_password = \"hunter2\""), @r#"
    error[C0305]: `db_password` sounds like a secret, and here stands a plain value
      --> castle.hcl:75:21
       |
    75 |       db_password = "*******"
       |                     ^^^^^^^^^ not shown
       |
       = why: a castle file is kept in Git, where a secret stays for good
       = why: `vars` become a ConfigMap, which many may read
       = hint: put it into the secret source and bring it into the cluster by an ExternalSecret; if it is no secret, give
               it another name

    castle.hcl: 1 error
    "#);
}

#[test]
fn even_control_planes() {
    insta::assert_snapshot!(after("count      = 3", "count      = 4").split("\n\n").next().unwrap(), @r#"
    error[C0501]: 4 control planes survive no more failures than 3 do
      --> castle.hcl:45:18
       |
    45 |     count      = 4
       |                  ^ an even number
       |
       = why: etcd goes on while floor(n/2)+1 of n members live, so an even member adds risk and no safety
       = why: control planes  must live  may fail
       = why:              1          1         0
       = why:              2          2         0
       = why:              3          2         1
       = why:              4          3         1
       = why:              5          3         2
       = why:              6          4         2
       = why:              7          4         3
       = hint: set count = 3 or 5
    "#);
}

#[test]
fn one_control_plane() {
    insta::assert_snapshot!(after("count      = 3", "count      = 1"), @r#"
    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:45:18
       |
    45 |     count      = 1
       |                  ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    castle.hcl: 1 warning
    "#);
}

#[test]
fn addresses_counted_as_addresses() {
    // Gluing digits, as the original did, would have made .1510 of the fifth.
    insta::assert_snapshot!(after("first_ip   = \"192.168.1.214\"", "first_ip   = \"192.168.1.254\""), @r#"
    error[C0403]: worker-02 (192.168.1.255) is the broadcast address
      --> castle.hcl:56:18
       |
    35 |     subnet      = "192.168.1.0/24"
       |                   ---------------- the subnet
    ...
    56 |     first_ip   = "192.168.1.254"
       |                  ^^^^^^^^^^^^^^^ counted from here
       |
       = hint: choose another address of the subnet

    castle.hcl: 1 error
    "#);
}

#[test]
fn pool_over_a_machine() {
    insta::assert_snapshot!(after("192.168.1.230-192.168.1.245", "192.168.1.215-192.168.1.245"), @r#"
    error[C0407]: the pool 192.168.1.215-192.168.1.245 holds worker-02 (192.168.1.215)
      --> castle.hcl:40:19
       |
    40 |     pool        = "192.168.1.215-192.168.1.245" # for services of type LoadBalancer
       |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the pool
    ...
    56 |     first_ip   = "192.168.1.214"
       |                  --------------- worker-02 is given here
       |
       = why: MetalLB would give this address to a service, and two machines would answer for it
       = hint: choose a pool of addresses that nobody else has

    castle.hcl: 1 error
    "#);
}

#[test]
fn vip_is_a_machine() {
    insta::assert_snapshot!(after("vip         = \"192.168.1.210\"", "vip         = \"192.168.1.212\""), @r#"
    error[C0406]: cp-02 would get 192.168.1.212, the VIP
      --> castle.hcl:46:18
       |
    37 |     vip         = "192.168.1.212" # shared by the control planes; kubectl speaks to this one
       |                   --------------- the VIP
    ...
    46 |     first_ip   = "192.168.1.211"
       |                  ^^^^^^^^^^^^^^^ counted from here
       |
       = why: the control planes pass the VIP among themselves; a machine needs an address of its own
       = hint: choose a free address for the VIP, or begin the machines elsewhere

    castle.hcl: 1 error
    "#);
}

#[test]
fn versions_that_do_not_fit() {
    insta::assert_snapshot!(after("kubernetes = \"1.36.3\"", "kubernetes = \"1.37.0\""), @r#"
    error[C0602]: Talos 1.13.9 does not run Kubernetes 1.37.0
     --> castle.hcl:8:16
      |
    7 |   talos      = "1.13.9"
      |                -------- the version of Talos
    8 |   kubernetes = "1.37.0"
      |                ^^^^^^^^ the version of Kubernetes
      |
      = why: Talos 1.13 runs Kubernetes 1.31 to 1.36
      = hint: set kubernetes = "1.36.3", or talos = "1.14.1"

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_plain_secret() {
    insta::assert_snapshot!(
        after("token = secret(\"GITHUB_TOKEN\")", "token = \"hunter2-hunter2\" # old"), @r#"
    error[C0302]: `token` is a secret, and here stands a plain value
      --> castle.hcl:73:13
       |
    73 |     token = "***************" * ***
       |             ^^^^^^^^^^^^^^^^^ not shown
       |
       = why: a castle file is kept in Git, where a secret stays for good
       = hint: put it into the secret source and write token = secret("GITHUB_TOKEN")

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_secret_in_a_sentence() {
    insta::assert_snapshot!(
        after("domain       = \"tazlab.net\"", "domain       = \"x-${secret(\"DOMAIN\")}\""), @r#"
    error[C0301]: `secret` may not stand here
      --> castle.hcl:75:27
       |
    75 |       domain       = "x-${secret("DOMAIN")}"
       |                           ^^^^^^^^^^^^^^^^ not the whole value of an attribute of type secret
       |
       = why: a secret stays a reference until the moment of use, so nothing can be computed with it
       = why: it would also appear in plans, journals and logs as the plain value of this setting
       = hint: give the whole value as secret("KEY") to an attribute of type secret, or a plain value here

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_file_outside() {
    insta::assert_snapshot!(after("node          = \"pve\"", "node          = file(\"../node\")"), @r#"
    error[C0209]: `../node` is outside of the project folder
      --> castle.hcl:26:26
       |
    26 |     node          = file("../node")
       |                          ^^^^^^^^^ `..` leads out of the folder
       |
       = why: a castle is described by its folder alone, so that it is the same on every machine
       = hint: copy the file into the folder of the castle file and name it by a relative path

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_missing_quote_and_a_missing_unit() {
    let sources = changed(&[
        ("memory     = \"8GiB\"", "memory     = 8GiB"),
        ("storage       = \"local-lvm\" # disks", "storage       = \"local-lvm"),
    ]);
    insta::assert_snapshot!(shown(&sources), @r#"
    error[C0005]: a quote that is not closed
      --> castle.hcl:27:21
       |
    27 |     storage       = "local-lvm
       |                     ^^^^^^^^^^ opened here
       |
       = why: a quoted text ends on its line; only a heredoc (<<EOT) has several
       = hint: close the quote

    error[C0005]: this is not HCL
      --> castle.hcl:49:19
       |
    49 |     memory     = 8GiB
       |                   ^^^ here
       |
       = why: the parser says: expected newline or eof
       = hint: put quotes around the value, such as "8GiB"

    castle.hcl: 2 errors
    "#);
}

#[test]
fn a_circle_of_layers() {
    let layer = |name: &str, after: &str| {
        format!(
            "  layer \"{name}\" {{\n    after     = [\"{after}\"]\n    manifests = \"./m\"\n  }}\n"
        )
    };
    let layers = layer("a", "b") + &layer("b", "c") + &layer("c", "a");
    let mut sources = changed(&[("  deadlines {", &(layers + "  deadlines {"))]);
    sources.files.insert("m/x.yaml".into(), b"kind: X".to_vec());
    insta::assert_snapshot!(shown(&sources), @r#"
    error[C0703]: layers wait for each other: a -> b -> c -> a
      --> castle.hcl:80:9
       |
    80 |   layer "a" {
       |         ^^^ waits for itself in the end
    ...
    84 |   layer "b" {
       |         --- in the circle
    ...
    88 |   layer "c" {
       |         --- in the circle
       |
       = why: read `a -> b` as: a comes after b
       = hint: take one name out of one `after`

    castle.hcl: 1 error
    "#);
}

#[test]
fn not_utf8() {
    let sources = Sources { text: b"castle \"a\" {\n  # caf\xe9\n}\n".to_vec(), ..sources("") };
    insta::assert_snapshot!(shown(&sources), @r#"
    error[C0002]: the castle file is not UTF-8: byte 20 (0xe9)
    --> castle.hcl:2:8
     = hint: save the file as UTF-8

    castle.hcl: 1 error
    "#);
}

#[test]
fn an_empty_file() {
    insta::assert_snapshot!(shown(&sources("")), @r#"
    error[C0006]: there is no castle in the file
    --> castle.hcl
     = why: a castle file holds one block `castle`
     = hint: begin with castle "blue" { … }; examples/blue/castle.hcl is a whole one

    castle.hcl: 1 error
    "#);
}

#[test]
fn json_lines() {
    let sources = changed(&[("vm = \"5m\"", "vmm = \"5m\"")]);
    insta::assert_snapshot!(to_json_lines(&read(&sources).findings), @r#"{"code":"C0706","severity":"error","title":"there is no deadline `vmm`","file":"castle.hcl","place":{"start":2803,"end":2806,"line":81,"column":5},"label":"neither a kind of wait nor a layer","notes":[],"help":"did you mean `vm`?","related":[]}"#);
}

#[test]
fn a_very_long_line_is_not_shown() {
    let text = format!("castle \"a\" {{ {} = 1 }}", "b".repeat(10)) + &" ".repeat(5000) + "é }";
    insta::assert_snapshot!(shown(&sources(&text)), @r#"
    error[C0005]: this is not HCL
    --> castle.hcl:1:5030
     = why: the parser says: expected newline or eof
     = hint: check quotes, brackets and commas here and on the line before

    castle.hcl: 1 error
    "#);
}

#[test]
fn a_good_file_says_so() {
    assert_eq!(after("count      = 3", "count      = 3"), "castle.hcl: no findings\n");
}

#[test]
fn a_narrow_terminal_and_colour_are_fine() {
    let sources = changed(&[("count      = 3", "count      = 4")]);
    let findings = read(&sources).findings;
    for width in [0, 20, 80, 400] {
        assert!(render(&findings, &sources, false, width).contains("C0501"));
    }
    assert!(render(&findings, &sources, true, 100).contains('\u{1b}'));
    assert!(!codes(&sources).is_empty());
}

/// A terminal would break a long sentence in the middle of a word.
#[test]
fn reasons_and_cures_are_broken_between_words() {
    let sources = changed(&[("domain       = \"tazlab.net\"", "db_password = \"hunter2\"")]);
    let findings = read(&sources).findings;
    for width in [60, 80] {
        let shown = render(&findings, &sources, false, width);
        let (_, told) = shown.split_once("= why:").unwrap();
        let widest = told.lines().skip(1).map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= width), "{width}:\n{shown}");
    }
}
