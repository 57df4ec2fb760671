# The state is gone, the machines are not.
story "The state folder is lost, and the castle stands" {
  told = <<EOT
    The folder with the state was deleted by mistake. The next attempt took the world for empty, asked for VM 421, and was told that
    VM 421 exists already. The way out was a script that deleted every VM in the range.
  EOT
  from = ["D 3", "002_5f1c564c1c8b92e6.txt"]

  run "up" {}
  meanwhile {
    forget = true
  }
  run "plan" {
    says  = ["adopt    vm/cp-01"]
    hides = ["create   vm/"]
  }
  run "up" {
    changes = 0
    hides   = ["already exists"]
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    bootstraps = 1
  }
}
