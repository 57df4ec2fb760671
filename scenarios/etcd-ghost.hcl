# A disk with a past.
story "The ghost of an old etcd" {
  told = <<EOT
    Machines were rebuilt at the addresses of an earlier cluster, on disks that had not been wiped. Each etcd found the members of its
    former life and stayed in Preparing, to protect data that nobody wanted any more. It took an evening, a reset of all machines at
    once and another range of addresses to be rid of it.
  EOT
  from = ["D 4", "004_69aa89da61a94091.txt"]

  run "up" {
    break = ["talos cp-02: stale etcd"]
    exit  = 1
    says  = ["etcd does not start on cp-02, although data of an etcd lie on the disk", "a machine must begin with an empty disk"]
    fails = ["platform/bootstrap: transient"]
  }
  world {
    bootstraps = 0
    handover   = false
  }

  # The cure is a fresh disk, and castle's way to one is a new birth.
  run "down" {}
  world {
    nothing_left = true
  }
  run "up" {
    fails = []
  }
  world {
    members  = 3
    handover = true
  }
}
