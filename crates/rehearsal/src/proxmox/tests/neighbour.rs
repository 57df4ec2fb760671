//! Calls that other clients make, and how late the cluster hears of its guests.

use super::*;

#[test]
fn the_cluster_hears_of_a_guest_in_rounds() {
    let mut bench = Bench::new();
    let seen = |bench: &mut Bench| bench.get("/cluster/resources?type=vm")[0].clone();
    bench.task("POST", "/nodes/pve1/qemu", "vmid=421&name=web&tags=a");
    let first = seen(&mut bench);
    assert_eq!((&first["status"], &first["tags"]), (&json!("unknown"), &json!("a")));
    assert!(first.get("name").is_none(), "{first}");
    bench.now = 10_000;
    assert_eq!(
        (&seen(&mut bench)["status"], &seen(&mut bench)["name"]),
        (&json!("stopped"), &json!("web"))
    );
    bench.task("POST", "/nodes/pve1/qemu/421/status/start", "");
    assert_eq!(seen(&mut bench)["status"], "stopped", "the list is late");
    assert_eq!(bench.get("/nodes/pve1/qemu/421/status/current")["status"], "running");
    bench.now = 20_000;
    assert_eq!(seen(&mut bench)["status"], "running");
}

#[test]
fn a_container_is_seen_stopped_and_removed() {
    let mut bench = Bench::new();
    bench.proxmox.add_foreign_container(105, "dns", true);
    let path = "/nodes/pve1/lxc/105";
    assert_eq!(bench.get("/nodes/pve1/lxc")[0]["vmid"], "105");
    assert_eq!(bench.get(&format!("{path}/config"))["hostname"], "dns");
    let (status, answer) = bench.call("DELETE", path, "");
    assert_eq!(status, 500);
    assert_eq!(answer["message"], "unable to destroy CT 105 - container is running\n");
    assert_eq!(bench.task("POST", &format!("{path}/status/stop"), ""), "OK");
    assert_eq!(bench.get(&format!("{path}/status/current"))["status"], "stopped");
    assert_eq!(bench.task("DELETE", path, ""), "OK");
    let (status, answer) = bench.call("GET", &format!("{path}/config"), "");
    assert_eq!(status, 500);
    assert_eq!(answer["message"], "Configuration file 'nodes/pve1/lxc/105.conf' does not exist\n");
}

#[test]
fn a_single_node_has_no_cluster_and_two_have_one() {
    let mut bench = Bench::new();
    let status = bench.get("/cluster/status");
    assert_eq!((status.as_array().unwrap().len(), &status[0]["type"]), (1, &json!("node")));
    bench.turn(|proxmox, turn| {
        let trouble = super::super::ProxmoxTrouble::ForeignVm {
            vmid: 421,
            name: "mail".to_owned(),
            tags: String::new(),
            running: false,
            node: Some("pve2".to_owned()),
        };
        proxmox.suffer(turn, &trouble);
    });
    let status = bench.get("/cluster/status");
    assert_eq!((&status[0]["type"], &status[0]["quorate"]), (&json!("cluster"), &json!(1)));
    assert_eq!(status.as_array().unwrap().len(), 3);
}
