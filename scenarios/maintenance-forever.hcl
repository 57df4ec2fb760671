# The config is taken, and nothing comes of it.
story "Maintenance mode without an end" {
  told = "A machine accepted its config and stayed in maintenance mode; it answered every question, without a certificate, and never joined. The script waited for an answer, and had one."
  from = ["D 8", "004_69aa89da61a94091.txt"]

  run "up" {
    break = ["talos worker-02: unwritable"]
    exit  = 1
    says  = ["worker-02", "maintenance"]
  }
  world {
    members = 3
  }
}
