# Even the state is gone, and only what is proven ours goes.
story "Wiping a castle without any state" {
  told = "With the state gone, a script went through the numbers 421 to 432 and deleted whatever it met. It was written for an empty range, and one day the range was not empty."
  from = ["D 34", "002_5f1c564c1c8b92e6.txt"]

  run "up" {}
  meanwhile {
    forget = true
    poke = [
      "proxmox 425: foreign vm",
      "proxmox 427: foreign container",
      "proxmox 999: lost disk local-lvm",
      "proxmox worker-01: edited scsi2 local-lvm:vm-999-disk-9",
    ]
  }
  run "wipe" {
    yes     = false
    exit    = 3
    says    = ["VM 421 `blue-cp-01`", "VM 425 `somebody-elses`", "--force-foreign 425", "container 427", "nobody is there to agree"]
    changes = 0
  }
  run "wipe" {
    fails = []
    says  = ["local-lvm:vm-999-disk-9 of guest 999", "nothing is left of it"]
  }
  world {
    guests       = [425, 427]
    untouched    = [425, 427]
    nothing_left = true
  }
  run "wipe" {
    says    = ["nothing was done"]
    changes = 0
  }
}
