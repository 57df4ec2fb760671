# Longhorn is installed, and no volume can be had.
story "Storage that is installed and not usable" {
  told = "Longhorn's manifests were applied and called a success; the databases found out a quarter of an hour later that no volume could be bound."
  from = ["D 11"]

  run "up" {
    break = ["talos worker-01: data disk gone", "talos worker-02: data disk gone"]
    exit  = 1
    says  = ["on node worker-01 is not ready"]
    fails = ["storage/volume: transient"]
  }
  world {
    ready    = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    handover = true
  }
  meanwhile {
    mend = ["talos worker-01: data disk gone", "talos worker-02: data disk gone"]
  }
  run "up" {
    fails = []
  }
  run "up" {
    changes = 0
  }
  world {
    ready      = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    bootstraps = 1
    handover   = true
  }
}
