//! Who listens at a socket, as far as the system tells.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Who holds a socket.
#[derive(Debug, PartialEq)]
pub(super) struct Holder {
    /// In words.
    pub(super) who: String,
    /// Whether it listens at all addresses, so that no other one is free either.
    pub(super) everywhere: bool,
}

/// Who holds a socket; none if the system does not say.
pub(super) fn holder(socket: SocketAddrV4) -> Option<Holder> {
    let read = |table: &str| fs::read_to_string(table).unwrap_or_default();
    let (four, six) = (read("/proc/net/tcp"), read("/proc/net/tcp6"));
    let (inode, everywhere) = inode(&four, socket).or_else(|| inode(&six, socket))?;
    Some(Holder { who: process(&inode)?, everywhere })
}

/// Which process has a socket open, in words.
fn process(inode: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let link = format!("socket:[{inode}]");
    for process in processes {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        let has = files.filter_map(Result::ok).any(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.to_str() == Some(&link))
        });
        if has {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("process {id} ({})", name.trim()));
        }
    }
    Some("a process of another user".to_owned())
}

/// The inode of what listens at a socket, or at its port of all addresses, and whether it is the latter.
fn inode(table: &str, socket: SocketAddrV4) -> Option<(String, bool)> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = fields.as_slice() else { return None };
        let (address, port) = local.split_once(':')?;
        let address = address_of(address)?;
        let everywhere = address.is_unspecified();
        let same = u16::from_str_radix(port, 16).ok()? == socket.port()
            && (address == *socket.ip() || everywhere);
        let listens = same && *state == LISTENS;
        listens.then(|| fields.get(9).map(|inode| ((*inode).to_owned(), everywhere)))?
    })
}

/// The IPv4 address that an entry of either table listens at; `::` listens at all of them too.
fn address_of(text: &str) -> Option<Ipv4Addr> {
    // Each part of it stands there as the machine keeps it in memory.
    let part = |at: usize| {
        let part = u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?;
        Some(u32::from_be_bytes(part.to_ne_bytes()))
    };
    if text.len() == 8 {
        return part(0).map(Ipv4Addr::from);
    }
    let parts = [part(0)?, part(8)?, part(16)?, part(24)?];
    match parts {
        [0, 0, 0, 0] => Some(Ipv4Addr::UNSPECIFIED),
        [0, 0, 0xffff, last] => Some(Ipv4Addr::from(last)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_named() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::new(127, 0, 99, 1), 0)).unwrap();
        let std::net::SocketAddr::V4(socket) = listener.local_addr().unwrap() else { panic!() };
        let told = holder(socket).unwrap();
        assert!(!told.everywhere);
        let told = told.who;
        assert!(told.starts_with(&format!("process {} (", std::process::id())), "{told}");
        assert_eq!(holder(SocketAddrV4::new(Ipv4Addr::new(127, 0, 99, 2), 1)), None);
    }

    #[test]
    fn a_listener_at_all_addresses_counts_and_a_connection_does_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 00000000:1F46 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100 0 0 10 0\n   1: 0100007F:20FB 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0 100 0 0 10 0\n";
        let at = |port| inode(table, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        assert_eq!(at(8006), Some(("77".to_owned(), true)));
        assert_eq!(at(8443), None);
    }

    #[test]
    fn a_listener_at_all_addresses_of_both_kinds_is_found() {
        let table = "  sl  local_address remote_address st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 00000000000000000000000000000000:20FB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 79 1 0 100 0 0 10 0\n   1: 0000000000000000FFFF00000100007F:1F46 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 80 1 0 100 0 0 10 0\n   2: 00000000000000000000000001000000:20FC 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 81 1 0 100 0 0 10 0\n";
        let at = |port| inode(table, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        assert_eq!(at(8443), Some(("79".to_owned(), true)));
        assert_eq!(at(8006), Some(("80".to_owned(), false)));
        assert_eq!(at(8444), None, "::1 is another place");
        let listener = std::net::TcpListener::bind("[::]:0").unwrap();
        let socket = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port());
        let told = holder(socket).unwrap();
        assert!(told.everywhere && told.who.contains(&std::process::id().to_string()), "{told:?}");
    }
}
