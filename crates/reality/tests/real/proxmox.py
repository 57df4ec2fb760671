"""What proxmoxer, a client that nobody here wrote, gets from a Proxmox. Arguments: host, port, CA file, node."""
import json
import os
import sys

from proxmoxer import ProxmoxAPI
from proxmoxer.core import AuthenticationError, ResourceException
from proxmoxer.tools import Tasks

host, port, ca, node = sys.argv[1:]
secret = os.environ["TOKEN_SECRET"]


def connect(value):
    return ProxmoxAPI(host, port=int(port), user="castle@pve", token_name="rehearsal", token_value=value,
                      verify_ssl=ca, backend="https", timeout=20)


def tell(what, value):
    print(json.dumps({"what": what, "value": value}, sort_keys=True), flush=True)


def refused(call):
    try:
        return {"value": call()}
    except (ResourceException, AuthenticationError) as error:
        return {"status": getattr(error, "status_code", 401), "text": str(error).strip()}


def done(upid):
    """Waits for a task as any script would; its exit status."""
    status = Tasks.blocking_status(proxmox, upid, timeout=60, polling_interval=0.05)
    return status and status["exitstatus"]


proxmox = connect(secret)
tell("version", sorted(proxmox.version.get()))
tell("nodes", [(n["node"], n["status"], n["type"]) for n in proxmox.nodes.get()])
tell("storages", sorted(s["storage"] for s in proxmox.nodes(node).storage.get()))
tell("content", proxmox.nodes(node).storage("local").content.get(content="import"))
vmid = int(proxmox.cluster.nextid.get())
tell("nextid", vmid)
here = proxmox.nodes(node)
upid = here.qemu.create(vmid=vmid, name="by-proxmoxer", memory=1024, cores=1, scsihw="virtio-scsi-pci",
                        scsi0="local-lvm:4", net0="virtio,bridge=vmbr0", description="two words & more: äöü")
parts = Tasks.decode_upid(upid)
tell("task", [parts["node"], parts["type"], parts["id"], parts["user"]])
tell("created", done(upid))
tell("log", here.tasks(upid).log.get()[-1]["t"])
config = here.qemu(vmid).config.get()
tell("config", {key: config.get(key) for key in ["name", "memory", "cores", "description"]})
tell("disk", "size=4G" in config["scsi0"])
tell("listed", [(v["vmid"], v["name"], v["status"]) for v in here.qemu.get() if v["vmid"] == vmid])
tell("next is another", int(proxmox.cluster.nextid.get()) != vmid)
tell("taken", refused(lambda: proxmox.cluster.nextid.get(vmid=vmid)))
tell("created again", refused(lambda: here.qemu.create(vmid=vmid)))
tell("unknown parameter", refused(lambda: here.qemu(vmid).config.put(nonsense=1)))
guest = here.qemu(vmid)
tell("started", done(guest.status.start.post()))
tell("runs", guest.status.current.get()["status"])
tell("started again", done(guest.status.start.post()))
tell("deleted while it runs", refused(guest.delete))
tell("changed while it runs", guest.config.put(cores=2, tags="b;a"))
tell("pending", [p["pending"] for p in guest.pending.get() if p["key"] == "cores" and "pending" in p])
tell("stopped", done(guest.status.stop.post()))
tell("changed", [guest.config.get()[key] for key in ["cores", "tags"]])
tell("resized", done(guest.resize.put(disk="scsi0", size="+1G")))
tell("shrunk", done(guest.resize.put(disk="scsi0", size="1G")))
tell("tasks", sorted({task["type"] for task in here.tasks.get()}))
tell("a task of nobody", refused(lambda: here.tasks("UPID:pve:00000001:00000001:00000001:qmstart:1:root@pam:").status.get()))
tell("no such storage", refused(lambda: here.storage("nowhere").status.get()))
tell("no such node", refused(lambda: proxmox.nodes("nowhere").qemu.get()))
tell("no such path", refused(lambda: proxmox.nosuch.get()))
tell("deleted", done(guest.delete()))
tell("config of nobody", refused(lambda: here.qemu(vmid).config.get()))
tell("wrong token", refused(lambda: connect("00000000-0000-0000-0000-000000000000").nodes.get()))
