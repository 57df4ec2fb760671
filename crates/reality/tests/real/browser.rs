//! A real browser, driven over the WebDriver protocol: JSON over plain HTTP on loopback.

use std::path::Path;
use std::time::Duration;

use castle_reality::{Real, Running, nap};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::setting::{folder, with};

/// How long a browser may take for one thing, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// The key of an element in WebDriver's JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What every browser of a test is started with: no screen, no sandbox of its own (tests may run as root), nobody called home.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files=false",
    "--window-size=1280,900",
];

/// A browser that goes with the test.
pub(crate) struct Browser {
    port: u16,
    session: String,
    _driver: Running,
    _home: TempDir,
}

impl Browser {
    /// Starts a browser; without `script` no page runs any.
    pub(crate) async fn start(chromium: &Real, driver: &Real, script: bool) -> Self {
        let home = folder();
        let log = home.path().join("driver.log");
        let mut command = with(driver.program(), &["--port=0"]);
        command.env("HOME", home.path()).env("TMPDIR", home.path());
        let running = Running::start_into(command, &log);
        let port = timeout(PATIENCE, port(&log)).await.expect("the driver says where it listens");
        let profile = format!("--user-data-dir={}", home.path().join("profile").display());
        let mut flags: Vec<String> = FLAGS.iter().map(ToString::to_string).collect();
        flags.push(profile);
        let mut options = json!({"binary": chromium.file("chromium"), "args": flags});
        if !script {
            options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
        }
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": options,
        }}});
        let mut browser = Self { port, session: String::new(), _driver: running, _home: home };
        let begun = browser.ask("POST", "/session", &wanted).await;
        begun["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        browser
    }

    /// Opens a file.
    pub(crate) async fn open(&self, page: &Path) {
        self.call("url", json!({"url": format!("file://{}", page.display())})).await;
    }

    /// What a script of ours says about the page; it runs beside the page's own.
    pub(crate) async fn say(&self, script: &str) -> Value {
        self.call("execute/sync", json!({"script": script, "args": []})).await
    }

    /// Clicks as a person does: what can not be seen or is covered can not be clicked.
    pub(crate) async fn click(&self, selector: &str) {
        let element = self.find(selector).await;
        self.call(&format!("element/{element}/click"), json!({})).await;
    }

    /// Types into something.
    pub(crate) async fn write(&self, selector: &str, text: &str) {
        let element = self.find(selector).await;
        self.call(&format!("element/{element}/value"), json!({"text": text})).await;
    }

    /// Empties a field.
    pub(crate) async fn clear(&self, selector: &str) {
        let element = self.find(selector).await;
        self.call(&format!("element/{element}/clear"), json!({})).await;
    }

    /// Speaks to the browser's own tools.
    pub(crate) async fn tell(&self, command: &str, parameters: Value) -> Value {
        self.call("goog/cdp/execute", json!({"cmd": command, "params": parameters})).await
    }

    /// As on a screen of this width and in this scheme of colours.
    pub(crate) async fn pretend(&self, width: u32, scheme: &str) {
        let screen =
            json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500});
        self.tell("Emulation.setDeviceMetricsOverride", screen).await;
        let scheme = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tell("Emulation.setEmulatedMedia", scheme).await;
    }

    /// What one of the browser's logs has since it was asked last.
    pub(crate) async fn log(&self, kind: &str) -> Vec<Value> {
        let log = self.call("se/log", json!({"type": kind})).await;
        log.as_array().unwrap().clone()
    }

    /// The addresses of everything that was asked for since the last time, but by the browser's own pages (its empty tab is one).
    pub(crate) async fn requests(&self) -> Vec<String> {
        let mut asked = Vec::new();
        for entry in self.log("performance").await {
            let message: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            let told = &message["message"]["params"];
            let own = told["documentURL"].as_str().is_some_and(|page| page.starts_with("chrome:"));
            if message["message"]["method"] == "Network.requestWillBeSent" && !own {
                asked.push(told["request"]["url"].as_str().unwrap().to_owned());
            }
        }
        asked
    }

    async fn find(&self, selector: &str) -> String {
        let how = json!({"using": "css selector", "value": selector});
        let found = self.call("element", how).await;
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    async fn call(&self, path: &str, body: Value) -> Value {
        self.ask("POST", &format!("/session/{}/{path}", self.session), &body).await
    }

    /// One request, one answer, one connection.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        let exchange = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !is_whole(&answer) {
                assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "the driver hung up");
            }
            answer
        };
        let answer = timeout(PATIENCE, exchange).await.expect("the driver answers");
        let (head, body) = parts(&answer).unwrap();
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {head}\n{body}");
        body["value"].clone()
    }
}

/// Waits until the driver has said where it listens.
async fn port(log: &Path) -> u16 {
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let said = text.split_once("started successfully on port ").map(|(_, rest)| rest);
        let digits = said.and_then(|rest| rest.split_once('.')).map(|(digits, _)| digits);
        if let Some(port) = digits.and_then(|digits| digits.trim().parse().ok()) {
            return port;
        }
        nap(Duration::from_millis(50)).await;
    }
}

fn parts(answer: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

fn is_whole(answer: &[u8]) -> bool {
    let at = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(at) = at else { return false };
    let head = String::from_utf8_lossy(&answer[..at]).to_lowercase();
    let told = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = told.and_then(|told| told.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= at + 4 + length)
}
