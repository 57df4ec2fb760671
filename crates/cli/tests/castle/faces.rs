//! Whole screens, as a person reads them; and that all of them share their labels.

use std::collections::BTreeSet;

use crate::context::{Context, example};

/// The last lines of a text.
fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The first lines of a text.
fn head(text: &str, lines: usize) -> String {
    text.lines().take(lines).collect::<Vec<_>>().join("\n")
}

/// What several commands show, one below the other.
fn all(castle: &Context, commands: &[&[&str]]) -> String {
    commands.iter().map(|words| castle.shows(words)).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn what_can_not_be_done() {
    let castle = Context::new();
    castle.write("wrong.hcl", &example("blue").replace("gateway     =", "gatway      ="));
    let shown = all(
        &castle,
        &[
            &["upp"],
            &["up", "--fault", "talos cp-2: dead from 0:40"],
            &["check", "-f", "nowhere.hcl"],
            &["plan", "-f", "wrong.hcl"],
            &["secrets", "get", "NO_SUCH_KEY"],
            &["kubeconfig"],
            &["report"],
        ],
    );
    insta::assert_snapshot!(shown, @r#"
    $ castle upp
    error: unrecognized subcommand 'upp'
      hint: a similar subcommand exists: 'up'; `castle --help` explains it
    [exit 2]

    $ castle up --fault 'talos cp-2: dead from 0:40'
    error: the castle file has no node called `cp-2`
     --> --fault:1:7
      |
    1 | talos cp-2: dead from 0:40
      |       ^^^^ did you mean `cp-02`?
      |
      = hint: there is: cp-01, cp-02, cp-03, worker-01, worker-02
      hint: `castle rehearse --list-faults` explains all of them
    [exit 2]

    $ castle check -f nowhere.hcl
    error: the castle file nowhere.hcl can not be read: No such file or directory (os error 2)
      hint: `-f FILE` names it, and without `-f` it is castle.hcl in this folder, or else the built-in example; castle's folder `examples` has files to begin with
    [exit 2]

    $ castle plan -f wrong.hcl
    error[C0102]: there is no key `gatway` here
      --> wrong.hcl:36:5
       |
    36 |     gatway      = "192.168.1.1"
       |     ^^^^^^ unknown in `network`
       |
       = hint: did you mean `gateway`?

    wrong.hcl: 1 error
    error: the castle file wrong.hcl is not right yet; nothing was done
      hint: mend what is named above; `castle check` looks at the file alone
    [exit 2]

    $ castle secrets get NO_SUCH_KEY
    notice: there is no castle.hcl here: this is the built-in example, rehearsed, and every value is invented
    error: no source has the key `NO_SUCH_KEY`
      why: not there: NO_SUCH_KEY in https://eu.infisical.com, project tazlab, environment dev, path /ephemeral-castle/blue/proxmox
      hint: `castle secrets list` shows the keys of this castle and where each would come from
    [exit 1]

    $ castle kubeconfig
    error: can not find the Talos secrets of the castle `blue`
      why: there is no TALOS_SECRETS_BUNDLE: the castle was not raised yet, or is gone
      last seen: https://eu.infisical.com, project tazlab, environment dev, path /ephemeral-castle/blue/proxmox
      hint: raise the castle first (`up`), or give the secrets by --bundle FILE
    [exit 1]

    $ castle report
    error: no run of castle `blue` is kept, so there is nothing to report
      hint: `castle up` is the first
    [exit 2]
    "#);
}

#[test]
fn what_is_refused() {
    let castle = Context::new();
    let shown = all(
        &castle,
        &[
            &["man", "--json"],
            &["graph", "--format", "svg", "--json"],
            &["rehearse", "reset"],
            &["up", "--state", "."],
        ],
    );
    insta::assert_snapshot!(shown, @r#"
    $ castle man --json
    {"v":1,"answer":"error","exit":2,"kind":"usage","what":"a manual page is for people: this command has no answer in JSON","causes":[],"seen":[],"hint":"leave --json out","next":[]}
    error: a manual page is for people: this command has no answer in JSON
      hint: leave --json out
    [exit 2]

    $ castle graph --format svg --json
    {"v":1,"answer":"error","exit":2,"kind":"usage","what":"--json and --format ask for two forms of one graph","causes":[],"seen":[],"hint":"leave one of them out","next":[]}
    error: --json and --format ask for two forms of one graph
      hint: leave one of them out
    [exit 2]

    $ castle rehearse reset
    error: nothing was done: nobody is there to agree
      hint: add --yes
    [exit 3]

    $ castle up --state .
    rehearsal of the built-in example castle `blue`, as fast as it goes: no real machine is touched
    notice: nothing pins the manifests of external-secrets 1.3.2, flux 2.9.3, longhorn 1.10.0, metallb 0.15.3 (unverified); `castle --state . lock` does
    error: the state can not be used
      why: HOME has mode 0755: others could read or change it
      hint: chmod 700 HOME, once you know who could have read it
    [exit 3]
    "#);
}

#[test]
fn a_good_castle_file_and_what_there_is_to_play() {
    let castle = Context::new();
    castle.write("castle.hcl", &example("one-and-two"));
    insta::assert_snapshot!(castle.shows(&["check"]), @"
    $ castle check
    castle.hcl: castle `green` is right: 1+2 machines (control planes + workers), Talos 1.13.9, Kubernetes 1.36.3
    warning[C0502]: one control plane: the cluster is away while that machine is
      --> castle.hcl:33:18
       |
    33 |     count      = 1
       |                  ^ one
       |
       = why: etcd then has no second copy: when the disk is lost, the cluster is lost
       = hint: set count = 3 for a castle that others rely on

    castle.hcl: 1 warning
    [exit 0]
    ");
    insta::assert_snapshot!(head(&castle.shows(&["rehearse", "--list-faults"]), 24), @"
    $ castle rehearse --list-faults
    A rule says who breaks, how, and when:

      talos cp-02: dead from 0:40

    Behind each kind may stand, in any order: on METHOD PATH (what the path ends
    with; * is anything), the 3rd, once, twice, 5 times, from M:SS, until M:SS,
    for M:SS, during PHASE (empty, machines, etcd, api, nodes, flux).
    Times are those of the run from its first look on; the screen's clock begins
    with the first step, some four seconds later.

    on the wire, for any server
      SERVER [OBJECT]: refuses
        Nobody listens: new connections are refused, open ones break.
        proxmox: refuses from 0:10 for 0:20
      SERVER [OBJECT]: drops before
        The connection breaks before the call is heard: nothing was done.
        proxmox: drops before on POST /qemu once
      SERVER [OBJECT]: drops after
        The call is carried out, and the connection breaks before the answer.
        proxmox: drops after on POST /qemu the 2nd
      SERVER [OBJECT]: hangs
        Calls are heard, and nobody answers.
        talos cp-01: hangs on POST /Version once
    ");
    insta::assert_snapshot!(head(&castle.shows(&["rehearse", "scenario", "--list"]), 8), @"
    $ castle rehearse scenario --list
    a-quiet-day              Nothing breaks (D 24)
    api-server-restarts      An API server that goes and comes (the faults asked for)
    birth-time-setting       A setting of the birth, changed in a living castle (D 32)
    bootstrap-answer-lost    A bootstrap whose answer is lost (D 4)
    circle                   Two units that wait for each other (D 17)
    clock-in-the-seventies   A clock that falls back by fifty years (a diary)
    clock-set-back           The clock of the computer jumps in the middle (the faults asked for)
    ");
    insta::assert_snapshot!(head(&castle.shows(&["rehearse", "poke", "--list"]), 12), @"
    $ castle rehearse poke --list
    Each of these happens at once. Those with a * are undone with --mend.

      castle rehearse poke 'talos cp-02: dead'
      castle rehearse poke --mend 'talos cp-02: dead'

    * proxmox: node down
        The node goes down with its guests and tasks; another one answers the API.
        proxmox: node down
    * proxmox STORAGE: full
        A storage has nothing left.
        proxmox local-lvm: full
    ");
}

#[test]
fn the_life_of_a_castle_that_does_well() {
    let castle = Context::new();
    let risen = castle.shows(&["up"]);
    insta::assert_snapshot!(head(&risen, 2), @"
    $ castle up
    castle blue (a rehearsal) stands: 42 steps, 25 changed, 2:37
    ");
    insta::assert_snapshot!(tail(&risen, 4), @"
    rehearsal: N requests, N of them changed the datacenter; trace HEX
    timeline: HOME/state/castle/example/blue/runs/r0001-20260202.timeline.html
    next: `castle status`, `castle rehearse inventory`, or `castle down`
    [exit 0]
    ");
    insta::assert_snapshot!(tail(&castle.shows(&["attach"]), 2), @"
    up (r0001-20260202) ended at 2026-02-02T00:02:41.021Z with exit code 0; nothing runs now
    [exit 0]
    ");
    insta::assert_snapshot!(castle.shows(&["down", "--layer", "storage"]), @"
    $ castle down --layer storage
    rehearsal of the built-in example castle `blue`, as fast as it goes: no real machine is touched
    of castle `blue`, the layer storage goes alone:
      remove Longhorn: longhorn 1.10.0: 21 objects
      CustomResourceDefinition nodes.longhorn.io stays: 2 of others: Node longhorn-system/worker-01, Node longhorn-system/worker-02
      Namespace longhorn-system stays: 7 of others: DaemonSet longhorn-system/longhorn-csi-plugin, Deployment longhorn-system/csi-attacher and 5 more
    whatever runs in the cluster and uses it loses it, until `up` brings it back
    error: nothing was done: nobody is there to agree
      hint: add --yes to agree beforehand
    [exit 3]
    ");
    insta::assert_snapshot!(castle.shows(&["down"]), @"
    $ castle down
    rehearsal of the built-in example castle `blue`, as fast as it goes: no real machine is touched
    castle blue: down, a rehearsal, N steps
    [ 0:00] plan HEX: forget 18, leave 17, remove 7
    This will destroy of castle `blue` (7 in all):
      remove VM worker-01 (431) on pve: VM 431 (worker-01) on pve
      remove VM worker-02 (432) on pve: VM 432 (worker-02) on pve
      remove VM cp-01 (421) on pve: VM 421 (cp-01) on pve
      remove VM cp-02 (422) on pve: VM 422 (cp-02) on pve
      remove VM cp-03 (423) on pve: VM 423 (cp-03) on pve
      remove Talos secrets in https://eu.infisical.com: KUBECONFIG_CONTENT of the life HEX, TALOSCONFIG_CONTENT of the life HEX, TALOS_SECRETS_BUNDLE of the life HEX in https://eu.infisical.com, project tazlab, environment dev, path /ephemeral-castle/blue/proxmox
      remove Talos 1.13.9 on local, unverified: image local:import/talos-1.13.9-HEX.qcow2
    error: nothing was done: nobody is there to agree
      hint: add --yes to agree beforehand
    [exit 3]
    ");
    let poke = ["rehearse", "poke", "talos worker-01: dead"];
    insta::assert_snapshot!(castle.shows(&poke), @"
    $ castle rehearse poke 'talos worker-01: dead'
    [ 2:43] talos worker-01 is dead
    next: `castle plan` shows what castle makes of it, `castle up` mends what it can; `castle rehearse inventory` shows the datacenter
    [exit 0]
    ");
    let mend = ["rehearse", "poke", "--mend", "talos worker-01: dead"];
    insta::assert_snapshot!(castle.shows(&mend), @"
    $ castle rehearse poke --mend 'talos worker-01: dead'
    [ 2:43] talos worker-01 is dead, no more
    next: `castle plan` shows what castle makes of it, `castle up` mends what it can; `castle rehearse inventory` shows the datacenter
    [exit 0]
    ");
}

#[test]
fn a_castle_that_goes_and_comes_back() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let reborn = castle.run(&["rebirth", "--certify", "1", "--yes"]).ends(0);
    // Its verdict and its rows; the times are those of the datacenter's whole life so far.
    let verdict = tail(&castle.steady(&reborn.out), 13);
    let rows = verdict.lines().map(|row| row.split("  ").next().unwrap_or_default());
    insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @"
    rebirth of castle blue: certified: 1 of 1 cycles without a failure

    layer
    down
    up, secrets
    up, platform
    up, engine
    up, networking
    up, storage
    up, gitops
    up
    down and up
    the events of its runs are in HOME/state/castle/example/blue/runs; `castle report RUN` makes the page of one
    ");
    insta::assert_snapshot!(tail(&castle.steady(&reborn.err), 3), @"
    rehearsal: N requests, N of them changed the datacenter; trace HEX
    timeline: HOME/state/castle/example/blue/runs/r0003-20260202.timeline.html
    next: `castle status`, `castle rehearse inventory`, or `castle down`
    ");
    let razed = castle.shows(&["down", "--yes"]);
    insta::assert_snapshot!(head(&razed, 2), @"
    $ castle down --yes
    audit of castle blue, which should be gone: nothing is left of it
    ");
    insta::assert_snapshot!(tail(&razed, 3), @"
    rehearsal: N requests, N of them changed the datacenter; trace HEX
    timeline: HOME/state/castle/example/blue/runs/r0004-20260202.timeline.html
    [exit 0]
    ");
    insta::assert_snapshot!(castle.shows(&["lock"]), @"
    $ castle lock
    HEX/v1.13.9/nocloud-amd64.qcow2: sha256 HEX, 8388608 bytes
    external-secrets 1.3.2: sha256 HEX, 10805 bytes
    flux 2.9.3: sha256 HEX, 12499 bytes
    longhorn 1.10.0: sha256 HEX, 15010 bytes
    metallb 0.15.3: sha256 HEX, 11857 bytes
    reading the image of Talos 1.13.9 from the image factory to its end; nothing of it is kept
    pinned in HOME/state/castle/example/blue.datacenter/castle.lock
    [exit 0]
    ");
    let gone = castle.shows(&["up", "--speed", "max", "--detach"]);
    insta::assert_snapshot!(tail(&gone, 3), @"
    detached: process N goes on with it (run r0005-20260202), whatever becomes of this terminal
    next: `castle attach` shows it, `castle status` tells where it stands, `kill -INT N` asks it to stop
    [exit 0]
    ");
    castle.run(&["attach"]).ends(0);
    insta::assert_snapshot!(castle.shows(&["rehearse", "reset", "--yes"]), @"
    $ castle rehearse reset --yes
    the rehearsal is gone
    [exit 0]
    ");
}

#[test]
fn the_end_of_a_run_that_failed() {
    let castle = Context::new();
    let failed = castle.run(&["up", "--fault", "proxmox: answers 403 on POST /qemu"]).ends(1);
    insta::assert_snapshot!(tail(&castle.steady(&failed.out), 11), @"
    failed: platform/vm/cp-01, platform/vm/cp-02, platform/vm/cp-03, platform/vm/worker-01, platform/vm/worker-02 (not allowed)
      what      platform/vm/cp-01: create VM 421 (cp-01) on pve
      what      platform/vm/cp-02: create VM 422 (cp-02) on pve
      what      platform/vm/cp-03: create VM 423 (cp-03) on pve
      what      platform/vm/worker-01: create VM 431 (worker-01) on pve
      what      platform/vm/worker-02: create VM 432 (worker-02) on pve
      why       Proxmox answers 403: Permission check failed
      hint      give the token the privilege named; a token with privilege separation needs its own ACL, and so does its user
      blocks    29 steps: engine/operator, engine/proof, engine/store, gitops/controllers, gitops/convergence, gitops/flux, gitops/handover, gitops/source, gitops/token, networking/metallb, networking/pool, platform/access, platform/boot (5), platform/bootstrap, platform/config (5), platform/etcd, platform/keys, platform/nodes, platform/vip, storage/longhorn, storage/volume

    next: `castle up`
    ");
    insta::assert_snapshot!(tail(&castle.steady(&failed.err), 4), @"
    [ 0:14] platform/vm/worker-02  ! failed after 0.0 s: create VM 432 (worker-02) on pve: Proxmox answers 403: Permission check failed
    rehearsal: N requests, N of them changed the datacenter; trace HEX
    timeline: HOME/state/castle/example/blue/runs/r0001-20260202.timeline.html
    fault: `proxmox: answers 403 on POST /qemu` struck 5 times in all
    ");
}

/// The label of a line: what stands before its first colon, if that is a word or two of small letters.
fn label(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '=', '|']);
    let (label, rest) = line.split_once(':')?;
    let small = label.chars().all(|c| c.is_ascii_lowercase() || c == ' ');
    let told = rest.is_empty() || rest.starts_with(' ');
    (small && told && !label.is_empty() && label.split(' ').count() <= 2).then_some(label)
}

/// Every label of every face, and no other: a second word for the same thing would come up here.
#[test]
fn faces_share_their_labels() {
    let castle = Context::new();
    castle.write("wrong.hcl", &example("blue").replace("count      = 3", "count      = 4"));
    castle.write("pods.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\n");
    castle.write(
        "clear.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n",
    );
    let mut labels: BTreeSet<String> = BTreeSet::new();
    for words in [
        &["upp"][..],
        &["machineconfig"],
        &["up", "--color", "blue"],
        &["up", "--fault", "nonsense"],
        &["check", "-f", "wrong.hcl"],
        &["plan", "-f", "wrong.hcl"],
        &["secrets", "get", "NO_SUCH_KEY"],
        &["secrets", "verify", "clear.yaml"],
        &["judge", "-f", "pods.yaml"],
        &["status"],
        &["why"],
        &["plan"],
        &["up", "--fault", "proxmox: answers 403 on POST /qemu"],
        &["status"],
        &["why"],
        &["plan"],
        &["history"],
        &["audit"],
        &["audit", "--gone"],
        &["rehearse", "poke", "proxmox 700: foreign vm"],
        &["up"],
        &["wipe"],
        &["lock"],
        &["secrets", "list"],
        &["down"],
        &["down", "--yes"],
    ] {
        let shown = castle.shows(words);
        labels.extend(shown.lines().filter_map(label).map(str::to_owned));
    }
    insta::assert_debug_snapshot!(labels, @r#"
    {
        "castle blue",
        "critical path",
        "dies",
        "error",
        "failed",
        "fault",
        "handover",
        "hint",
        "last run",
        "next",
        "notice",
        "owner",
        "rehearsal",
        "tags",
        "timeline",
        "why",
    }
    "#);
}
