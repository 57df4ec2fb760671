# What died half made bears no mark; whose it is, the list of Proxmox' tasks tells.
story "Machines that died half made" {
  told = "The host went down while it made machines. They stayed locked, without a mark: every command called them a stranger's, and a wipe deleted the secrets beside them and said that nothing was left."
  from = ["D 34"]

  run "up" {
    break = ["proxmox: node down on GET *qmcreate*422*/status the 1st for 0:20"]
    exit  = 1
    says  = ["qm unlock 422, then qm destroy 422 --purge"]
  }
  run "up" {
    exit    = 1
    says    = ["VM 422 is half made by this castle", "qm unlock 422"]
    changes = 0
  }
  run "audit" {
    exit = 4
    says = ["half made by this castle"]
  }
  run "down" {
    exit  = 4
    fails = ["platform/vm/cp-01: conflict", "platform/vm/cp-02: conflict", "platform/vm/cp-03: conflict"]
    says  = ["qm unlock 422, then qm destroy 422 --purge"]
  }
  world {
    guests = [421, 422, 423]
  }
  meanwhile {
    forget = true
  }
  run "wipe" {
    exit  = 4
    says  = ["the image and what is kept in escrow stay", "qm unlock 422"]
    hides = ["nothing is left of it", "--force-foreign"]
  }
  meanwhile {
    poke = ["proxmox cp-01: destroyed", "proxmox cp-02: destroyed", "proxmox cp-03: destroyed"]
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
