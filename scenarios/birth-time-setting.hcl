# A setting that a living cluster can not change.
story "A setting of the birth, changed in a living castle" {
  told = <<EOT
    A setting that belongs to the birth of a cluster was changed in place. The API server could no longer read what it had written
    itself, and every certificate and token in the cluster was void at once.
  EOT
  from = ["D 32", "MISSION B.2"]

  run "up" {}
  meanwhile {
    change {
      from = "  deadlines {"
      to   = <<EOT
  machine {
    cert_sans = ["castle.example.org"]
  }
  deadlines {
EOT
    }
  }
  run "plan" {
    exit = 1
    says = ["can be set at birth alone: it needs a rebirth", "take the change in the castle file back"]
  }
  run "up" {
    exit    = 1
    changes = 0
    says    = ["the additional names in certificates (certSANs)"]
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    running    = [421, 422, 423, 431, 432]
    bootstraps = 1
    handover   = true
  }
}
