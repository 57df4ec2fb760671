# The API server goes away in the middle of everything.
story "An API server that goes and comes" {
  told = "An API server stopped while manifests were being applied; the call that was under way failed, and with it the whole run."
  from = ["the faults asked for"]

  run "up" {
    break = ["kubernetes cp-01: down from 2:00 for 0:30", "kubernetes: watch drops during nodes"]
    says  = ["watch every CustomResourceDefinition: Error reading events stream"]
    fails = []
  }
  world {
    bootstraps = 1
    handover   = true
  }
}
