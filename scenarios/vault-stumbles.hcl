# The vault is away for a moment.
story "A vault that stumbles" {
  told = "The hosted vault answered one call with a page of its proxy and the next with 429; both were taken for the last word."
  from = ["the faults asked for"]

  run "up" {
    break = ["infisical: page 502 for 0:20", "infisical: limits 0:07 twice"]
    fails = []
  }
  world {
    handover = true
  }
}
