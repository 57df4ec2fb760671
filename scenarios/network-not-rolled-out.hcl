# Nodes say Ready, pods get no network.
story "Ready nodes without a network" {
  told = "All nodes were Ready and every pod hung in ContainerCreating, because the network's own pods were still waiting for their image."
  from = ["D 9", "MISSION B.4"]

  run "up" {
    break  = ["kubernetes: pulls limited ghcr.io 2 for 3:00"]
    says   = ["DaemonSet kube-system/kube-flannel is available on 2 of 5 nodes"]
    fails  = []
    within = "15m"
  }
  world {
    handover = true
  }
}
