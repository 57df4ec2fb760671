//! A small HTTPS server of a test's own, for what a test's programs and castle fetch: releases, a Git repository.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::bare;
use crate::cluster::Authority;

/// A server that listens.
pub struct Web {
    listener: TcpListener,
    config: Arc<ServerConfig>,
}

impl Web {
    /// Listens at an address and port under some names, with a certificate of this authority.
    ///
    /// # Panics
    /// If the port is taken.
    pub async fn listen(
        authority: &Authority,
        names: &[&str],
        address: Ipv4Addr,
        port: u16,
    ) -> Self {
        let issued = authority.server("web", names, &[address]);
        let chain = vec![certificate(&issued.certificate)];
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes());
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the default versions are safe")
            .with_no_client_auth()
            .with_single_cert(chain, key.expect("a key of ours can be read"))
            .expect("a certificate of ours fits its key");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind((address, port)).await.expect("the port is free");
        Self { listener, config: Arc::new(config) }
    }

    /// Answers for as long as this is polled.
    pub async fn serve(
        &self,
        answer: impl AsyncFn(Request<Bytes>) -> Response<Bytes>,
    ) -> Infallible {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(()) = open.next() => {}
                accepted = self.listener.accept() => {
                    if let Ok((stream, _)) = accepted {
                        open.push(self.connection(stream, &answer));
                    }
                }
            }
        }
    }

    async fn connection(
        &self,
        stream: TcpStream,
        answer: &impl AsyncFn(Request<Bytes>) -> Response<Bytes>,
    ) {
        let Ok(stream) = TlsAcceptor::from(self.config.clone()).accept(stream).await else {
            return;
        };
        let service = service_fn(async |request: Request<hyper::body::Incoming>| {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(answer(Request::from_parts(head, body)).await.map(Full::new))
        });
        // Whoever asks may go away in the middle.
        drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
    }
}

/// The certificate of a PEM text.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate of ours can be read")
}

/// Answers as a Git server does, with the repositories of a folder: by Git's own program for that.
///
/// # Panics
/// If it can not be run, or does not answer as such programs do.
pub async fn answer_by_git(repositories: &Path, request: Request<Bytes>) -> Response<Bytes> {
    let (head, body) = request.into_parts();
    let header = |name: &str| text(&head.headers, name);
    let mut command = bare(Path::new("git"));
    command.arg("http-backend").env("GIT_PROJECT_ROOT", repositories);
    command.env("GIT_HTTP_EXPORT_ALL", "1").env("REQUEST_METHOD", head.method.as_str());
    command.env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "safe.directory").env("GIT_CONFIG_VALUE_0", "*");
    command.env("PATH_INFO", head.uri.path());
    command.env("QUERY_STRING", head.uri.query().unwrap_or_default());
    command.env("CONTENT_TYPE", header("content-type"));
    command.env("CONTENT_LENGTH", body.len().to_string());
    command.env("HTTP_CONTENT_ENCODING", header("content-encoding"));
    command.env("GIT_PROTOCOL", header("git-protocol"));
    let said = through(command, body).await.expect("git answers");
    let end = said.windows(4).position(|part| part == b"\r\n\r\n").expect("a head and a body");
    let lines = String::from_utf8_lossy(&said[..end]).into_owned();
    let mut response = Response::builder();
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        response = match name {
            "Status" => response.status(value.get(..3).unwrap_or("500")),
            _ => response.header(name, value),
        };
    }
    response.body(Bytes::from(said).slice(end + 4..)).expect("git's head is a head")
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Runs a program with this input to its end, on a thread of its own; its output.
async fn through(mut command: Command, input: Bytes) -> io::Result<Vec<u8>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        let ran = command.spawn().and_then(|mut child| {
            // A program that wants no more of its input closes it.
            drop(child.stdin.take().map(|mut pipe| pipe.write_all(&input)));
            child.wait_with_output()
        });
        // Nobody listens any more if the server is gone.
        drop(sender.send(ran));
    });
    let output = receiver.await.map_err(io::Error::other)??;
    Ok(output.stdout)
}
