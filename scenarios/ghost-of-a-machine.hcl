# An earlier self is still listed.
story "The ghost of a machine" {
  told = "A machine that had been deleted was still listed under its name; the new one got another, and the old name led nowhere."
  from = ["D 35", "MISSION B.4"]

  run "up" {
    break = ["talos worker-01: ghost 192.168.1.99"]
    fails = []
  }
  world {
    ready = ["cp-01", "cp-02", "cp-03", "worker-01", "worker-02"]
  }
}
