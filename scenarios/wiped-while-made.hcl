# Machines that are just being made bear no mark yet, and are ours all the same.
story "Wiping a castle that is just being made" {
  told = "Creating was killed while Proxmox was still making three VMs. A script that went by marks left those three, and deleted the secrets that would have opened them."
  from = ["D 34"]

  run "up" {
    break = ["castle: killed after on POST /qemu the 3rd"]
    exit  = 137
  }
  meanwhile {
    forget = true
  }
  run "wipe" {
    fails = []
    says  = ["just being made", "nothing is left of it"]
  }
  world {
    guests       = []
    nothing_left = true
    tasks        = 0
  }
}
