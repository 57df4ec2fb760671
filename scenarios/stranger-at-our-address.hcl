# Something answers where nothing should be yet.
story "A stranger at our address" {
  told = "A machine of an earlier cluster still ran at an address of the new one. The config of the new cluster, with all its keys, was sent to whoever answered."
  from = ["D 4"]

  meanwhile {
    poke = ["network cp-03: stolen"]
  }
  run "up" {
    exit  = 1
    says  = ["address 192.168.1.213 of cp-03: a Talos machine answers that has a config of another cluster", "nothing was made yet"]
    fails = ["platform/preflight: conflict"]
  }
  world {
    guests       = []
    nothing_left = true
  }
}
