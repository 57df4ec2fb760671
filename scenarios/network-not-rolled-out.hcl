# Nodes say Ready, pods get no network.
story "Ready nodes without a network" {
  told = "All nodes were Ready and every pod hung in ContainerCreating, because the network's own pods were still waiting for their image."
  from = ["D 9", "003_c407def9a780b0fb.txt"]

  run "up" {
    break  = ["kubernetes: pulls limited ghcr.io 2 for 3:00"]
    fails  = []
    within = "15m"
  }
  world {
    handover = true
  }
}
