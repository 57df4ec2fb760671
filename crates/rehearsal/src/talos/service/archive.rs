//! The kubeconfig as a machine sends it: an archive of one file whose end never comes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use castle_wire::tls::private_key;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, SerialNumber, date_time_ymd,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use sha2::{Digest, Sha256};
use tonic::Status;

use crate::turn::Authority;

/// The size of a block in a tar archive.
const BLOCK: usize = 512;

/// The fixed part of an Ed25519 private key in PKCS#8 (RFC 8410); 32 bytes of key follow.
const ED25519_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The text of an admin's kubeconfig. Its key follows from the authority, so that two runs are alike.
pub(super) fn kubeconfig(
    cluster: &str,
    server: &str,
    authority: &Authority,
) -> Result<String, Status> {
    let broken = |error: &dyn std::error::Error| Status::internal(error.to_string());
    let mut der = ED25519_PREFIX.to_vec();
    der.extend(Sha256::digest(format!("kubeconfig {}", authority.key)));
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), &PKCS_ED25519)
        .map_err(|error| broken(&error))?;
    let mut wanted = CertificateParams::default();
    wanted.serial_number = Some(SerialNumber::from(1));
    wanted.not_before = date_time_ymd(2026, 1, 1);
    wanted.not_after = date_time_ymd(2046, 1, 1);
    wanted.distinguished_name = DistinguishedName::new();
    wanted.distinguished_name.push(DnType::OrganizationName, "system:masters");
    wanted.distinguished_name.push(DnType::CommonName, "admin");
    wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let signer =
        private_key(&Secret::new(authority.key.clone())).map_err(|error| broken(&error))?;
    let signer = KeyPair::try_from(&signer).map_err(|error| broken(&error))?;
    let issuer =
        Issuer::from_ca_cert_pem(&authority.certificate, signer).map_err(|error| broken(&error))?;
    let certificate = wanted.signed_by(&key, &issuer).map_err(|error| broken(&error))?.pem();
    let encode = |text: &str| STANDARD.encode(text);
    let (authority, certificate) = (encode(&authority.certificate), encode(&certificate));
    let key = encode(&key.serialize_pem());
    Ok(format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: {cluster}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\nusers:\n- name: admin@{cluster}\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\ncontexts:\n- context:\n    cluster: {cluster}\n    namespace: default\n    user: admin@{cluster}\n  name: admin@{cluster}\ncurrent-context: admin@{cluster}\n"
    ))
}

/// A compressed archive of one file, without the blocks that would end it.
pub(super) fn archive(name: &str, content: &str) -> Vec<u8> {
    let mut archive = header(name, content.len());
    archive.extend(content.as_bytes());
    let padding = archive.len().next_multiple_of(BLOCK) - archive.len();
    archive.extend(vec![0; padding]);
    gzip(&archive)
}

/// The head of a file in a tar archive (ustar).
fn header(name: &str, size: usize) -> Vec<u8> {
    let mut header = vec![0_u8; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\0");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Wraps bytes as gzip does, in blocks that are stored as they are.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut wrapped = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        wrapped.push(u8::from(blocks.peek().is_none()));
        wrapped.extend(length.to_le_bytes());
        wrapped.extend((!length).to_le_bytes());
        wrapped.extend(block);
    }
    wrapped.extend(crc32(bytes).to_le_bytes());
    wrapped.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    wrapped
}

fn crc32(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 }
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_its_sums_and_no_end() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let archive = archive("kubeconfig", "apiVersion: v1\n");
        assert_eq!(&archive[..2], [0x1f, 0x8b]);
        let tar = &archive[15..archive.len() - 8];
        assert_eq!(tar.len(), 2 * BLOCK, "one header and one block, and nothing after");
        assert_eq!(&tar[..10], b"kubeconfig");
        assert_eq!(&tar[124..135], b"00000000017");
        assert!(tar[BLOCK..].starts_with(b"apiVersion: v1\n\0"));
    }
}
