# One unit is broken, the others are not.
story "One broken unit among seven" {
  told = "A health gate waited for everything at once, so that one chart that never became ready kept the whole castle from being called alive, and nobody knew which."
  from = ["D 22", "MISSION B.4"]

  run "up" {
    break = ["git: pushed infrastructure/monitoring/prometheus.yaml \"{apiVersion: example.org/v1, kind: Chart, metadata: {name: prometheus}}\""]
    exit  = 1
    says  = ["monitoring", "the handover stands"]
    fails = ["gitops/convergence: transient"]
  }
  world {
    handover = true
  }
}
