# Nobody answers any more, and the castle goes all the same.
story "Razing a castle whose cluster is dead" {
  told = "Destroying asked the cluster for permission, object by object. The machines had been switched off already, so it waited for an answer that could not come."
  from = ["D 33", "001_d31ab16b0c48f553.txt"]

  run "up" {}
  meanwhile {
    poke = ["talos cp-01: dead", "talos cp-02: dead", "talos cp-03: dead", "talos worker-01: dead", "talos worker-02: dead"]
  }
  run "down" {
    within = "5m"
    fails  = []
  }
  world {
    guests       = []
    nothing_left = true
  }
}
