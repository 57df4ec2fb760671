# The storage is full before the first disk.
story "A storage that is full" {
  told = "The fourth machine found no room. The first three stayed behind, half a castle that had to be taken apart by hand."
  from = ["D 24", "000_d37cff72ac3af24f.txt"]

  meanwhile {
    poke = ["proxmox local-lvm: full"]
  }
  run "up" {
    exit  = 1
    says  = ["local-lvm"]
  }
  world {
    guests       = []
    nothing_left = true
  }
}
