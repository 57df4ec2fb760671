# Before anything is erased, somebody agrees to it.
story "What goes with the machines is shown first" {
  told = "The disks of a VM go with its number. Whoever typed the command learned what had been on them afterwards."
  from = ["D 38", "MISSION B.4"]

  run "up" {}
  run "down" {
    yes     = false
    exit    = 3
    changes = 0
    says    = ["This will destroy", "VM cp-01", "nothing was done: nobody is there to agree"]
  }
  world {
    running = [421, 422, 423, 431, 432]
    disks   = 17
  }
}
