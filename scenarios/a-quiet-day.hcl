# The plainest story: nothing breaks. Whoever writes one of his own may begin with it.
story "Nothing breaks" {
  told = "From nothing to the handover, once more without a change, and back to nothing: the day that all the others are measured by."
  from = ["D 24", "002_5f1c564c1c8b92e6.txt"]

  run "up" {
    says   = ["handover: Flux owns what the cluster hosts", " stands: "]
    fails  = []
    within = "5m"
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    running    = [421, 422, 423, 431, 432]
    ready      = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    tasks      = 0
    members    = 3
    bootstraps = 1
    vault      = ["TALOS_SECRETS_BUNDLE", "KUBECONFIG_CONTENT", "TALOSCONFIG_CONTENT"]
    handover   = true
  }

  run "up" {
    changes = 0
    says    = ["nothing changed"]
  }
  run "status" {
    says = ["gitops"]
  }

  run "down" {}
  world {
    guests       = []
    disks        = 0
    vault_lacks  = ["TALOS_SECRETS_BUNDLE", "KUBECONFIG_CONTENT", "TALOSCONFIG_CONTENT"]
    nothing_left = true
  }
}
