# Synced, it says, and the values are empty.
story "Secrets that are synced and empty" {
  told = "The secret store said SecretSynced and had written empty values; whatever used them failed with errors about something else."
  from = ["D 13", "001_d31ab16b0c48f553.txt"]

  run "up" {
    break  = ["kubernetes: empty secrets for 5:00"]
    says   = ["empty"]
    within = "15m"
  }
  world {
    handover = true
  }
}
