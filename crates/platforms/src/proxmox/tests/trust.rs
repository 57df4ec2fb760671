//! The host's certificate: believed by its fingerprint or its authority, or the line to add is shown.

use super::super::inventory_id;
use super::*;

/// Fingerprints of certificates that are made anew for each world.
fn masked(text: &str, fingerprint: &str) -> String {
    let pairs: Vec<String> = fingerprint
        .as_bytes()
        .chunks(2)
        .map(|pair| String::from_utf8_lossy(pair).to_uppercase())
        .collect();
    text.replace(&pairs.join(":"), "F1:…")
}

#[tokio::test(start_paused = true)]
async fn first_contact_shows_the_fingerprint_and_the_line_to_add() {
    let mut said = Vec::new();
    for pinned in [false, true] {
        let mut bench = Bench::new(1);
        let right = bench.host.proxmox_fingerprint().unwrap();
        // Another authority, as the system's are to a Proxmox that has made its own.
        let other = Trust::Authority(bench.life.bundle.kubernetes.certificate.clone());
        let wrong = Trust::Fingerprint("ab".repeat(32));
        bench.spec.platform.proxmox_mut().unwrap().trust = if pinned { wrong } else { other };
        let run = bench.up().await;
        assert_eq!(run.report.failures.len(), 1);
        said.push(masked(&told(&inventory_id(), &run.report.failures[&inventory_id()]), &right));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    platform/inventory (denied): list the guests of https://pve.lan:8006: GET https://pve.lan:8006/api2/json/access/permissions: no connection: the TLS handshake with pve.lan:8006 failed: nobody who is known here has signed its certificate (fingerprint F1:…)
      hint: compare the fingerprint with the one that the host shows (node, System, Certificates; or there: openssl x509 -in /etc/pve/local/pve-ssl.pem -noout -fingerprint -sha256); if they are equal, write in platform "proxmox": fingerprint = "F1:…"
    platform/inventory (denied): list the guests of https://pve.lan:8006: GET https://pve.lan:8006/api2/json/access/permissions: no connection: the TLS handshake with pve.lan:8006 failed: the certificate has the fingerprint F1:…, not the pinned AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB: somebody else answers, or it was renewed
      hint: compare the fingerprint with the one that the host shows (node, System, Certificates; or there: openssl x509 -in /etc/pve/local/pve-ssl.pem -noout -fingerprint -sha256); if they are equal, write in platform "proxmox": fingerprint = "F1:…"
    "#);
}
