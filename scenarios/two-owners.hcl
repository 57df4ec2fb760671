# Git installs what castle installs.
story "Two owners of one component" {
  told = "MetalLB was installed by the provisioning and by Flux. Each put the other's change back, every few minutes, and the addresses flapped."
  from = ["001_d31ab16b0c48f553.txt", "MISSION A.1"]

  meanwhile {
    poke = ["git: pushed infrastructure/bridge/metallb.yaml \"{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: metallb, namespace: metallb-system}, spec: {interval: 15m, chart: {spec: {chart: metallb, sourceRef: {kind: HelmRepository, name: metallb}}}}}\""]
  }
  run "up" {
    exit  = 1
    says  = ["HelmRelease metallb-system/metallb installs MetalLB, and so does castle"]
    fails = ["gitops/repository: conflict"]
  }
  world {
    guests      = []
    vault_lacks = ["TALOS_SECRETS_BUNDLE"]
  }
  run "down" {}
  world {
    nothing_left = true
  }
}
