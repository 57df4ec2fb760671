# What Proxmox was told goes on, whoever told it.
story "Raised again while it is still being switched off" {
  told = "Destroying was killed when every machine had been told to stop. The next run found them running, built on them, and saw them go off one after the other."
  from = ["D 34"]

  run "up" {}
  run "down" {
    break = ["castle: killed after on POST /status/stop the 5th"]
    exit  = 137
  }
  meanwhile {
    forget = true
  }
  run "up" {
    says  = ["it is switched off -> switched on"]
    fails = []
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    bootstraps = 1
    tasks      = 0
  }
}
