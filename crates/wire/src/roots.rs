//! The authorities that the operating system trusts, read from where the distributions keep them.
//!
//! No crate does this for us: on Linux it is one file of PEM, and a list that is compiled in would age with the binary
//! and would not know the authority of somebody's own company.

use std::fs;
use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::tls::TlsError;

/// Where distributions keep their list: Debian, Alpine, Arch and Nix; Fedora and Red Hat, new and old; SUSE; BSD.
const LISTS: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The certificates of the authorities that this system trusts; `named` is the list that `SSL_CERT_FILE` names, and
/// replaces the system's. Without any list there are none, and every server is refused.
///
/// # Errors
/// If the list that is named can not be read. One of the system's that can not is as good as none.
pub fn system_roots(named: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    if let Some(path) = named {
        let fail = |source| TlsError::RootsFile { file: path.display().to_string(), source };
        return Ok(read(&fs::read(path).map_err(fail)?));
    }
    let lists = LISTS.iter().filter_map(|path| fs::read(path).ok()).map(|text| read(&text));
    Ok(lists.into_iter().find(|roots| !roots.is_empty()).unwrap_or_default())
}

/// What of a list can be read; a broken entry costs itself alone.
fn read(text: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(text).filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_entry_costs_itself_alone() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["root".to_owned()]).unwrap();
        let good = params.self_signed(&key).unwrap().pem();
        let broken = "-----BEGIN CERTIFICATE-----\n%%%%\n-----END CERTIFICATE-----\n";
        let list = format!("# a comment\n{good}{broken}{good}");
        assert_eq!(read(list.as_bytes()).len(), 2);
        assert_eq!(read(b"").len(), 0);
    }

    #[test]
    fn a_list_that_is_named_must_be_there() {
        let error = system_roots(Some(Path::new("/nowhere/roots.pem"))).unwrap_err();
        assert_eq!(error.to_string(), "the list of authorities /nowhere/roots.pem can not be read");
    }
}
