# Two things break, both are told.
story "Two failures at the same time" {
  told = "Three jobs ran side by side and one exit code was kept, the last one's. The first failure was found by counting machines."
  from = ["D 30", "MISSION B.4"]

  run "up" {
    break = ["talos worker-01: dead", "talos worker-02: unwritable"]
    exit  = 1
    says = [
      "failed: platform/boot/worker-01",
      "nothing answers at the address of worker-01",
      "failed: platform/config/worker-02",
      "still in maintenance mode: worker-02",
    ]
  }
  world {
    members = 3
  }
}
