# A castle that needs no server for its secrets: they stand in a file that SOPS encrypted with age, beside this one.
#
#   age-keygen -o ~/.config/sops/age/keys.txt
#   castle secrets encrypt secrets.yaml --out secrets.enc.yaml     # then remove secrets.yaml
#   castle secrets check
#
# `castle rehearse -f castle.hcl up` raises it in the built-in datacenter, with every secret invented.

castle "amber" {
  talos      = "1.13.9"
  kubernetes = "1.36.3"

  # The first source that has a key wins: a variable such as CASTLE_GITHUB_TOKEN stands in for the file's entry.
  secrets "env" {
    prefix = "CASTLE_"
  }
  secrets "sops" {
    file    = "secrets.enc.yaml"
    require = ["registry.tls_key"] # the entry `tls_key` inside of `registry`
    shapes  = { "registry.tls_key" = "pem" }
  }

  # Neither of the two can be written to, so what the castle itself makes is kept here, encrypted: commit it.
  escrow {
    file       = "amber.escrow.enc.yaml"
    after_down = "keep"
  }

  platform "proxmox" {
    endpoint      = "https://pve.lan:8006"
    token         = secret("PROXMOX_TOKEN") # USER@REALM!ID=SECRET
    node          = "pve"
    storage       = "local-lvm"
    image_storage = "local"
    bridge        = "vmbr0"
    vmids         = "701-709"
  }

  network {
    subnet  = "10.30.0.0/24"
    gateway = "10.30.0.1"
    vip     = "10.30.0.10"
    pool    = "10.30.0.200-10.30.0.220"
  }

  nodes "control-plane" {
    count      = 1
    first_ip   = "10.30.0.11"
    first_vmid = 701
    cores      = 4
    memory     = "4GiB"
    disk       = "20GiB"
  }

  nodes "worker" {
    count      = 1
    first_ip   = "10.30.0.21"
    first_vmid = 702
    cores      = 4
    memory     = "8GiB"
    disk       = "20GiB"
    data_disk  = "50GiB"
  }

  gitops "flux" {
    url   = "https://github.com/example/tazlab-k8s"
    path  = "clusters/amber"
    token = secret("GITHUB_TOKEN") # placed in the cluster directly: External Secrets could not read it from here
  }
}
