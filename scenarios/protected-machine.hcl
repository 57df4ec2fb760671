# Somebody has protected a machine; the rest of the castle goes, and what is left is told.
story "A machine that is protected" {
  told = "A machine had been protected in the web interface, for a good reason that nobody remembered. Destroying stopped at it half way, without a word about what was left."
  from = ["D 38", "MISSION A.6"]

  run "up" {}
  meanwhile {
    poke = ["proxmox worker-02: edited protection 1"]
  }
  run "down" {
    exit  = 4
    fails = ["platform/vm/worker-02: conflict"]
    says  = ["qm set 432 --protection 0", "left over:"]
  }
  world {
    guests  = [432]
    running = [432]
  }
  run "audit" {
    exit    = 4
    says    = ["VM 432", "once its protection is lifted"]
    changes = 0
  }
  run "up" {
    exit = 3
    says = ["was begun and not finished"]
  }
  meanwhile {
    poke = ["proxmox worker-02: edited protection"]
  }
  run "down" {
    fails = []
  }
  run "audit" {
    says = ["nothing is left of it"]
  }
  world {
    guests       = []
    nothing_left = true
  }
}
