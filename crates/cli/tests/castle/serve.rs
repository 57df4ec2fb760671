//! `castle rehearse serve`: a castle is raised in a served datacenter by another process, over real sockets.

use std::io::{BufRead, BufReader, Read as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::context::{Context, Said};

/// A served datacenter.
struct Served {
    process: Child,
    /// The sheet.
    sheet: Value,
    at: Ipv4Addr,
}

impl Served {
    fn start(castle: &Context, at: Ipv4Addr) -> Self {
        Self::broken(castle, at, &[])
    }

    /// One in which something breaks by rules.
    fn broken(castle: &Context, at: Ipv4Addr, rules: &[&str]) -> Self {
        let at_place = at.to_string();
        let mut words = vec!["rehearse", "serve", "--json", "--speed", "30", "--at", &at_place];
        words.extend(rules.iter().flat_map(|rule| ["--fault", rule]));
        let mut command = castle.command(&words);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(
            !line.is_empty(),
            "not served: {:?}",
            Said::of(&process.wait_with_output().unwrap()).err
        );
        Self { sheet: serde_json::from_str(&line).unwrap(), process, at }
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(self.sheet["folder"].as_str().unwrap()).join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// A castle's command for real, with what the sheet says it needs.
    fn run(&self, castle: &Context, words: &[&str]) -> Said {
        let file = self.file("served.hcl");
        let mut command = castle.command(&[&["-f", file.to_str().unwrap()], words].concat());
        for line in self.text("environment").lines() {
            let (name, value) = line.split_once('=').unwrap();
            command.env(name, value);
        }
        Said::of(&command.output().unwrap())
    }

    /// Ends it, and gives its code and what it told.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        let mut told = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let code = self.process.wait().unwrap().code();
        assert!(TcpStream::connect((self.at, 8006)).is_err(), "the sockets are closed");
        (code, told)
    }
}

/// A test that fails must not leave its servers behind: they hold addresses that the next run wants.
impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The address of the servers of one run of a test: runs at the same time, in other work trees too, have others. The
/// machines are then in the network whose third part is the last of this one.
fn place(last: u8) -> Ipv4Addr {
    let run = u8::try_from(std::process::id() % 100).unwrap();
    Ipv4Addr::new(127, 100 + run, 0, last)
}

/// A machine of the castle whose servers are at `place(41)`.
fn machine(last: u8) -> Ipv4Addr {
    let [first, second, ..] = place(41).octets();
    Ipv4Addr::new(first, second, 41, last)
}

/// The addresses that a process listens at, as the system knows them.
fn listeners(process: &Child) -> Vec<(String, u16)> {
    let files = std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap();
    let links: Vec<String> = files
        .filter_map(|file| std::fs::read_link(file.unwrap().path()).ok())
        .map(|link| link.display().to_string())
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let table = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if links.contains(&format!("socket:[{}]", fields[9])) && fields[3] == "0A" {
                let (address, port) = fields[1].split_once(':').unwrap();
                found.push((address.to_owned(), u16::from_str_radix(port, 16).unwrap()));
            }
        }
    }
    found
}

#[test]
fn the_sheet_says_who_serves_where_and_what_to_copy() {
    let castle = Context::new();
    let at = place(47).to_string();
    let words = ["rehearse", "serve", "--speed", "30", "--at", &at];
    let mut process = castle.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut sheet = String::new();
    // The sheet is written at once; what follows it is the end.
    out.read_line(&mut sheet).unwrap();
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    out.read_to_string(&mut sheet).unwrap();
    process.wait().unwrap();
    let here = std::fs::canonicalize(castle.folder()).unwrap().display().to_string();
    let run = at.split_once(".0.").unwrap().0;
    let masked = sheet.replace(&here, "HERE").replace(run, "127.R");
    let fingerprint = |line: &str| match line.split_once("SHA-256 ") {
        Some((before, _)) => format!("{before}SHA-256 …"),
        None => line.to_owned(),
    };
    let masked: Vec<String> = masked.lines().map(fingerprint).collect();
    insta::assert_snapshot!(masked.join("\n"), @r#"
    The datacenter of the castle `blue` is served, 30 times faster than real time. Ctrl-C ends it.

      Proxmox     https://127.R.0.47:8006
      Infisical   https://127.R.0.47:8443
      downloads   https://127.R.0.47:8444
      Git         https://127.R.0.47:8445/example/tazlab-k8s
      Kubernetes  https://127.R.47.210:6443
      cp-01       127.R.47.211:50000
      cp-02       127.R.47.212:50000
      cp-03       127.R.47.213:50000
      worker-01   127.R.47.214:50000
      worker-02   127.R.47.215:50000

    Machines listen once they are switched on, Kubernetes once it runs.

    In HERE/state/castle/example/blue.datacenter/served, for you alone to read:
      served.hcl            the castle file for a run from another terminal
      environment           what its environment needs: the authority, a state root of its own
      ca.pem                the authority of the servers with fixed addresses
      credentials           the machine identity at Infisical
      infisical-login.json  the same as the body of a login
      proxmox-header        the token of Proxmox as a header for curl
      proxmox-token         its secret alone
      git-credentials       the token of the repository
      kubeconfig            written once the castle has its secrets
      talosconfig           the same

    Proxmox' certificate: SHA-256 …

    To copy:
      env -S "$(cat HERE/state/castle/example/blue.datacenter/served/environment)" castle -f HERE/state/castle/example/blue.datacenter/served/served.hcl up
      curl --cacert HERE/state/castle/example/blue.datacenter/served/ca.pem -H @HERE/state/castle/example/blue.datacenter/served/proxmox-header https://127.R.0.47:8006/api2/json/cluster/resources
      python3 -c 'from proxmoxer import ProxmoxAPI as P; print(P("127.R.0.47", port=8006, user="castle@pve", token_name="rehearsal", token_value=open("HERE/state/castle/example/blue.datacenter/served/proxmox-token").read(), verify_ssl="HERE/state/castle/example/blue.datacenter/served/ca.pem").nodes.get())'
      curl --cacert HERE/state/castle/example/blue.datacenter/served/ca.pem --json @HERE/state/castle/example/blue.datacenter/served/infisical-login.json https://127.R.0.47:8443/api/v1/auth/universal-auth/login
      GIT_SSL_CAINFO=HERE/state/castle/example/blue.datacenter/served/ca.pem git -c 'credential.helper=store --file=HERE/state/castle/example/blue.datacenter/served/git-credentials' clone https://127.R.0.47:8445/example/tazlab-k8s
      kubectl --kubeconfig HERE/state/castle/example/blue.datacenter/served/kubeconfig get nodes,pods -A
      talosctl --talosconfig HERE/state/castle/example/blue.datacenter/served/talosconfig -n 127.R.47.211 version
    "#);
}

#[test]
fn a_castle_is_raised_in_a_served_datacenter_by_another_process() {
    let castle = Context::new();
    let served = Served::start(&castle, place(41));
    let up = served.run(&castle, &["up"]).ends(0);
    assert!(up.out.contains("handover: Flux owns what the cluster hosts"), "{}", up.out);
    assert_eq!(castle.guests(), [421, 422, 423, 431, 432], "others may look meanwhile");

    // What is poked is felt by whoever comes over the sockets, until it is mended.
    castle.run(&["rehearse", "poke", "proxmox: token revoked"]).ends(0);
    let denied = served.run(&castle, &["up"]).ends(1);
    assert!(denied.err.contains("401"), "{}", denied.err);
    castle.run(&["rehearse", "poke", "--mend", "proxmox: token revoked"]).ends(0);
    served.run(&castle, &["plan"]).ends(0);

    let open = listeners(&served.process);
    assert!(open.len() >= 13, "{open:?}");
    assert!(
        open.iter().all(|(address, _)| address.ends_with("7F") && address.len() == 8),
        "{open:?}"
    );

    let kubeconfig = served.text("kubeconfig");
    assert!(kubeconfig.contains(&format!("server: https://{}:6443", machine(210))), "{kubeconfig}");
    let modes = std::fs::read_dir(served.file("")).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name(), entry.metadata().unwrap().permissions().mode() & 0o077)
    });
    let open_files: Vec<_> = modes.filter(|(_, mode)| *mode != 0).collect();
    assert!(open_files.is_empty(), "{open_files:?}");
    let secret = served.text("proxmox-token");
    assert!(!served.sheet.to_string().contains(&secret), "the sheet shows a secret");

    let second = castle.run(&["rehearse", "serve", "--at", &place(42).to_string()]).ends(3);
    let holder = format!("in use by `castle rehearse serve` (process {} ", served.process.id());
    assert!(second.err.contains(&holder), "{}", second.err);

    let (code, told) = served.end(Signal::INT);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("kubeconfig and talosconfig written"), "{told}");
    assert!(told.contains("the sockets are closed and the datacenter is saved"), "{told}");

    // The world is kept: served again, the castle stands in it.
    let served = Served::start(&castle, place(41));
    let again = served.run(&castle, &["up"]).ends(0);
    assert!(again.out.contains("nothing changed"), "{}", again.out);
    served.run(&castle, &["down", "--yes"]).ends(0);
    assert_eq!(served.end(Signal::TERM).0, Some(0));
    assert!(castle.guests().is_empty());
    // And a rehearsal goes on in it, in its own way.
    castle.run(&["rehearse", "up"]).ends(0);
    // What stands at addresses of its own is served at those on loopback.
    let served = Served::start(&castle, place(41));
    for (last, port) in [(210, 6443), (211, 50_000), (215, 50_000)] {
        let socket = (machine(last), port);
        assert!(TcpStream::connect(socket).is_ok(), "nobody listens at {socket:?}");
    }
    assert_eq!(served.end(Signal::TERM).0, Some(0));
    castle.run(&["rehearse", "status"]).ends(0);
    castle.run(&["rehearse", "reset", "--yes"]).ends(0);
    assert!(!castle.datacenter().exists());
}

#[test]
fn a_port_that_somebody_has_and_an_address_of_others_are_refused() {
    let castle = Context::new();
    let mine = TcpListener::bind((place(61), 8443)).unwrap();
    let said = castle.run(&["rehearse", "serve", "--at", &place(61).to_string()]).ends(1);
    drop(mine);
    let told = format!(
        "cannot listen at {}:8443: it is in use by process {} (",
        place(61),
        std::process::id()
    );
    assert!(said.err.contains(&told), "{}", said.err);
    assert!(said.err.contains(&format!("--at {}", place(62))), "{}", said.err);
    for address in ["0.0.0.0", "192.168.1.4", "10.0.0.1"] {
        let said = castle.run(&["rehearse", "serve", "--at", address]).ends(2);
        assert!(said.err.contains("is not a loopback address"), "{}", said.err);
    }
    let said = castle.run(&["rehearse", "serve", "--at", "127.0.1.1"]).ends(2);
    assert!(said.err.contains("such as --at 127.0.0.1"), "{}", said.err);
}

#[test]
fn what_the_sheet_says_to_copy_runs_in_a_folder_with_a_blank_in_its_name() {
    let castle = Context::with_a_blank();
    let served = Served::start(&castle, place(43));
    let bin = Path::new(env!("CARGO_BIN_EXE_castle")).parent().unwrap();
    let run = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("PATH={}:$PATH; {line}", bin.display())]);
        command.current_dir(castle.folder()).env("HOME", castle.folder());
        Said::of(&command.output().unwrap()).ends(0)
    };
    let here = |tool: &str| run(&format!("command -v {tool} || true")).out.contains('/');
    let mut ran = Vec::new();
    for line in served.sheet["commands"].as_array().unwrap() {
        let (tool, line) = (line["name"].as_str().unwrap(), line["value"].as_str().unwrap());
        match tool {
            // What is raised is raised by another test; a plan needs the same.
            "castle" => run(&line.replace(".hcl' up", ".hcl' plan")),
            "curl" | "git" if here(tool) => run(line),
            // Their files come with the castle; theirs is to be one word.
            _ => run(&format!("set -- {line}; test $# -ge 3")),
        };
        ran.push(tool);
    }
    assert_eq!(ran, ["castle", "curl", "proxmoxer", "curl", "git", "kubectl", "talosctl"]);
    // Whoever comes second is told a line that runs as well.
    let second = castle.run(&["rehearse", "serve", "--at", &place(44).to_string()]).ends(3);
    let hint = second.err.split("it is served: `").nth(1).unwrap().split('`').next().unwrap();
    run(&hint.replace(".hcl' up", ".hcl' plan"));
    served.end(Signal::INT);
}

#[test]
fn rules_break_what_is_served_and_none_about_castle_itself_is_taken() {
    let castle = Context::new();
    let rules = [
        "proxmox: answers 503 on POST /qemu twice",
        "infisical: refuses the 2nd",
        "talos cp-02: dead from 9:00:00",
    ];
    let served = Served::broken(&castle, place(45), &rules);
    let up = served.run(&castle, &["up"]).ends(0);
    assert!(up.err.contains("503"), "{}", up.err);
    let (code, told) = served.end(Signal::INT);
    assert_eq!(code, Some(0), "{told}");

    let rule = "castle: disk full";
    let at = place(46).to_string();
    let said = castle.run(&["rehearse", "serve", "--at", &at, "--fault", rule]).ends(2);
    assert!(said.err.contains("castle is another process here"), "{}", said.err);
    let said = castle.run(&["rehearse", "serve", "--at", &at, "--fault", "talos cp-2: dead"]);
    assert!(said.ends(2).err.contains("did you mean `cp-02`?"));
}
