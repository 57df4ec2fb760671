//! The emergency, as a user meets it: nothing without consent, nothing that is not proven ours, nothing of ours left.

use crate::context::Context;

#[test]
fn a_castle_without_state_is_listed_wiped_and_can_rise_again() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox 425: foreign vm"]).ends(0);
    std::fs::remove_dir_all(castle.state()).unwrap();
    let asked = castle.run(&["wipe"]).ends(3);
    assert!(asked.out.contains("5 guests would be removed"), "{}", asked.out);
    assert!(asked.out.contains("1 guest would be left alone"), "{}", asked.out);
    assert!(asked.err.contains("nobody is there to agree"), "{}", asked.err);
    assert_eq!(castle.guests().len(), 6, "nothing was done");
    let wiped = castle.run(&["wipe", "--yes"]).ends(0);
    assert!(wiped.out.contains("nothing is left of it"), "{}", wiped.out);
    assert_eq!(castle.guests(), [425]);
    let left = castle.inventory();
    assert_eq!(left["proxmox"]["files"], serde_json::json!([]));
    assert!(!left["secrets"].to_string().contains("TALOS_SECRETS_BUNDLE"), "{left}");
    let again = castle.run(&["wipe", "--yes"]).ends(0);
    assert!(again.err.contains("there is nothing of castle `blue` to wipe"), "{}", again.err);
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.guests().len(), 6);
}

#[test]
fn what_our_journals_know_is_reset_and_a_foreign_guest_goes_only_by_its_number() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox 425: foreign container"]).ends(0);
    let wrong = castle.run(&["wipe", "--yes", "--force-foreign", "700"]).ends(2);
    assert!(wrong.err.contains("no guest of that number"), "{}", wrong.err);
    assert_eq!(castle.guests().len(), 6);
    castle.run(&["wipe", "--yes", "--force-foreign", "425"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    let status = castle.run(&["status"]).ends(0);
    assert!(status.out.contains("not born"), "{}", status.out);
    castle.run(&["up"]).ends(0);
}

#[test]
fn a_journal_that_breaks_off_ends_a_wipe_as_it_ends_any_other_run() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let rule = "castle: disk full from 0:03";
    let broken = castle.run(&["wipe", "--yes", "--fault", rule]).ends(1);
    let stopped = "the run stopped before its next act: the journal could not be written";
    for words in [stopped, "`castle wipe` goes on"] {
        assert!(broken.err.contains(words), "{words}: {}", broken.err);
    }
    // Whoever looks later is told, too.
    let runs = castle.state().join("runs");
    let events = std::fs::read_to_string(runs.join("r0002-20260202.jsonl")).unwrap();
    assert!(events.lines().last().unwrap().contains(stopped), "{events}");
    assert!(runs.join("r0002-20260202.timeline.html").exists());
    castle.run(&["wipe", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
}

#[test]
fn damaged_journals_stop_no_wipe() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    for file in ["run.journal", "layers/platform.journal"] {
        let path = castle.state().join(file);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x20;
        std::fs::write(path, bytes).unwrap();
    }
    castle.run(&["wipe", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    castle.run(&["up"]).ends(0);
}

#[test]
fn a_list_in_json_tells_what_would_become_of_each() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let asked = castle.run(&["wipe", "--json"]).ends(3);
    let list: serde_json::Value = serde_json::from_str(asked.out.lines().next().unwrap()).unwrap();
    let guests = list["guests"].as_array().unwrap();
    assert_eq!(guests.len(), 5);
    assert!(guests.iter().all(|guest| guest["fate"] == "goes"), "{list}");
    assert_eq!(list["beside"].as_array().unwrap().len(), 4, "image and escrow: {list}");
}

#[test]
fn a_disk_that_another_guest_has_attached_survives_wipe_and_down() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox 425: foreign vm"]).ends(0);
    let rescue = "proxmox 425: edited scsi5 local-lvm:vm-431-disk-2,size=100G";
    castle.run(&["rehearse", "poke", rescue]).ends(0);
    let held = "guest 425 has its local-lvm:vm-431-disk-2";
    let wiped = castle.run(&["wipe", "--yes"]).ends(4);
    assert!(wiped.out.contains(held), "{}", wiped.out);
    assert_eq!(castle.guests(), [425, 431]);
    let left = castle.inventory();
    assert!(left["proxmox"]["volumes"].to_string().contains("vm-431-disk-2"), "{left}");
    assert!(left["secrets"].to_string().contains("TALOS_SECRETS_BUNDLE"), "{left}");
    let down = castle.run(&["down", "--yes"]).ends(4);
    assert!(down.err.contains(held) || down.out.contains(held), "{}\n{}", down.out, down.err);
    let left = castle.inventory();
    assert!(left["proxmox"]["volumes"].to_string().contains("vm-431-disk-2"), "{left}");
    assert!(left["secrets"].to_string().contains("TALOS_SECRETS_BUNDLE"), "{left}");
    castle.run(&["rehearse", "poke", "proxmox 425: edited scsi5"]).ends(0);
    castle.run(&["wipe", "--yes"]).ends(0);
    assert_eq!(castle.guests(), [425]);
}

#[test]
fn the_escrow_stays_while_a_guest_does_that_may_be_the_castles() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox 425: foreign vm"]).ends(0);
    let tags = "proxmox 425: edited tags castle;castle-blue;inc-0123456789abcdef";
    castle.run(&["rehearse", "poke", tags]).ends(0);
    let wiped = castle.run(&["wipe", "--yes"]).ends(4);
    assert!(wiped.out.contains("perhaps this castle's"), "{}", wiped.out);
    let left = castle.inventory();
    assert!(left["secrets"].to_string().contains("TALOS_SECRETS_BUNDLE"), "{left}");
    castle.run(&["wipe", "--yes", "--force-foreign", "425"]).ends(0);
    let left = castle.inventory();
    assert!(!left["secrets"].to_string().contains("TALOS_SECRETS_BUNDLE"), "{left}");
}

#[test]
fn a_removal_whose_task_lies_is_found_out() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let lie = ["wipe", "--yes", "--fault", "proxmox: task lies qmdestroy"];
    let wiped = castle.run(&lie);
    let told = format!("{}\n{}", wiped.out, wiped.err);
    assert!(!told.contains("Proxmox has left"), "{told}");
    assert!(told.contains("its task ended with OK, and the VM is still there"), "{told}");
    castle.run(&["wipe", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
}

#[test]
fn no_worker_is_made_beside_control_planes_that_can_have_no_quorum() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox cp-02: edited protection 1"]).ends(0);
    castle.run(&["wipe", "--yes"]).ends(4);
    assert_eq!(castle.guests(), [422]);
    let up = castle.run(&["up"]).ends(1);
    assert!(up.out.contains("of its 3 control planes cp-02 is left"), "{}", up.out);
    assert_eq!(up.changes(), 0, "{}", up.err);
    assert_eq!(castle.guests(), [422]);
}

#[test]
fn workers_whose_control_planes_are_gone_are_no_strangers() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    for node in ["cp-01", "cp-02", "cp-03"] {
        castle.run(&["rehearse", "poke", &format!("proxmox {node}: destroyed")]).ends(0);
    }
    std::fs::remove_dir_all(castle.state()).unwrap();
    let up = castle.run(&["up"]).ends(1);
    assert!(up.out.contains("of its 3 control planes no machine is left"), "{}", up.out);
    assert!(!up.out.contains("something else answers there"), "{}", up.out);
}
