# The pod runs, and the webhook behind it does not answer yet.
story "A webhook that is not serving yet" {
  told = <<EOT
    MetalLB's pod was Running, so its address pool was applied, and refused: the webhook of the very same pod came up some seconds
    later. A sleep was put in between; it was too short on some days and too long on all others.
  EOT
  from = ["D 1", "002_5f1c564c1c8b92e6.txt"]

  run "up" {
    break = [
      "kubernetes: webhook refused metallb-system/metallb-webhook-service for 3:00",
      "kubernetes: webhook refused external-secrets/external-secrets-webhook for 3:00",
    ]
    # Even on a quiet day the pool meets it for some seconds; the store does not.
    says = [
      "connect: connection refused",
      "failed calling webhook \"ipaddresspoolvalidationwebhook.metallb.io\"",
      "failed calling webhook \"validate.clustersecretstore.external-secrets.io\"",
    ]
    fails  = []
    within = "10m"
  }
  world {
    ready    = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    handover = true
  }
}
