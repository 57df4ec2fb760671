# The shared address goes from one control plane to the next.
story "The shared address moves" {
  told = "The shared address moved from one control plane to the next while manifests were being applied; the call that was under way failed, and with it the whole run."
  from = ["D 5"]

  run "up" {
    break = ["network: vip moves during api", "network: vip moves during nodes"]
    says  = ["watch every Pod: Error reading events stream"]
    fails = []
  }
  world {
    ready      = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    bootstraps = 1
    handover   = true
  }
}
