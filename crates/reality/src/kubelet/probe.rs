//! The readiness probe of a container, really run against its address.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use castle_wire::tls::client_config;
use castle_wire::{Connector, Rest, Verify};
use http::Method;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::outside;

/// A probe as a manifest has it, with Kubernetes' own defaults.
pub(super) struct Probe {
    way: Way,
    port: u16,
    limit: Duration,
    /// How long after the start of the container it begins.
    pub(super) delay: Duration,
    /// How long between two of them.
    pub(super) period: Duration,
    /// How many in a row make it ready.
    pub(super) successes: u64,
    /// How many in a row make it not ready.
    pub(super) failures: u64,
}

enum Way {
    Connect,
    Http(String),
    Https(String),
}

impl Probe {
    /// The readiness probe of a container, if it has one.
    ///
    /// # Panics
    /// If it is of a kind that nobody can play.
    pub(super) fn of(container: &Value) -> Option<Self> {
        let probe = container.get("readinessProbe")?;
        let (way, at) = if let Some(get) = probe.get("httpGet") {
            let path = get.get("path").and_then(Value::as_str).unwrap_or("/").to_owned();
            let secure = get.get("scheme").and_then(Value::as_str) == Some("HTTPS");
            (if secure { Way::Https(path) } else { Way::Http(path) }, get)
        } else if let Some(at) = probe.get("tcpSocket").or_else(|| probe.get("grpc")) {
            (Way::Connect, at)
        } else {
            panic!("a probe that can not be played: {probe}");
        };
        let number =
            |name: &str, otherwise| probe.get(name).and_then(Value::as_u64).unwrap_or(otherwise);
        let seconds = |name: &str, otherwise| Duration::from_secs(number(name, otherwise));
        Some(Self {
            way,
            port: port(container, at.get("port").unwrap_or(&Value::Null)),
            limit: seconds("timeoutSeconds", 1),
            delay: seconds("initialDelaySeconds", 0),
            period: seconds("periodSeconds", 10),
            successes: number("successThreshold", 1),
            failures: number("failureThreshold", 3),
        })
    }

    /// Asks once.
    pub(super) async fn succeeds(&self, address: Ipv4Addr) -> bool {
        let asked = async {
            match &self.way {
                Way::Connect => TcpStream::connect((address, self.port)).await.is_ok(),
                Way::Http(path) => plain(address, self.port, path).await.is_some_and(is_well),
                Way::Https(path) => secure(address, self.port, path).await.is_some_and(is_well),
            }
        };
        timeout(self.limit, asked).await.unwrap_or(false)
    }
}

fn is_well(status: u16) -> bool {
    (200..400).contains(&status)
}

/// A port by its number, or by the name that the container gives it.
fn port(container: &Value, wanted: &Value) -> u16 {
    let number = match wanted {
        Value::String(name) => container
            .get("ports")
            .and_then(Value::as_array)
            .and_then(|ports| ports.iter().find(|port| port["name"] == name.as_str()))
            .and_then(|port| port["containerPort"].as_u64()),
        other => other.as_u64(),
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.unwrap_or_else(|| panic!("no port {wanted} in {container}"))
}

async fn plain(address: Ipv4Addr, port: u16, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect((address, port)).await.ok()?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}:{port}\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.ok()?;
    std::str::from_utf8(&head).ok()?.rsplit_once(' ')?.1.parse().ok()
}

/// Kubelets believe any certificate here, and so do we.
async fn secure(address: Ipv4Addr, port: u16, path: &str) -> Option<u16> {
    let world = outside();
    let verify = Verify::RecordOnly(Arc::default());
    let config = client_config(&verify, None, world.clock.clone(), &[b"http/1.1"]).ok()?;
    let rest =
        Rest::over(Connector::new(world.dialer, config), &format!("https://{address}:{port}"));
    let reply = rest.request(Method::GET, path, Vec::new(), Vec::new()).await.ok()?;
    Some(reply.status.as_u16())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_probe_is_read_with_the_defaults_of_kubernetes() {
        assert!(Probe::of(&json!({"name": "x"})).is_none());
        let probe = Probe::of(&json!({
            "ports": [{"name": "monitoring", "containerPort": 7472}],
            "readinessProbe": {"httpGet": {"path": "/metrics", "port": "monitoring"}, "initialDelaySeconds": 10}
        }));
        let probe = probe.unwrap();
        assert_eq!((probe.port, probe.delay.as_secs(), probe.period.as_secs()), (7472, 10, 10));
        assert_eq!((probe.successes, probe.failures, probe.limit.as_secs()), (1, 3, 1));
    }

    #[tokio::test]
    async fn only_a_server_that_answers_well_succeeds() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let get = json!({"readinessProbe": {"httpGet": {"path": "/ready", "port": port}}});
        let connect = json!({"readinessProbe": {"tcpSocket": {"port": port}}});
        let (get, connect) = (Probe::of(&get).unwrap(), Probe::of(&connect).unwrap());
        assert!(connect.succeeds(Ipv4Addr::LOCALHOST).await);
        drop(listener.accept().await.unwrap());
        for (status, well) in [("200 OK", true), ("500 Bad", false)] {
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; 10];
                stream.read_exact(&mut asked).await.unwrap();
                assert_eq!(&asked, b"GET /ready");
                let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(reply.as_bytes()).await.unwrap();
            };
            let ((), succeeded) = tokio::join!(serve, get.succeeds(Ipv4Addr::LOCALHOST));
            assert_eq!(succeeded, well, "{status}");
        }
        drop(listener);
        assert!(!connect.succeeds(Ipv4Addr::LOCALHOST).await);
    }
}
