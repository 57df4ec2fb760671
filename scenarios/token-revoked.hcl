# The token goes away in the middle of the run.
story "A token that is revoked on the way" {
  told = "The token expired between the third machine and the fourth. Everything that was asked for afterwards was refused, again and again, as if a refusal could pass."
  from = ["the faults asked for"]

  run "up" {
    break = ["proxmox: token revoked from 0:20"]
    exit  = 1
    says  = ["401"]
  }
  world {
    handover = false
  }
}
