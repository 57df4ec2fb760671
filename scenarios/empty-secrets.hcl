# Synced, it says, and the values are empty.
story "Secrets that are synced and empty" {
  told = "The secret store said SecretSynced and had written empty values; whatever used them failed with errors about something else."
  from = ["D 13"]

  run "up" {
    break  = ["kubernetes: empty secrets for 2:10"]
    exit   = 1
    says   = ["came through without a value"]
    fails  = ["engine/proof: invalid", "gitops/token: invalid"]
    within = "15m"
  }
  world {
    handover = false
  }

  # Once the values are there, the same command goes on from where it was.
  meanwhile {
    later = "5m"
  }
  run "up" {
    fails = []
  }
  world {
    handover   = true
    bootstraps = 1
  }
}
