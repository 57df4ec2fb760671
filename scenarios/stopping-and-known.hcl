# A machine that runs may have been told to stop.
story "Raised again while our own journal knows that it is being switched off" {
  told = <<EOT
    Destroying was killed while the machines were going off, each with its task written down. The next run found some of them running,
    called them done, and built on them until they went off.
  EOT
  from = ["D 34"]

  run "up" {}
  run "down" {
    break = ["castle: killed after on GET */tasks/*qmstop*"]
    exit  = 137
  }
  # What is half razed is no ground to build on.
  run "up" {
    exit    = 3
    changes = 0
    says    = ["a `down` of this castle was begun and not finished", "finish it with `castle down`"]
  }
  run "down" {
    fails = []
  }
  world {
    guests       = []
    tasks        = 0
    nothing_left = true
  }
  run "up" {
    fails = []
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    running    = [421, 422, 423, 431, 432]
    bootstraps = 2
    tasks      = 0
  }
}
