# kill -9, between a call and its answer.
story "Killed between a call and its answer" {
  told = "The laptop ran out of power while a VM was being cloned. The state knew nothing of it; the next run wanted to make it again."
  from = ["D 3", "002_5f1c564c1c8b92e6.txt"]

  run "up" {
    break = ["castle: killed after on POST /qemu the 3rd"]
    exit  = 137
  }
  run "up" {
    says  = ["system disk 1 -> 40 GiB"]
    fails = []
    hides = ["already exists"]
  }
  world {
    guests     = [421, 422, 423, 431, 432]
    bootstraps = 1
    tasks      = 0
    handover   = true
  }
  run "up" {
    changes = 0
  }
}
