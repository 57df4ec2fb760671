# Longhorn is installed, and no volume can be had.
story "Storage that is installed and not usable" {
  told = "Longhorn's manifests were applied and called a success; the databases found out a quarter of an hour later that no volume could be bound."
  from = ["D 11", "003_c407def9a780b0fb.txt"]

  run "up" {
    break = ["kubernetes: pulls limited docker.io 2 for 60:00"]
    exit  = 1
    says  = ["ImagePullBackOff", "docker.io"]
  }
  world {
    ready = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
  }
}
