//! The statuses and texts of refusals, word for word.

use serde_json::{Value, json};

use super::{Bench, body, escape, form, request};

#[test]
fn refusals_have_the_real_status_and_text() {
    let mut bench = Bench::new();
    bench.proxmox.add_foreign_guest(421, "web-1", "", false);
    bench.proxmox.add_foreign_guest(422, "web-2", "", true);
    bench.proxmox.add_foreign_container(105, "dns", true);
    let gone = "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist";
    let far = "hostname lookup 'nosuch' failed - failed to get address info for: nosuch: Name or \
               service not known";
    for (method, target, form, status, text) in [
        ("GET", "/nodes/pve1/qemu/4711/config", "", 500, gone),
        ("GET", "/nodes/pve1/qemu/4711/status/current", "", 500, gone),
        ("DELETE", "/nodes/pve1/qemu/4711", "", 500, gone),
        ("PUT", "/nodes/pve1/qemu/4711/config", "name=x", 500, gone),
        ("GET", "/nodes/nosuch/qemu", "", 500, far),
        ("GET", "/nodes/nosuch/status", "", 500, far),
        ("POST", "/nodes/nosuch/qemu", "vmid=421", 500, far),
        ("GET", "/nodes/pve1/storage/nosuch/content", "", 500, "storage 'nosuch' does not exist"),
        ("POST", "/nodes/pve1/qemu", "vmid=423&scsi0=no%3A4", 500, "storage 'no' does not exist"),
        (
            "POST",
            "/nodes/pve1/qemu",
            "vmid=421",
            500,
            "unable to create VM 421 - VM 421 already exists on node 'pve1'",
        ),
        (
            "POST",
            "/nodes/pve1/qemu",
            "vmid=105",
            500,
            "unable to create VM 105 - CT 105 already exists on node 'pve1'",
        ),
        (
            "POST",
            "/nodes/pve1/qemu",
            "vmid=423&pool=lab",
            403,
            "Permission check failed (pool 'lab' does not exist)",
        ),
        ("DELETE", "/nodes/pve1/qemu/422", "", 500, "VM 422 is running - destroy failed"),
        ("PUT", "/nodes/pve1/qemu/421/config", "", 500, "no options specified"),
        (
            "PUT",
            "/nodes/pve1/qemu/421/config",
            "lock=clone",
            500,
            "only root can set 'lock' config",
        ),
        (
            "PUT",
            "/nodes/pve1/qemu/421/config",
            "digest=deadbeef&name=x",
            500,
            "checksum mismatch (file change by other user?)",
        ),
        (
            "POST",
            "/nodes/pve1/storage/local-lvm/download-url",
            "url=http%3A%2F%2Fh%2Ft.qcow2&content=import&filename=t.qcow2",
            500,
            "storage 'local-lvm' is not configured for content-type 'import'",
        ),
        (
            "POST",
            "/nodes/pve1/qemu",
            "vmid=423&scsi0=local-lvm%3A0%2Cimport-from%3D%2Fetc%2Fpasswd",
            500,
            "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm \
             line 651.",
        ),
    ] {
        let reply = bench.raw(&request(method, target, form));
        assert_eq!((reply.status, reply.reason.as_deref()), (status, Some(text)), "{target}");
        assert_eq!(body(&reply), json!({"data": null, "message": format!("{text}\n")}), "{target}");
    }
}

const UNKNOWN: &str =
    "property is not defined in schema and the schema does not allow additional properties";

fn invalid(bench: &mut Bench, (method, target, form): (&str, &str, &str), errors: &Value) {
    let reply = bench.raw(&request(method, target, form));
    assert_eq!(reply.status, 400, "{target} {form}: {reply:?}");
    assert_eq!(reply.reason.as_deref(), Some("Parameter verification failed."));
    assert_eq!(&body(&reply)["errors"], errors, "{target} {form}");
}

#[test]
fn wrong_options_of_a_guest_are_all_named() {
    let mut bench = Bench::new();
    let no_key = "invalid format - value without key, but schema does not define a default key\n";
    for (form, errors) in [
        ("", json!({"vmid": "property is missing and it is not optional"})),
        ("vmid=99", json!({"vmid": "invalid format - value does not look like a valid VM ID\n"})),
        (
            "vmid=1000000000",
            json!({"vmid": "invalid format - value does not look like a valid VM ID\n"}),
        ),
        ("vmid=abc", json!({"vmid": "type check ('integer') failed - got 'abc'"})),
        (
            "vmid=430&memory=lots&cores=0&bogus=1",
            json!({
                "bogus": UNKNOWN,
                "memory": "invalid format - format error\nmemory.current: type check ('integer') failed - got 'lots'\n",
                "cores": "value must have a minimum value of 1",
            }),
        ),
        (
            "vmid=430&name=bad_name!",
            json!({"name": "invalid format - value does not look like a valid DNS name\n"}),
        ),
        // `;` parts parameters and every `=` cuts: what was not encoded comes out mangled.
        ("vmid=430&tags=ok;bad tag", json!({"bad tag": UNKNOWN})),
        ("vmid=430&ipconfig0=ip=10.0.0.5", json!({"ipconfig0": no_key})),
        (
            "vmid=430&scsi0=local:4,foo=bar",
            json!({"scsi0": "invalid format - duplicate key in comma-separated list property: file\n"}),
        ),
        (
            "vmid=430&ipconfig0=ip%3D10.0.0.5",
            json!({"ipconfig0": "invalid format - format error\nipconfig0.ip: invalid format - value does not look like a valid ipv4 network configuration\n\n"}),
        ),
        (
            "vmid=430&ipconfig0=ip%3D10.0.0.5%2F24%2Cgw%3Dbogus",
            json!({"ipconfig0": "invalid format - format error\nipconfig0.gw: invalid format - value does not look like a valid IPv4 address\n\n"}),
        ),
        (
            "vmid=430&net0=foo%2Cbridge%3Dvmbr0",
            json!({"net0": "invalid format - format error\nnet0.model: value 'foo' does not have a value in the enumeration 'e1000, e1000-82540em, e1000-82544gc, e1000-82545em, e1000e, i82551, i82557b, i82559er, ne2k_isa, ne2k_pci, pcnet, rtl8139, virtio, vmxnet3'\n"}),
        ),
        (
            "vmid=430&sshkeys=notencoded key",
            json!({"sshkeys": "invalid format - invalid urlencoded string: notencoded key\n"}),
        ),
        ("vmid=430&onboot=yes", json!({"onboot": "type check ('boolean') failed - got 'yes'"})),
        (
            "vmid=430&scsi0=local-lvm%3A5%2Cimport-from%3Dlocal%3Aimport%2Fx.qcow2",
            json!({"scsi0": "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>"}),
        ),
    ] {
        invalid(&mut bench, ("POST", "/nodes/pve1/qemu", form), &errors);
    }
}

#[test]
fn wrong_parameters_of_other_calls_are_named() {
    let mut bench = Bench::new();
    bench.proxmox.add_foreign_guest(421, "web-1", "", false);
    let fetch = "/nodes/pve1/storage/local/download-url";
    for (method, target, form, errors) in [
        (
            "POST",
            fetch,
            "url=ftp%3A%2F%2Fh%2Ft.qcow2&content=images&filename=t.qcow2",
            json!({
                "url": "value does not match the regex pattern",
                "content": "value 'images' does not have a value in the enumeration 'iso, vztmpl, import'",
            }),
        ),
        (
            "POST",
            fetch,
            "url=http%3A%2F%2Fh%2Ft.img&content=import&filename=t.img",
            json!({"filename": "invalid filename or wrong extension"}),
        ),
        (
            "POST",
            fetch,
            "url=http%3A%2F%2Fh%2Ft.raw&content=import&filename=t.raw&checksum=abc",
            json!({"checksum-algorithm": "missing property required by 'checksum'"}),
        ),
        ("GET", "/cluster/nextid?vmid=421", "", json!({"vmid": "VM 421 already exists"})),
        (
            "GET",
            "/cluster/resources?type=bogus",
            "",
            json!({"type": "value 'bogus' does not have a value in the enumeration 'vm, storage, node, sdn'"}),
        ),
        ("GET", "/nodes/pve1/qemu/421/status/current?x=1", "", json!({"x": UNKNOWN})),
        ("GET", "/nodes/pve1/storage/no/status", "", json!({"storage": "No such storage."})),
        (
            "GET",
            "/nodes/pve1/tasks/bogus/status",
            "",
            json!({"upid": "unable to parse worker upid"}),
        ),
        (
            "DELETE",
            "/nodes/pve1/qemu/421?skiplock=1",
            "",
            json!({"skiplock": "Only root may use this option."}),
        ),
        (
            "PUT",
            "/nodes/pve1/qemu/421/config",
            "delete=nosuchopt",
            json!({"delete": "unknown option 'nosuchopt'"}),
        ),
        (
            "PUT",
            "/nodes/pve1/qemu/421/resize",
            "disk=scsi0&size=xx",
            json!({"size": "value does not match the regex pattern"}),
        ),
    ] {
        invalid(&mut bench, (method, target, form), &errors);
    }
}

#[test]
fn strangers_get_a_status_line_and_nothing_else() {
    let mut bench = Bench::new();
    for (header, expected) in [
        (None, Some("No ticket")),
        (Some("pveapitoken=root@pam!ci=6f9f3f0e"), Some("No ticket")),
        (Some("PVEAPIToken=root@pam!ci=wrong"), Some("Authentication failed!")),
        (Some("PVEAPIToken=root@pam!nobody=6f9f3f0e"), Some("Authentication failed!")),
        (Some("PVEAPIToken=root@pam!ci:6f9f3f0e"), Some("Authentication failed!")),
        (Some("PVEAPIToken root@pam!ci=6f9f3f0e"), None),
        (Some("PVEAPIToken=root%40pam%21ci=6f9f3f0e"), None),
    ] {
        let mut call = request("GET", "/version", "");
        call.headers.retain(|(name, _)| name != "authorization");
        call.headers.extend(header.map(|text| ("authorization".to_owned(), text.to_owned())));
        let reply = bench.raw(&call);
        match expected {
            Some(reason) => {
                assert_eq!((reply.status, reply.reason.as_deref()), (401, Some(reason)));
                assert_eq!(names(&reply), ["connection"], "{header:?}");
                assert!(body(&reply).is_null());
            }
            None => assert_eq!(body(&reply)["data"]["version"], "9.2.11"),
        }
    }
}

#[test]
fn what_is_not_served_is_not_implemented() {
    let mut bench = Bench::new();
    let (status, answer) = bench.call("GET", "/nodes/pve1/nosuchpath", "");
    assert_eq!(status, 501);
    assert_eq!(
        answer,
        json!({"data": null, "message": "Method 'GET /nodes/pve1/nosuchpath' not implemented"})
    );
    assert_eq!(bench.call("PUT", "/nodes/pve1/qemu", "a=b").0, 501);
    let patch = bench.raw(&request("PATCH", "/nodes/pve1/qemu", ""));
    assert_eq!(
        (patch.status, patch.reason.as_deref()),
        (501, Some("method 'PATCH' not available"))
    );
    let delete = bench.raw(&request("DELETE", "/nodes/pve1/qemu/421", "purge=1"));
    assert_eq!(delete.reason.as_deref(), Some("Unexpected content for method 'DELETE'"));
    assert_eq!(delete.status, 501);
}

#[test]
fn a_body_that_is_neither_a_form_nor_json_is_not_read() {
    let mut bench = Bench::new();
    let mut call = request("POST", "/nodes/pve1/qemu", "vmid: 431");
    call.headers[1].1 = "application/yaml".to_owned();
    let reply = bench.raw(&call);
    let words = "upload 'Content-Type 'application/yaml' not implemented";
    assert_eq!((reply.status, reply.reason.as_deref()), (506, Some(words)));
    call.headers[1].1 = "application/x-www-form-urlencoded; charset=utf-8".to_owned();
    call.body = b"vmid=431".to_vec();
    assert_eq!(bench.raw(&call).status, 200);
}

#[test]
fn json_bodies_are_taken_and_broken_ones_are_not() {
    let mut bench = Bench::new();
    let mut call =
        request("POST", "/nodes/pve1/qemu", r#"{"vmid":431,"onboot":true,"tags":"b;a"}"#);
    call.headers[1].1 = "application/json".to_owned();
    assert_eq!(bench.raw(&call).status, 200);
    while bench.step() {}
    let config = bench.get("/nodes/pve1/qemu/431/config");
    assert_eq!((&config["onboot"], &config["tags"]), (&json!(1), &json!("a;b")));
    call.body = b"{".to_vec();
    let reply = bench.raw(&call);
    assert_eq!(reply.status, 500);
    assert_eq!(names(&reply), ["connection"]);
}

#[test]
fn a_task_that_nobody_started_is_not_there() {
    let mut bench = Bench::new();
    let upid = escape("UPID:pve1:00000001:00000001:00000001:qmcreate:1:root@pam:");
    let (status, answer) = bench.call("GET", &format!("/nodes/pve1/tasks/{upid}/status"), "");
    assert_eq!((status, &answer["errors"]), (400, &json!({"upid": "no such task"})));
    let log = bench.get(&format!("/nodes/pve1/tasks/{upid}/log"));
    assert_eq!(log, json!([{"n": 1, "t": "unable to open file - No such file or directory"}]));
}

#[test]
fn tasks_fail_with_the_real_words() {
    let mut bench = Bench::new();
    bench.proxmox.add_foreign_guest(421, "web-1", "", false);
    bench.proxmox.add_foreign_guest(422, "web-2", "", true);
    let odd = form(&[("vmid", "511"), ("scsi0", "local-lvm:0,import-from=local:import/no.qcow2")]);
    for (method, target, form, text) in [
        (
            "POST",
            "/nodes/pve1/qemu/4711/status/start",
            "",
            "Configuration file 'nodes/pve1/qemu-server/4711.conf' does not exist",
        ),
        ("POST", "/nodes/pve1/qemu/422/status/start", "", "VM 422 already running"),
        ("POST", "/nodes/pve1/qemu/421/status/stop", "", "OK"),
        ("POST", "/nodes/pve1/qemu/421/status/shutdown", "", "OK"),
        (
            "POST",
            "/nodes/pve1/qemu/422/status/shutdown",
            "timeout=3",
            "VM quit/powerdown failed - got timeout",
        ),
        (
            "PUT",
            "/nodes/pve1/qemu/421/resize",
            "disk=scsi0&size=1G",
            "shrinking disks is not supported",
        ),
        (
            "PUT",
            "/nodes/pve1/qemu/421/resize",
            "disk=scsi9&size=%2B1G",
            "disk 'scsi9' does not exist",
        ),
        (
            "POST",
            "/nodes/pve1/qemu",
            odd.as_str(),
            "unable to create VM 511 - failed to stat '/var/lib/vz/import/no.qcow2'",
        ),
        (
            "POST",
            "/nodes/pve1/storage/local/download-url",
            "url=https%3A%2F%2Ffactory.talos.dev%2Fnothing.qcow2&content=import&filename=n.qcow2",
            "download failed: exit code 8",
        ),
        ("DELETE", "/nodes/pve1/storage/local/content/local%3Aimport%2Fnone.qcow2", "", "OK"),
    ] {
        assert_eq!(bench.task(method, target, form), text, "{method} {target}");
    }
    let (status, _) = bench.call("GET", "/nodes/pve1/qemu/511/config", "");
    assert_eq!(status, 500, "a create that failed leaves nothing");
}

fn names(reply: &crate::turn::HttpReply) -> Vec<&str> {
    reply.headers.iter().map(|(name, _)| name.as_str()).collect()
}
