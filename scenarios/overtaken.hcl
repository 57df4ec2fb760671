# Between our look and our create, somebody else was faster.
story "Somebody else is faster" {
  told = "The number was free when it was looked at and taken when it was asked for: a create that fails, or worse, one that is taken for an earlier try of our own."
  from = ["D 3"]

  run "up" {
    break = ["proxmox cp-02: overtaken"]
    exit  = 1
    says  = ["make VM 422 (cp-02) on pve: it is not ours: `faster`"]
    fails = ["platform/vm/cp-02: conflict"]
  }
  world {
    bootstraps = 0
    handover   = false
  }
  run "down" {}
  world {
    guests = [422]
    disks  = 1
  }
}
