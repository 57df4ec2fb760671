# The namespace lets nobody in.
story "Pods that their namespace does not admit" {
  told = "A namespace enforced a stricter profile than its pods could meet: the DaemonSet wanted two, had none, and said so in an event that nobody read."
  from = ["D 27", "MISSION B.1"]

  run "up" {}
  meanwhile {
    poke = [
      "kubernetes: patched namespace/longhorn-system {\"metadata\":{\"labels\":{\"pod-security.kubernetes.io/enforce\":\"restricted\"}}}",
      "kubernetes: deleted daemonset/longhorn-system/longhorn-manager",
    ]
  }
  run "plan" {
    says = ["pod-security.kubernetes.io/enforce", "longhorn-manager"]
  }
  run "up" {
    fails = []
  }
  world {
    bootstraps = 1
    handover   = true
  }
  run "up" {
    changes = 0
  }
}
