# One of three is gone, and two may still decide.
story "A control plane that somebody deleted" {
  told = <<EOT
    The wrong row was selected in the web interface, and a control plane was gone with its disk. The provider's plan wanted to make it
    again and then waited for an etcd that still counted its dead member.
  EOT
  from = ["D 4"]

  run "up" {}
  meanwhile {
    poke = ["proxmox cp-02: destroyed"]
  }
  run "plan" {
    says  = ["it is gone: made again"]
    hides = ["replace "]
  }
  run "up" {
    fails = []
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    ready      = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
    members    = 3
    bootstraps = 1
  }
  run "up" {
    changes = 0
  }
}
