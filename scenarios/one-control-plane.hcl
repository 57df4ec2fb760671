# A small castle restarts while it is born.
story "One control plane, restarted at birth" {
  told = "With one control plane, its controllers lose their lease whenever the machine is busy and start again three or four times. A gate that counts restarts calls that a failure."
  from = ["D 28"]

  castle {
    change {
      from = "count      = 3"
      to   = "count      = 1"
    }
  }
  run "up" {
    break = ["talos cp-01: reboots during api"]
    says  = ["cp-01 cannot be asked: machine 192.168.1.211 answered ServiceList with Unavailable"]
    fails = []
  }
  world {
    guests     = [421, 431, 432]
    members    = 1
    bootstraps = 1
    handover   = true
  }
}
