# Somebody was in the web interface.
story "A machine edited by hand" {
  told = "Somebody gave a machine less memory in the web interface, for an evening. Nothing said so until the next rebuild took it away again."
  from = ["D 3", "002_5f1c564c1c8b92e6.txt"]

  run "up" {}
  meanwhile {
    poke = ["proxmox worker-01: edited memory 4096"]
  }
  run "plan" {
    says = ["VM worker-01 (431) on pve: memory 4096 → 8192"]
  }
  run "up" {
    fails = []
  }
  run "up" {
    changes = 0
  }
}
