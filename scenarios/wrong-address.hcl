# A machine boots to an address that nobody gave it.
story "A machine at another address" {
  told = <<EOT
    After a restart of the host, the machines came back with other addresses. Certificates named the old ones, etcd looked for its
    members where nobody was, and the quorum was lost. From then on all addresses were fixed.
  EOT
  from = ["D 6", "003_c407def9a780b0fb.txt"]

  run "up" {
    break = ["talos worker-01: wrong address 192.168.1.77"]
    exit  = 1
    says  = ["nothing answers at the address of worker-01", "it has another address (a DHCP server"]
    fails = ["platform/boot/worker-01: transient"]
  }
  world {
    running = [421, 422, 423, 431, 432]
  }
  run "down" {}
  world {
    nothing_left = true
  }
}
