# Somebody else's VM has one of our numbers.
story "A number that belongs to somebody else" {
  told = <<EOT
    A VM made by hand sat on a number of the castle's range. What comes by number alone deletes it, or stumbles over it half way, with
    the other machines already made.
  EOT
  from = ["D 3", "002_5f1c564c1c8b92e6.txt"]

  meanwhile {
    poke = ["proxmox 422: foreign vm"]
  }
  run "up" {
    exit  = 1
    says  = ["number 422 of cp-02: it is taken by VM `somebody-elses` on pve", "choose another vmid in the castle file"]
    fails = ["platform/preflight: conflict"]
  }
  world {
    guests    = [422]
    untouched = [422]
    vault_lacks = ["TALOS_SECRETS_BUNDLE"]
  }
  run "down" {}
  world {
    untouched    = [422]
    nothing_left = true
  }
}
