# The vault shows us another folder.
story "An identity that sees another folder" {
  told = "The identity was given rights on a folder one level beside the castle's; the answer was an empty list, which looks like an empty vault."
  from = ["D 13"]

  meanwhile {
    poke = ["infisical: confined /elsewhere/**"]
  }
  run "up" {
    exit = 1
    says = ["path /ephemeral-castle/blue/proxmox", "is not for this identity to see"]
    fails = ["secrets/read: gone"]
  }
  world {
    nothing_left = true
  }
}
