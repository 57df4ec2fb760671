//! What happened, in lines that hold no secret, and one hash over all of them.

use sha2::{Digest, Sha256};

/// One request as the servers saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Virtual milliseconds since the world's birth.
    pub at: u64,
    /// The server, or the machine as `talos/421`.
    pub server: String,
    /// The method.
    pub method: String,
    /// The path without its query, which may carry values.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// Whether it counts as a change.
    pub counted: bool,
    /// How long the answer was on its way, in virtual milliseconds; 0 where that was not drawn.
    pub took: u64,
}

/// All requests and effects of one process, in order.
#[derive(Debug, Default)]
pub struct Trace {
    requests: Vec<Request>,
    hash: Sha256,
}

impl Trace {
    /// Adds a request.
    pub fn request(&mut self, request: Request) {
        let Request { at, server, method, path, status, .. } = &request;
        self.hash.update(format!("{at} {server} {method} {path} {status}\n"));
        self.requests.push(request);
    }

    /// Adds an effect that happened in a part of the datacenter.
    pub fn effect(&mut self, at: u64, part: &str) {
        self.hash.update(format!("{at} {part} effect\n"));
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// SHA-256 over everything so far: equal for two runs in which the same happened at the same time.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::encode(self.hash.clone().finalize())
    }
}
