# The registry has had enough of us, for a while.
story "A registry that limits us" {
  told = "Rebuilding the cluster for the fifth time in an hour, the public registry answered 429. Pods hung in ContainerCreating, and the reason stood in an event that nobody looked at."
  from = ["D 20", "MISSION B.4"]

  run "up" {
    break  = ["kubernetes: pulls limited ghcr.io 2 for 6:10"]
    says   = ["429 Too Many Requests"]
    exit   = 1
    fails  = ["engine/operator: transient", "gitops/controllers: transient"]
  }
  run "up" {
    fails = []
  }
  world {
    handover = true
  }
}
