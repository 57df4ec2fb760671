//! The certificates of a real cluster: one authority, its server and whoever calls it.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// An authority of a test's own; copies are the same one.
#[derive(Clone)]
pub struct Authority {
    /// Its certificate, PEM.
    pub certificate: String,
    issuer: Rc<Issuer<'static, KeyPair>>,
}

/// A certificate and its key, PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// A new one.
    ///
    /// # Panics
    /// If no key can be made.
    #[must_use]
    pub fn new() -> Self {
        let key = key();
        let mut params = params("castle-test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).expect("an authority signs itself").pem();
        Self { certificate, issuer: Rc::new(Issuer::new(params, key)) }
    }

    /// A certificate for a server with these names and addresses.
    ///
    /// # Panics
    /// If a name is none.
    #[must_use]
    pub fn server(&self, name: &str, names: &[&str], addresses: &[Ipv4Addr]) -> Issued {
        let mut params = params(name);
        let dns = names.iter().map(|name| {
            SanType::DnsName((*name).try_into().expect("a test's names are plain letters"))
        });
        let addresses = addresses.iter().map(|address| SanType::IpAddress(IpAddr::V4(*address)));
        params.subject_alt_names = dns.chain(addresses).collect();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// A certificate for somebody of a group.
    ///
    /// # Panics
    /// If no key can be made.
    #[must_use]
    pub fn client(&self, name: &str, group: &str) -> Issued {
        let mut params = params(name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, mut params: CertificateParams) -> Issued {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = key();
        let certificate = params.signed_by(&key, &*self.issuer).expect("the authority signs");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A new key.
pub(super) fn key() -> KeyPair {
    KeyPair::generate().expect("a key can be made")
}
