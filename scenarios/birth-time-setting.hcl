# A setting that a living cluster can not change.
story "A setting of the birth is changed in a living castle" {
  told = "A setting that belongs to the birth of a cluster was changed in place. The API server could no longer read what it had written, and every token in the cluster was void."
  from = ["D 32", "004_69aa89da61a94091.txt"]

  run "up" {}
  meanwhile {
    change {
      from = "nameservers = [\"192.168.1.1\"]"
      to   = "nameservers = [\"192.168.1.1\"]\n    pods = \"10.99.0.0/16\""
    }
  }
  run "plan" {
    says = ["pods"]
  }
}
