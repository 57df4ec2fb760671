//! proxmoxer, the Python client of Proxmox' API, against the emulated one.

use castle_reality::asked::scripts::PROXMOXER;
use castle_reality::{Real, run};

use crate::datacenter::{Datacenter, LIMIT, proxmox};
use crate::setting::{folder, pem, told_by_script, with, write};

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_stranger_makes_and_removes_a_machine() {
    let Some(real) = Real::find("proxmoxer") else { return };
    let datacenter = Datacenter::open(proxmox(81)).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let ca = write(place.path(), "ca.pem", &roots).display().to_string();
    let birth = datacenter.host.read(|world| world.birth.proxmox.clone());
    let script = include_str!("proxmox.py");
    let words = ["-c", script, "127.0.81.2", "8006", &ca, &birth.node];
    let mut command = with(real.python(), &words);
    command.env("TOKEN_SECRET", &birth.token_secret);
    let told = run(command, LIMIT).await.expect_success();
    told_by_script(PROXMOXER, &told);
}
