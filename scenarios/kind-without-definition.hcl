# A unit in Git uses a kind that nobody has defined.
story "A resource before its definition" {
  told = <<EOT
    A custom resource stood in the same unit as the operator that defines it. Flux tries a whole unit before it applies any of it, so
    nothing of the unit came, the operator least of all, and everything behind it waited without an error of its own.
  EOT
  from = ["D 2", "MISSION D.3"]

  meanwhile {
    poke = ["git: pushed infrastructure/configs/site.yaml \"{apiVersion: example.org/v1, kind: Ghost, metadata: {name: g}}\""]
  }
  run "up" {
    exit  = 1
    says  = ["no matches for kind", "Ghost", "the handover stands"]
    fails = ["gitops/convergence: transient"]
  }
  world {
    handover = true
  }

  # Mended by a push, not by hand.
  meanwhile {
    poke = ["git: pushed infrastructure/configs/site.yaml \"{apiVersion: v1, kind: ConfigMap, metadata: {name: site, namespace: blog}}\""]
  }
  run "up" {
    fails = []
  }
  world {
    bootstraps = 1
    handover   = true
  }
}
