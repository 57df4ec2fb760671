# Each waits for the other, and none of them is wrong.
story "Two units that wait for each other" {
  told = <<EOT
    The vault waited for its name, the name for the proxy in front of it, and the proxy for a secret of the vault. Everything waited, and
    nothing failed.
  EOT
  from = ["D 17", "MISSION B.4"]

  meanwhile {
    poke = [
      "git: pushed clusters/blue/vault.yaml \"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: vault, namespace: flux-system}, spec: {interval: 1m, path: ./apps/static, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, dependsOn: [{name: proxy}]}}\"",
      "git: pushed clusters/blue/proxy.yaml \"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: proxy, namespace: flux-system}, spec: {interval: 1m, path: ./apps/static, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, dependsOn: [{name: vault}]}}\"",
    ]
  }
  run "up" {
    exit = 1
    says = ["waits in a circle: proxy, vault"]
  }
  world {
    bootstraps = 1
    handover   = true
  }

  # One of them is taken away, and the rest comes.
  meanwhile {
    poke = ["git: removed clusters/blue/vault.yaml", "git: removed clusters/blue/proxy.yaml"]
  }
  run "up" {
    fails = []
  }
  world {
    handover = true
  }
}
