//! Everything that enters from outside, built once in `main` and handed down.

use std::sync::Arc;

use castle_model::time::Moment;
use rustls_pki_types::CertificateDer;

use crate::dialer::Dialer;

/// Tells the time of day. Waiting is tokio's business; this is for stamps and certificates.
pub trait Clock: Send + Sync {
    /// The moment it is now.
    fn now(&self) -> Moment;
}

/// Gives random bytes: the operating system's, or seeded ones in the rehearsal.
pub trait Entropy: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, buffer: &mut [u8]);

    /// An RSA-4096 private key as PKCS#8 DER. A fresh one costs a second, so the rehearsal has a small pool.
    fn rsa_4096(&self) -> Vec<u8>;
}

/// The outside, as castle sees it.
#[derive(Clone)]
pub struct World {
    /// Opens connections.
    pub dialer: Arc<dyn Dialer>,
    /// Tells the time of day.
    pub clock: Arc<dyn Clock>,
    /// Gives random bytes and keys.
    pub entropy: Arc<dyn Entropy>,
    /// Certificates of the authorities that public servers are verified by.
    pub roots: Arc<Vec<CertificateDer<'static>>>,
}
