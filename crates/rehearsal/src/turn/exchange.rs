//! Requests and answers as the parts of the datacenter see them: parsed, decrypted, with who sent them.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// An HTTP request as a part sees it: parsed and decrypted, with who sent it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpCall {
    /// `GET`, `POST`, …
    pub method: String,
    /// The host that was asked, without port.
    pub host: String,
    /// The path, still percent-encoded.
    pub path: String,
    /// The query without `?`, still percent-encoded; empty if none.
    pub query: String,
    /// Header names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "body")]
    pub body: Vec<u8>,
    /// The client certificate that was presented and verified, if any.
    pub peer: Option<Peer>,
}

impl fmt::Debug for HttpCall {
    /// Without headers, query and body, where secrets travel.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} https://{}{}", self.method, self.host, self.path)
    }
}

/// Bodies are logged as text where they are text, so that a log can be read.
mod body {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Saved {
        Text(String),
        Base64(String),
    }

    pub(super) fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let saved = match std::str::from_utf8(body) {
            Ok(text) => Saved::Text(text.to_owned()),
            Err(_) => Saved::Base64(STANDARD.encode(body)),
        };
        saved.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        match Saved::deserialize(from)? {
            Saved::Text(text) => Ok(text.into_bytes()),
            Saved::Base64(text) => STANDARD.decode(text).map_err(D::Error::custom),
        }
    }
}

impl HttpCall {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Whom a client certificate names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// CN.
    pub common_name: String,
    /// O, all of them.
    pub organizations: Vec<String>,
}

/// The answer to an [`HttpCall`].
#[derive(Debug, Clone, PartialEq)]
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// The reason phrase, where the real server sends its own.
    pub reason: Option<String>,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// What follows.
    pub body: HttpBody,
    /// Whether the call changed the world, so that it must be logged and counted.
    pub mutated: bool,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpBody {
    /// All at once.
    Whole(Bytes),
    /// A Kubernetes watch: lines are read from the cluster by [`crate::kubernetes::Kubernetes::watch_lines`]
    /// from this place on, whenever the world has changed, until the client goes.
    Watch(Box<crate::kubernetes::WatchCursor>),
    /// Some of what is promised, then the connection is cut.
    Broken {
        /// What comes.
        sent: Bytes,
        /// How many bytes are promised.
        promised: u64,
    },
    /// None: the connection is cut instead of an answer.
    Cut,
}

/// Something as JSON text.
///
/// # Panics
/// Never: what is shown here is plain data with text for keys.
pub(crate) fn json_bytes(shown: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(shown).expect("plain data becomes JSON")
}

impl HttpReply {
    /// A JSON answer that changed nothing.
    #[must_use]
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        Self {
            status,
            reason: None,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: HttpBody::Whole(Bytes::from(json_bytes(body))),
            mutated: false,
        }
    }

    /// An answer with no body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            reason: None,
            headers: Vec::new(),
            body: HttpBody::Whole(Bytes::new()),
            mutated: false,
        }
    }

    /// Says that the call changed the world.
    #[must_use]
    pub fn changed(mut self) -> Self {
        self.mutated = true;
        self
    }
}
