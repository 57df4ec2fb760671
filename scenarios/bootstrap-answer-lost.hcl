# The call worked, its answer did not come back.
story "A bootstrap whose answer is lost" {
  told = "etcd may be bootstrapped once in its life. When the connection broke before the answer, the script asked again, on another machine, and there were two clusters."
  from = ["D 4", "004_69aa89da61a94091.txt"]

  run "up" {
    break = ["talos cp-01: bootstrap lost"]
    fails = []
  }
  world {
    bootstraps = 1
    members    = 3
    handover   = true
  }
}
