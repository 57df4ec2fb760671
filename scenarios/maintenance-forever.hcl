# The config is taken, and nothing comes of it.
story "Maintenance mode without an end" {
  told = "A machine accepted its config and stayed in maintenance mode; it answered every question, without a certificate, and never joined. The script waited for an answer, and had one."
  from = ["D 8"]

  run "up" {
    break = ["talos worker-02: unwritable"]
    exit  = 1
    says  = ["still in maintenance mode: worker-02", "the config was taken, but not written"]
    fails = ["platform/config/worker-02: transient"]
  }
  world {
    members = 3
  }
}
