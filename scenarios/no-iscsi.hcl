# The image is not the one that was asked for.
story "A machine without iSCSI" {
  told = "The config named the extension, the image did not have it: volumes could not be attached, because iscsiadm was not found. That a config is right says nothing of what runs."
  from = ["D 10", "003_c407def9a780b0fb.txt"]

  run "up" {
    break = ["talos worker-01: extension missing iscsi-tools"]
    exit  = 1
    says  = ["its image lacks the extensions iscsi-tools", "the VM was made from another image"]
    fails = ["platform/boot/worker-01: conflict"]
  }
  world {
    running = [421, 422, 423, 431, 432]
    members = 3
  }
}
