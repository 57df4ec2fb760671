# Nothing is known, and nothing is left.
story "Razing a castle that nobody remembers" {
  told = "The state was empty and the machines ran on. Whoever wanted to be rid of them went by their numbers, and hoped that all of them were his."
  from = ["D 34", "002_5f1c564c1c8b92e6.txt"]

  run "up" {}
  meanwhile {
    forget = true
    poke   = ["proxmox 425: foreign vm"]
  }
  run "down" {
    says  = ["VM 425 `somebody-elses`", "somebody else's: it bears no mark of a castle"]
    fails = []
  }
  world {
    guests       = [425]
    untouched    = [425]
    nothing_left = true
  }
}
