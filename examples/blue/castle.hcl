# The castle `blue`: three control planes and two workers on one Proxmox host.
#
# `castle rehearse up` raises it in the built-in datacenter, without any credential.
# Every key is explained in docs/reference/castle-file.md.

castle "blue" {
  talos      = "1.13.9"
  kubernetes = "1.36.3"

  # Where secrets come from. Nothing secret stands in this file: `secret("KEY")` names a key in this folder
  # of Infisical, and the value is read at the moment of use.
  secrets "infisical" {
    host        = "https://eu.infisical.com"
    project     = "tazlab"
    environment = "dev"
    path        = "/ephemeral-castle/blue/proxmox"
    require     = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] # beyond those the castle itself uses
  }

  # Where machines come from. The certificate of the host is verified by the roots of your system; for the
  # self-signed one that Proxmox makes, give `fingerprint = "AB:CD:…"` or `ca = file("pve-root-ca.pem")`.
  platform "proxmox" {
    endpoint      = "https://pve.lan:8006"
    token_id      = secret("PROXMOX_TOKEN_ID")
    token_secret  = secret("PROXMOX_TOKEN_SECRET")
    node          = "pve"
    storage       = "local-lvm" # disks
    image_storage = "local"     # a storage that takes content `import`
    bridge        = "vmbr0"
    vmids         = "421-432" # castle never touches a VM outside this range
  }

  # All addresses are fixed: no DHCP server can move a machine whose certificates carry its address.
  network {
    subnet      = "192.168.1.0/24"
    gateway     = "192.168.1.1"
    vip         = "192.168.1.210" # shared by the control planes; kubectl speaks to this one
    nameservers = ["192.168.1.1"]
    ntp         = ["time.cloudflare.com"]
    pool        = "192.168.1.230-192.168.1.245" # for services of type LoadBalancer
  }

  # cp-01 to cp-03: 192.168.1.211 to .213, VM 421 to 423.
  nodes "control-plane" {
    count      = 3
    first_ip   = "192.168.1.211"
    first_vmid = 421
    cores      = 4
    memory     = "8GiB"
    disk       = "40GiB"
  }

  # worker-01 and worker-02: 192.168.1.214 and .215, VM 431 and 432.
  nodes "worker" {
    count      = 2
    first_ip   = "192.168.1.214"
    first_vmid = 431
    cores      = 4
    memory     = "8GiB"
    disk       = "40GiB"
    data_disk  = "100GiB" # Longhorn keeps its volumes here
  }

  # The layers inside the cluster. `engine` and `networking` need no setting, so they are not written here.
  storage "longhorn" {
    replicas = 2
  }

  # What the cluster hosts comes from Git. After the handover castle only observes.
  gitops "flux" {
    url   = "https://github.com/example/tazlab-k8s"
    path  = "clusters/blue"
    token = secret("GITHUB_TOKEN")
    vars = {
      domain       = "tazlab.net"
      cluster_name = "blue"
    }
  }

  deadlines {
    vm = "5m"
  }
}
