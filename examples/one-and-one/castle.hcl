# The smallest castle with a worker: one control plane, one worker, no GitOps.
#
# One control plane means that the cluster is away while that machine is: good for trying things out.

castle "small" {
  talos      = "1.13.9"
  kubernetes = "1.36.3"

  secrets "infisical" {
    host        = "https://eu.infisical.com"
    project     = "tazlab"
    environment = "dev"
    path        = "/ephemeral-castle/small/proxmox"
  }

  platform "proxmox" {
    endpoint      = "https://pve.lan:8006"
    token_id      = secret("PROXMOX_TOKEN_ID")
    token_secret  = secret("PROXMOX_TOKEN_SECRET")
    node          = "pve"
    storage       = "local-lvm"
    image_storage = "local"
    bridge        = "vmbr0"
    vmids         = "501-502"
  }

  network {
    subnet  = "192.168.1.0/24"
    gateway = "192.168.1.1"
    vip     = "192.168.1.50"
    pool    = "192.168.1.60-192.168.1.69"
  }

  nodes "control-plane" {
    count      = 1
    first_ip   = "192.168.1.51"
    first_vmid = 501
    cores      = 2
    memory     = "4GiB"
    disk       = "20GiB"
  }

  nodes "worker" {
    count      = 1
    first_ip   = "192.168.1.52"
    first_vmid = 502
    cores      = 2
    memory     = "4GiB"
    disk       = "20GiB"
    data_disk  = "50GiB"
  }

  # One node carries volumes, so one copy is all there can be.
  storage "longhorn" {
    replicas = 1
  }
}
