# The API server goes away in the middle of everything.
story "An API server that goes and comes" {
  told = "The shared address moved from one control plane to the next while manifests were being applied; the call that was under way failed, and with it the whole run."
  from = ["D 5", "004_69aa89da61a94091.txt"]

  run "up" {
    break = ["kubernetes cp-01: down from 2:00 for 0:30", "kubernetes: watch drops during nodes"]
    fails = []
  }
  world {
    bootstraps = 1
    handover   = true
  }
}
