# The castle `iron`: one control plane and two workers that stand already.
#
# The machines may be bare metal or VMs of anybody's making. Boot each from a Talos image (the image factory makes
# one with the extensions below) and leave it waiting in maintenance mode at its address; castle does the rest.
# `castle rehearse up` raises this castle in the built-in datacenter, without any credential.

castle "iron" {
  talos      = "1.13.9"
  kubernetes = "1.36.3"

  secrets "infisical" {
    host        = "https://eu.infisical.com"
    project     = "tazlab"
    environment = "dev"
    path        = "/ephemeral-castle/iron"
  }

  # Nothing is made: no VM ids, no sizes. `castle down` resets the machines through Talos, back to maintenance mode.
  platform "machines" {
    installer    = "metal"
    install_disk = "/dev/nvme0n1"
    link         = "enp1s0" # the interface that gets the address; Talos' console shows its name
    extensions   = ["siderolabs/iscsi-tools", "siderolabs/util-linux-tools"]
  }

  network {
    subnet  = "192.168.7.0/24"
    gateway = "192.168.7.1"
    vip     = "192.168.7.10"
    pool    = "192.168.7.100-192.168.7.120"
  }

  nodes "control-plane" {
    count    = 1
    first_ip = "192.168.7.11"
  }

  # With their SMBIOS UUIDs named, a config with keys in it can never go to another machine at the address.
  nodes "worker" {
    count     = 2
    first_ip  = "192.168.7.21"
    data_disk = true # an empty second disk in each, for Longhorn
    uuids = [
      "4c4c4544-0039-3010-8036-b7c04f4b4d31",
      "4c4c4544-0039-3010-8036-b7c04f4b4d32",
    ]
  }

  # What Talos is told beyond the necessary; every line may be left out.
  machine {
    cert_sans = ["iron.lan"]

    registry "docker.io" {
      mirrors = ["https://mirror.gcr.io"]
    }

    patch "sysctls" {
      for  = "worker"
      file = "patches/sysctls.yaml"
    }
  }
}
