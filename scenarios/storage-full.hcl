# The storage is full before the first disk.
story "A storage that is full" {
  told = "The fourth machine found no room. The first three stayed behind, half a castle that had to be taken apart by hand."
  from = ["the faults asked for"]

  meanwhile {
    poke = ["proxmox local-lvm: full"]
  }
  run "up" {
    exit  = 1
    says  = ["local-lvm"]
    fails = ["platform/preflight: conflict"]
  }
  world {
    guests       = []
    nothing_left = true
  }
}
