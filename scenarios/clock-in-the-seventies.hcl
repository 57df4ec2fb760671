# The time of day is somebody else's.
story "A clock that falls back by fifty years" {
  told = "The battery of the computer's clock was empty: in the middle of a run it was 1976, and nothing that the machines had just signed was valid yet."
  from = ["003_c407def9a780b0fb.txt"]

  run "up" {
    break = ["castle: clock behind 438300:00:00 from 0:30"]
    exit  = 1
    says  = ["and that of this computer differ", "compare this computer's clock"]
  }
  # Its time is right again, and nothing was lost: what stands is kept.
  run "up" {}
  run "up" {
    changes = 0
  }
  run "down" {
    fails = []
  }
  world {
    guests = []
  }
}
