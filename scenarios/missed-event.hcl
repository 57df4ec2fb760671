# Everything is ready, and one unit has not heard of it.
story "A unit that missed its turn" {
  told = "A unit waited for another that had been ready for ten minutes: the event that should have told it was lost, and it would not look again for an hour. A watchdog was written that prods whoever is asleep."
  from = ["D 23", "MISSION C"]

  run "up" {
    break  = ["flux apps-static: deaf"]
    says   = ["Kustomization flux-system/apps-static", "Flux is asked to look again"]
    fails  = []
  }
  world {
    units    = ["apps-static", "bridge", "configs", "flux-system", "monitoring", "operators-core", "operators-namespaces"]
    handover = true
  }
}
