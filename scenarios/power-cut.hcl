# The lights go out, and on again.
story "The power is cut" {
  told = "The host lost its power and came back. The machines started again by themselves; what nobody looked at was whether all of them had."
  from = ["D 37", "003_c407def9a780b0fb.txt"]

  run "up" {}
  meanwhile {
    poke = ["proxmox: node down"]
  }
  run "plan" {
    exit = 1
    says = ["pve"]
  }
  world {
    running = []
  }
}
