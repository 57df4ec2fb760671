# Two copies of each volume, and one disk to put them on.
story "More copies than disks" {
  told = "Each volume was to have two copies on two machines, and one of the machines had no disk for it. Nothing failed: volumes stayed degraded, and whoever waited for a healthy one waited for ever."
  from = ["D 12"]

  run "up" {
    break = ["talos worker-01: data disk gone"]
    exit  = 1
    says  = ["on node worker-01 is not ready"]
    fails = ["storage/volume: transient"]
  }
  meanwhile {
    mend = ["talos worker-01: data disk gone"]
  }
  run "up" {
    fails = []
  }
  run "up" {
    changes = 0
  }
  world {
    ready    = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    handover = true
  }
  meanwhile {
    poke = ["talos worker-02: data disk gone"]
  }
  run "plan" {
    says = ["on node worker-02 is not ready"]
  }
}
