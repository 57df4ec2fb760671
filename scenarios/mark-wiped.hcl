# Whose is it, when its label is gone?
story "Tags tidied away by hand" {
  told = <<EOT
    Somebody tidied the tags up in the web interface. What had told which machines belonged to the cluster was gone, and whatever
    went by the tags took them for somebody else's.
  EOT
  from = ["D 3"]

  run "up" {}
  meanwhile {
    forget = true
    poke = [
      "proxmox cp-01: edited tags",
      "proxmox worker-01: edited tags mine",
      "proxmox worker-01: edited description \"rebooted on Monday\"",
    ]
  }
  run "plan" {
    says = ["number and UUID prove it ours"]
  }
  run "up" {
    fails = []
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    bootstraps = 1
  }
  run "up" {
    changes = 0
  }
  run "down" {}
  world {
    nothing_left = true
  }
}
