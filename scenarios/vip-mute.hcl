# The shared address takes connections and says nothing.
story "The shared address is there, and mute" {
  told = "The shared address answered a ping, and once even a connection, long before there was an API server behind it. One good answer was taken for a good address."
  from = ["D 5"]

  run "up" {
    break  = ["network: vip mute for 4:00"]
    says   = ["192.168.1.210 takes connections, but the castle's API server does not answer over verified TLS"]
    fails  = []
    within = "12m"
  }
  world {
    handover = true
  }
}
