# The time of day is somebody else's.
story "The clock of the computer jumps in the middle" {
  told = "The computer woke up, its clock was an hour ahead, and was set right while the castle rose. Certificates that had just been made were not valid yet."
  from = ["the faults asked for"]

  run "up" {
    break = ["castle: clock behind 1:00:00 from 0:30"]
    fails = []
    says  = ["the clock of this computer was set"]
  }
  run "up" {
    changes = 0
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    bootstraps = 1
    handover   = true
  }
}
