//! Everything that enters from outside, built once in `main` and handed down.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::rsa::{KeyPair, KeySize};
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
    /// The folder that keeps what was fetched, by content; none: nothing is kept.
    pub cache: Option<PathBuf>,
}

/// The machine's own clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the time of day enters")]
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The operating system's randomness.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        SystemRandom::new().fill(buffer).expect("the operating system gives random bytes");
    }

    fn rsa_4096(&self) -> Vec<u8> {
        let pair = KeyPair::generate(KeySize::Rsa4096).expect("a key can be generated");
        let der: Pkcs8V1Der<'_> = pair.as_der().expect("a generated key can be written");
        der.as_ref().to_vec()
    }
}
