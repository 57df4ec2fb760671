# The lights go out, and on again.
story "The power is cut" {
  told = "The host lost its power and came back. The machines started again by themselves; what nobody looked at was whether all of them had."
  from = ["D 37", "MISSION B.4"]

  run "up" {}
  meanwhile {
    poke = ["proxmox: node down"]
  }
  run "plan" {
    exit = 1
    says = ["Proxmox answers 595: No route to host", "the node or its daemon does not answer its proxy"]
  }
  world {
    running = []
  }

  # The power is back, and all that was there comes up by itself; castle looks, and has nothing to do.
  meanwhile {
    mend  = ["proxmox: node down"]
    later = "3m"
  }
  run "up" {
    changes = 0
    fails   = []
  }
  world {
    running    = [421, 422, 423, 431, 432]
    ready      = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    members    = 3
    bootstraps = 1
  }
}
