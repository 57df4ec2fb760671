# Somebody applies into a namespace that nobody makes.
story "A namespace that is not there" {
  told = <<EOT
    Two places were to make a namespace, each left it to the other, and what was to lie in it was refused. Everything behind it waited
    without an error of its own.
  EOT
  from = ["D 18"]

  meanwhile {
    poke = ["git: pushed infrastructure/configs/site.yaml \"{apiVersion: v1, kind: ConfigMap, metadata: {name: site, namespace: nowhere}}\""]
  }
  run "up" {
    exit  = 1
    says  = ["namespaces \"nowhere\" not found", "the handover stands"]
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
