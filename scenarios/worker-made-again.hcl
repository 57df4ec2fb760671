# A Node outlives its machine by forty seconds.
story "A machine that is made again at once" {
  told = "A worker was deleted and made again within seconds. Its Node was still Ready from before, so that everything was called done while the machine was booting."
  from = ["D 24"]

  run "up" {}
  meanwhile {
    poke = ["proxmox worker-01: destroyed"]
  }
  run "up" {
    fails = []
    says  = ["Node worker-01 was reported before its machine booted"]
  }
  run "plan" {
    says  = ["the world will not be touched"]
    hides = ["not Ready"]
  }
  run "up" {
    changes = 0
  }
  world {
    guests = [421, 422, 423, 431, 432]
    ready  = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
  }
}
