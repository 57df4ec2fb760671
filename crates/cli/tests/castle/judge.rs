//! `castle judge` as a user types it: files and streams, text and JSON, and how it ends.

use std::io::Write;
use std::process::Stdio;

use crate::context::{Context, Said};

const READY: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, namespace: n}\nspec: {volumeName: v}\nstatus: {phase: Bound}\n";
const LATE: &str = "apiVersion: v1\nkind: List\nitems:\n\
    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}, spec: {selector: {matchLabels: {app: d}}}}\n\
    - {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n, labels: {app: d}}, status: {containerStatuses: [{name: main, \
       state: {waiting: {reason: ImagePullBackOff, message: \"Back-off \\e[31mpulling\\nimage\"}}}]}}\n\
    - {apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}}\n";

fn fed(castle: &Context, words: &[&str], input: &[u8]) -> Said {
    let pipe = Stdio::piped;
    let mut command = castle.command(words);
    let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).ok();
    Said::of(&child.wait_with_output().unwrap())
}

#[test]
fn objects_of_a_file_or_a_stream_are_judged() {
    let castle = Context::new();
    castle.write("ready.yaml", READY);
    let said = castle.run(&["judge", "-f", "ready.yaml"]).ends(0);
    assert_eq!(said.out, "ready    PersistentVolumeClaim n/a is bound to v\n");
    assert_eq!(said.err, "1 objects: 1 ready, 0 waiting, 0 failed\n");

    let said = fed(&castle, &["judge", "--file", "-"], LATE.as_bytes()).ends(1);
    insta::assert_snapshot!(said.out, @r"
    waiting  Deployment n/d has 0 of 1 replicas of the new revision; Pod n/p waits in container main: ImagePullBackOff: Back-off  [31mpulling image
    waiting  Pod n/p waits in container main: ImagePullBackOff: Back-off  [31mpulling image
    failed   Job j: BackoffLimitExceeded (hint: look at the log of its pods)
    ");
    assert_eq!(said.err, "3 objects: 0 ready, 2 waiting, 1 failed\n");

    let said = fed(&castle, &["judge", "-f", "-", "--json"], LATE.as_bytes()).ends(1);
    let last = said.out.lines().last().unwrap().to_owned();
    insta::assert_snapshot!(last, @r#"{"v":1,"answer":"verdict","apiVersion":"batch/v1","kind":"Job","namespace":null,"name":"j","verdict":"failed","reason":"Job j: BackoffLimitExceeded","hint":"look at the log of its pods"}"#);
    assert!(said.err.is_empty(), "{}", said.err);
}

#[test]
fn what_can_not_be_read_is_refused_with_its_place() {
    let castle = Context::new();
    castle.write("a folder/x", "");
    let refused = |input: &[u8]| fed(&castle, &["judge", "-f", "-"], input).ends(2).err;
    insta::assert_snapshot!(refused(b"apiVersion: v1\nkind: [\n"), @r"
    error: can not judge what is in standard input
      why: standard input:3:1: did not find expected node content, while parsing a flow node
      hint: correct it at that place, or give what `kubectl get -o yaml` prints
    ");
    insta::assert_snapshot!(refused(b"apiVersion: v1\nkind: Pod\n"), @r"
    error: can not judge what is in standard input
      why: standard input, document 1 (line 1): it has no `metadata.name`
      hint: correct it at that place, or give what `kubectl get -o yaml` prints
    ");
    insta::assert_snapshot!(refused(b"a: 1\nb: \xff\n"), @r"
    error: can not read standard input
      why: standard input:2: it is not text (UTF-8)
    ");
    assert!(refused(b"").contains("there is no object in standard input"));
    assert!(refused(&b"[".repeat(1_000_000)).contains("nested deeper than 64"));
    assert!(refused(&b" ".repeat((16 << 20) + 1)).contains("larger than 16 MiB"));
    for name in ["missing.yaml", "a folder"] {
        let said = castle.run(&["judge", "-f", name]).ends(2);
        assert!(said.err.starts_with(&format!("error: can not read {name}\n")), "{}", said.err);
    }
    assert!(castle.run(&["judge"]).ends(2).err.contains("--file <FILE>"));
}
