//! proxmoxer, the Python client of Proxmox' API, against the emulated one.

use castle_reality::{Real, run};
use serde_json::Value;

use crate::datacenter::{Datacenter, LIMIT, proxmox};
use crate::setting::{folder, pem, with, write};

/// What it reads, in the words of the real Proxmox where that one has words.
const TOLD: &[&str] = &[
    r#"version: ["release","repoid","version"]"#,
    r#"nodes: [["pve","online","node"]]"#,
    r#"storages: ["local","local-lvm"]"#,
    "content: []",
    "nextid: 100",
    r#"task: ["pve","qmcreate","100","castle@pve"]"#,
    r#"created: "OK""#,
    r#"log: "TASK OK""#,
    r#"config: {"cores":1,"description":"two words & more: äöü","memory":"1024","name":"by-proxmoxer"}"#,
    "disk: true",
    r#"listed: [[100,"by-proxmoxer","stopped"]]"#,
    "next is another: true",
    r#"taken: {"status":400,"text":"400 Bad Request: Parameter verification failed. - {'vmid': 'VM 100 already exists'}"}"#,
    r#"created again: {"status":500,"text":"500 Internal Server Error: unable to create VM 100 - VM 100 already exists on node 'pve'"}"#,
    r#"unknown parameter: {"status":400,"text":"400 Bad Request: Parameter verification failed. - {'nonsense': 'property is not defined in schema and the schema does not allow additional properties'}"}"#,
    r#"deleted: "OK""#,
    r#"config of nobody: {"status":500,"text":"500 Internal Server Error: Configuration file 'nodes/pve/qemu-server/100.conf' does not exist"}"#,
    r#"wrong token: {"status":401,"text":"401 Unauthorized: Authentication failed! - {'errors': b''}"}"#,
];

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_stranger_makes_and_removes_a_machine() {
    let Some(real) = Real::find("proxmoxer") else { return };
    let datacenter = Datacenter::open(proxmox(81)).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let ca = write(place.path(), "ca.pem", &roots).display().to_string();
    let birth = datacenter.host.read(|world| world.birth.proxmox.clone());
    let script = include_str!("proxmox.py");
    let words = ["-c", script, "127.0.81.2", "8006", &ca, &birth.node];
    let mut command = with(real.python(), &words);
    command.env("TOKEN_SECRET", &birth.token_secret);
    let told = run(command, LIMIT).await.expect_success();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = told
        .iter()
        .map(|line| format!("{}: {}", line["what"].as_str().unwrap(), line["value"]))
        .collect();
    assert_eq!(told, TOLD);
}
