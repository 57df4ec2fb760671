//! Plain requests to an API server, for what our client has no call for.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use castle_kubernetes::KubeAccess;
use castle_wire::tls::client_config;
use castle_wire::{CallError, ClientIdentity, Connector, Dialer, Rest, Verify, World};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Uri};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

/// What an API server answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status.
    pub code: u16,
    /// The body; text that is no JSON is a string.
    pub body: Value,
}

impl Answer {
    /// Stops the test if this is no success.
    ///
    /// # Panics
    /// Then.
    pub fn must_succeed(&self) {
        assert!((200..300).contains(&self.code), "{} {}", self.code, self.body);
    }

    /// The body of an answer that is a success.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn expect_success(self) -> Value {
        self.must_succeed();
        self.body
    }
}

/// A caller of one API server.
#[derive(Clone)]
pub struct Raw {
    rest: Rest,
    /// Where it is, and how a connection to it is made.
    place: (String, u16),
    dialer: Arc<dyn Dialer>,
    config: Arc<ClientConfig>,
}

impl Raw {
    /// A caller with somebody's certificates.
    ///
    /// # Panics
    /// If these can not be used.
    #[must_use]
    pub fn new(world: &World, access: &KubeAccess) -> Self {
        let identity = ClientIdentity::from_pem(&access.certificate, &access.key)
            .expect("a test's certificates can be read");
        let verify = Verify::Authority(access.authority.clone());
        let config = client_config(&verify, Some(identity), world.clock.clone(), &[b"http/1.1"])
            .expect("a test's certificates can be used");
        let connector = Connector::new(world.dialer.clone(), config.clone());
        let uri: Uri = access.server.parse().expect("an API server is at a URI");
        let place = (uri.host().unwrap_or_default().to_owned(), uri.port_u16().unwrap_or(443));
        let dialer = world.dialer.clone();
        Self { rest: Rest::over(connector, &access.server), place, dialer, config }
    }

    /// Sends bytes as they are, on a connection of their own, and gives what comes until it ends, or until nothing comes for
    /// so long; and whether it ended.
    ///
    /// # Errors
    /// If there is no connection.
    ///
    /// # Panics
    /// If the server's name is none.
    pub async fn bytes(&self, bytes: &[u8], patience: Duration) -> io::Result<(Vec<u8>, bool)> {
        let (host, port) = &self.place;
        let name = ServerName::try_from(host.clone()).expect("a server has a name");
        let stream = self.dialer.dial(host, *port).await?;
        let connector = TlsConnector::from(self.config.clone());
        let (mut hears, mut says) = tokio::io::split(connector.connect(name, stream).await?);
        let (mut came, mut piece) = (Vec::new(), vec![0; 16 * 1024]);
        // Whoever is cut off while speaking still hears why.
        let say = async {
            drop(says.write_all(bytes).await);
            drop(says.flush().await);
            std::future::pending::<()>().await;
        };
        let hear = async {
            loop {
                match tokio::time::timeout(patience, hears.read(&mut piece)).await {
                    Ok(Ok(size @ 1..)) => came.extend_from_slice(&piece[..size]),
                    Ok(_) => return true,
                    Err(_) => return false,
                }
            }
        };
        let ended = tokio::select! {
            ended = hear => ended,
            () = say => false,
        };
        Ok((came, ended))
    }

    /// Asks something, and reads the whole answer.
    ///
    /// # Errors
    /// If there is no answer.
    ///
    /// # Panics
    /// If the media type is none.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: &Value,
    ) -> Result<Answer, CallError> {
        let media = HeaderValue::from_str(media).expect("a media type is plain text");
        let json = HeaderValue::from_static("application/json");
        let headers = vec![(CONTENT_TYPE, media), (ACCEPT, json)];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.rest.request(method, path, headers, body).await?;
        let text = reply.text();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { code: reply.status.as_u16(), body })
    }

    /// Sends a body as it is, with headers of the caller's choice.
    ///
    /// # Errors
    /// If there is no answer.
    ///
    /// # Panics
    /// If a header is none.
    pub async fn say(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: &str,
    ) -> Result<Answer, CallError> {
        let value = |text| HeaderValue::from_str(text).expect("a header is plain text");
        let headers = headers.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        let reply = self.rest.request(method, path, headers, body.to_owned()).await?;
        let text = reply.text();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { code: reply.status.as_u16(), body })
    }

    /// Gets a path.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn get(&self, path: &str) -> Result<Answer, CallError> {
        self.ask(Method::GET, path, "application/json", &Value::Null).await
    }

    /// Gets a path as a table, as kubectl does.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn table(&self, path: &str) -> Result<Answer, CallError> {
        self.accepting("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", path).await
    }

    /// Gets a path in a form of the caller's choice.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn accepting(&self, accept: &'static str, path: &str) -> Result<Answer, CallError> {
        let headers = vec![(ACCEPT, HeaderValue::from_static(accept))];
        let reply = self.rest.request(Method::GET, path, headers, String::new()).await?;
        let text = reply.text();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { code: reply.status.as_u16(), body })
    }

    /// Deletes a path at once.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn delete(&self, path: &str) -> Result<Answer, CallError> {
        self.ask(Method::DELETE, path, "application/json", &Value::Null).await
    }

    /// Creates an object in a collection.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, CallError> {
        self.ask(Method::POST, path, "application/json", body).await
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Answer, CallError> {
        self.ask(Method::PUT, path, "application/json", body).await
    }

    /// Merges fields into an object.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn merge(&self, path: &str, body: &Value) -> Result<Answer, CallError> {
        self.ask(Method::PATCH, path, "application/merge-patch+json", body).await
    }

    /// Applies an object on the server's side; the path names the field manager.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn apply(&self, path: &str, body: &Value) -> Result<Answer, CallError> {
        self.ask(Method::PATCH, path, "application/apply-patch+yaml", body).await
    }
}
