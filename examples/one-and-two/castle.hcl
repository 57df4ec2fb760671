# One control plane and two workers, handed over to Flux; addresses computed from one subnet.

castle "green" {
  talos      = "1.13.9"
  kubernetes = "1.36.3"

  secrets "infisical" {
    host        = "https://eu.infisical.com"
    project     = "tazlab"
    environment = "dev"
    path        = "/ephemeral-castle/green/proxmox"
  }

  platform "proxmox" {
    endpoint      = "https://pve.lan:8006"
    token_id      = secret("PROXMOX_TOKEN_ID")
    token_secret  = secret("PROXMOX_TOKEN_SECRET")
    node          = "pve"
    storage       = "local-lvm"
    image_storage = "local"
    bridge        = "vmbr0"
    vmids         = "601-609"
  }

  network {
    subnet  = "10.20.0.0/22"
    gateway = cidrhost("10.20.0.0/22", 1)
    vip     = cidrhost("10.20.0.0/22", 10)
    pool    = "${cidrhost("10.20.0.0/22", 512)}-${cidrhost("10.20.0.0/22", 639)}"
  }

  nodes "control-plane" {
    count      = 1
    first_ip   = cidrhost("10.20.0.0/22", 11)
    first_vmid = 601
    cores      = 4
    memory     = "4GiB"
    disk       = "20GiB"
  }

  nodes "worker" {
    count      = 2
    first_ip   = cidrhost("10.20.0.0/22", 20)
    first_vmid = 602
    cores      = 4
    memory     = "8GiB"
    disk       = "20GiB"
    data_disk  = "50GiB"
  }

  gitops "flux" {
    url  = "https://github.com/example/tazlab-k8s"
    path = "clusters/green"
    vars = { cluster_name = "green" }
  }

  deadlines {
    platform = "20m"
    volume   = "3m"
  }
}
