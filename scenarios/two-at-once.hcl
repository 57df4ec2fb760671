# Two things break, both are told.
story "Two failures at the same time" {
  told = "Three jobs ran side by side and one exit code was kept, the last one's. The first failure was found by counting machines."
  from = ["D 30", "000_d37cff72ac3af24f.txt"]

  run "up" {
    break = ["talos worker-01: dead", "talos worker-02: unwritable"]
    exit  = 1
    says  = ["worker-01", "worker-02"]
  }
  world {
    members = 3
  }
}
