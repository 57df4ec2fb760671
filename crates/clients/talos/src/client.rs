//! A connection to one machine's API: in maintenance mode (anyone, read mostly) or as the cluster's administrator.

use std::error::Error as _;
use std::future::Future;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_talos_proto::cosi::state_client::StateClient;
use castle_talos_proto::machine::machine_service_client::MachineServiceClient;
use castle_wire::connector::EndRecord;
use castle_wire::failure::{chain, chain_after};
use castle_wire::tls::{Fingerprint, Recorded, client_config};
use castle_wire::{ConnectError, Connector, Verify, World};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::access::{TalosAccess, TalosEntry};
use crate::error::TalosError;

/// The port of Talos' API.
pub const PORT: u16 = 50_000;

/// What is spoken after the handshake.
pub(crate) const PROTOCOLS: &[&[u8]] = &[b"h2"];

/// How long dialling and the handshake may take. Machines are near; one that boots does not answer at all, and the
/// sooner it is asked again, the sooner it is seen.
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// How long a machine may take to accept a connection. Whoever is there answers at once; one that is just booting is
/// met sooner by a new attempt than by the system's own, which waits for a second and longer.
const DIAL_DEADLINE: Duration = Duration::from_millis(500);

/// How long one call may take, unless the caller says otherwise.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// How often an idle connection is tried, and how long the answer may take. Without it a connection to a
/// machine that vanished would stay "open" for ever.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));

/// The longest message that Talos sends or takes: a machine config with many patches is some hundred KiB.
const MESSAGE_MAX: usize = 32 * 1024 * 1024;

/// A connection to one machine. Clones share it; when it breaks, the next call makes it anew, proven as before.
#[derive(Clone)]
pub struct Talos {
    pub(crate) address: Ipv4Addr,
    pub(crate) channel: Channel,
    ends: EndRecord,
    recorded: Option<Arc<Recorded>>,
}

impl Talos {
    /// Connects to a machine without an identity: any certificate is accepted and recorded, none is shown.
    ///
    /// # Errors
    /// If nothing answers.
    pub async fn maintenance(world: &World, address: Ipv4Addr) -> Result<Self, TalosError> {
        let recorded = Arc::new(Recorded::default());
        let verify = Verify::RecordOnly(recorded.clone());
        let config = client_config(&verify, None, world.clock.clone(), PROTOCOLS)
            .map_err(|source| TalosError::Tls { address, source })?;
        let mut talos = Self::connect(world, address, config).await?;
        talos.recorded = Some(recorded);
        Ok(talos)
    }

    /// Connects to a machine of the cluster that `access` opens, each side proving who it is.
    ///
    /// # Errors
    /// If nothing answers, or a machine that is not of this cluster.
    pub async fn secure(
        world: &World,
        address: Ipv4Addr,
        access: &TalosAccess,
    ) -> Result<Self, TalosError> {
        let entry = access.entry(world).map_err(|source| TalosError::Tls { address, source })?;
        Self::enter(world, address, &entry).await
    }

    /// Connects as [`Talos::secure`] does, with certificates that are read already.
    ///
    /// # Errors
    /// If nothing answers, or a machine that is not of this cluster.
    pub async fn enter(
        world: &World,
        address: Ipv4Addr,
        entry: &TalosEntry,
    ) -> Result<Self, TalosError> {
        Self::connect(world, address, entry.0.clone()).await
    }

    async fn connect(
        world: &World,
        address: Ipv4Addr,
        config: Arc<ClientConfig>,
    ) -> Result<Self, TalosError> {
        let connector = Connector::new(world.dialer.clone(), config)
            .deadline(CONNECT_DEADLINE)
            .dial_deadline(DIAL_DEADLINE);
        let ends = connector.ends();
        let uri = format!("https://{address}:{PORT}");
        let broken = |error: &tonic::transport::Error| connect_error(address, error);
        let channel = Endpoint::from_shared(uri)
            .map_err(|error| broken(&error))?
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .keep_alive_timeout(KEEP_ALIVE.1)
            .keep_alive_while_idle(true)
            .connect_with_connector(connector)
            .await
            .map_err(|error| broken(&error))?;
        Ok(Self { address, channel, ends, recorded: None })
    }

    /// The machine's address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The fingerprint of the certificate that a machine in maintenance mode showed.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.recorded.as_ref().and_then(|recorded| recorded.fingerprint())
    }

    /// The same as Talos prints it on the machine's console: base64 of the SHA-256 of the certificate's public key.
    #[must_use]
    pub fn console_fingerprint(&self) -> Option<String> {
        let certificate = self.recorded.as_ref()?.certificate()?;
        console_fingerprint(&certificate)
    }

    pub(crate) fn machine(&self) -> MachineServiceClient<Channel> {
        MachineServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_MAX)
            .max_encoding_message_size(MESSAGE_MAX)
    }

    pub(crate) fn state(&self) -> StateClient<Channel> {
        StateClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_MAX)
    }

    /// Waits for one answer, and words what goes wrong.
    pub(crate) async fn call<T>(
        &self,
        call: &'static str,
        deadline: Duration,
        answer: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, TalosError> {
        match timeout(deadline, answer).await {
            Err(_) => Err(TalosError::Deadline { address: self.address, call, after: deadline }),
            Ok(Err(status)) => Err(self.refused(call, &status)),
            Ok(Ok(reply)) => Ok(reply.into_inner()),
        }
    }

    pub(crate) fn refused(&self, call: &'static str, status: &tonic::Status) -> TalosError {
        let text = match status.source() {
            Some(below) => chain_after(status.message(), below),
            None => status.message().to_owned(),
        };
        // A status that the machine sent has no source: then the connection is as good as before.
        let ended = status.source().and_then(|_| self.ends.last());
        TalosError::Refused { address: self.address, call, code: status.code(), text, ended }
    }

    pub(crate) fn empty(&self, call: &'static str) -> TalosError {
        TalosError::Shape { address: self.address, call, problem: "it is empty".to_owned() }
    }
}

/// Finds our own error in what tonic made of it.
fn connect_error(address: Ipv4Addr, error: &tonic::transport::Error) -> TalosError {
    let mut step = error.source();
    while let Some(current) = step {
        if let Some(found) = current.downcast_ref::<ConnectError>() {
            return TalosError::Connect { address, source: found.clone() };
        }
        step = current.source();
    }
    TalosError::Broken { address, words: chain(error) }
}

/// What Talos prints on the console for the certificate of its maintenance mode.
fn console_fingerprint(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(STANDARD.encode(Sha256::digest(certificate.public_key().raw)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::decode;
    use crate::testing::{FixedClock, TestEntropy};

    #[test]
    fn the_console_prints_the_hash_of_the_public_key_alone() {
        let bundle = crate::Bundle::generate(&TestEntropy::new(3), &FixedClock).unwrap();
        let der = decode("test", &bundle.os.certificate).unwrap();
        let printed = console_fingerprint(&CertificateDer::from(der.clone())).unwrap();
        assert_eq!(STANDARD.decode(&printed).unwrap().len(), 32);
        let whole = STANDARD.encode(Sha256::digest(&der));
        assert_ne!(printed, whole);
        assert_eq!(console_fingerprint(&CertificateDer::from(vec![0, 1])), None);
    }
}
