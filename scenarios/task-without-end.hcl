# A task that never ends, and nothing in the log.
story "A task that never ends" {
  told = "A clone hung, and so did the script that waited for its process; there was no line in the log for an hour, and a defunct child in the list."
  from = ["D 29", "MISSION B.4"]

  run "up" {
    break = ["proxmox: task hangs qmcreate"]
    exit  = 1
    says  = ["Proxmox' task qmcreate is running", "run the same command again to go on"]
  }
  world {
    bootstraps = 0
  }
}
