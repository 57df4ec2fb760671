# The token goes away in the middle of the run.
story "A token that is revoked on the way" {
  told = "The token expired between the third machine and the fourth. Everything that was asked for afterwards was refused, again and again, as if a refusal could pass."
  from = ["D 7", "001_d31ab16b0c48f553.txt"]

  run "up" {
    break = ["proxmox: token revoked from 0:20"]
    exit  = 1
    says  = ["401"]
  }
  world {
    handover = false
  }
}
