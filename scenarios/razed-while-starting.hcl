# A start that was asked for before comes after.
story "Razing a castle whose machines are just being switched on" {
  told = "Creating was killed when the first machines had been told to start. Deleting them failed, because they came up in between."
  from = ["D 34"]

  run "up" {
    break = ["castle: killed after on POST /status/start the 3rd"]
    exit  = 137
  }
  meanwhile {
    forget = true
  }
  run "down" {
    fails = []
    says  = ["nothing is left of it"]
  }
  world {
    guests       = []
    nothing_left = true
  }
}
