# Somebody was in the web interface.
story "A machine edited by hand" {
  told = "Somebody gave a machine less memory in the web interface, for an evening. Nothing said so until the next rebuild took it away again."
  from = ["nobody's diary"]

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
  world {
    guests     = [421, 422, 423, 431, 432]
    running    = [421, 422, 423, 431, 432]
    bootstraps = 1
    handover   = true
  }
}
