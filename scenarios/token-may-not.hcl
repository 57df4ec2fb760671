# The token lacks a right that is needed at the very end.
story "A token that may not switch machines on" {
  told = "The VMs were made, and then waited for forever: the token had no right to ask for what they had become. Every privilege is looked at before the first machine is made."
  from = ["D 7", "MISSION B.1"]

  meanwhile {
    poke = ["proxmox: privilege lost /vms VM.PowerMgmt"]
  }
  run "up" {
    exit  = 1
    says  = ["VM.PowerMgmt"]
    fails = ["platform/preflight: conflict"]
  }
  world {
    guests       = []
    nothing_left = true
  }
}
