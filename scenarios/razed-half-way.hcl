# Half of it is gone, and nobody remembers that it was to go.
story "Raising what was half razed, without its state" {
  told = <<EOT
    Destroying was broken off after two of three control planes had gone, and the state went with the laptop. The next attempt made the
    missing two anew beside the one that was left; they waited for an etcd that could never have a quorum again.
  EOT
  from = ["D 4"]

  run "up" {}
  run "down" {
    break = ["castle: killed after on DELETE /qemu/42* the 2nd"]
    exit  = 137
  }
  meanwhile {
    forget = true
  }
  run "up" {
    exit  = 1
    says  = ["etcd has no quorum", "`castle down`, then `castle up`"]
    hides = ["ghost"]
  }
  run "up" {
    exit    = 1
    says    = ["of its 3 control planes", "is left"]
    changes = 0
  }
  run "down" {
    fails = []
  }
  world {
    guests       = []
    nothing_left = true
  }
}
