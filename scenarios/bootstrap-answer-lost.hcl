# The call worked, its answer did not come back.
story "A bootstrap whose answer is lost" {
  told = "etcd may be bootstrapped once in its life. When the connection broke before the answer, the script asked again, on another machine, and there were two clusters."
  from = ["D 4"]

  run "up" {
    break = ["talos cp-01: bootstrap lost"]
    says  = ["bootstrap etcd on cp-01: machine 192.168.1.211 answered Bootstrap with Unknown"]
    fails = []
  }
  world {
    bootstraps = 1
    members    = 3
    handover   = true
  }
}
