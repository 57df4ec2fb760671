//! Who listens at a socket, as far as the system tells.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Who holds a socket, in words; none if the system does not say.
pub(super) fn holder(socket: SocketAddrV4) -> Option<String> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = inode(&table, socket)?;
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

/// The inode of what listens at a socket, or at its port of all addresses.
fn inode(table: &str, socket: SocketAddrV4) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = fields.as_slice() else { return None };
        let (address, port) = local.split_once(':')?;
        // The address stands there as the machine keeps it in memory.
        let address = Ipv4Addr::from(u32::from_str_radix(address, 16).ok()?.to_ne_bytes());
        let same = u16::from_str_radix(port, 16).ok()? == socket.port()
            && (address == *socket.ip() || address.is_unspecified());
        (same && *state == LISTENS).then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_named() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::new(127, 0, 99, 1), 0)).unwrap();
        let std::net::SocketAddr::V4(socket) = listener.local_addr().unwrap() else { panic!() };
        let told = holder(socket).unwrap();
        assert!(told.starts_with(&format!("process {} (", std::process::id())), "{told}");
        assert_eq!(holder(SocketAddrV4::new(Ipv4Addr::new(127, 0, 99, 2), 1)), None);
    }

    #[test]
    fn a_listener_at_all_addresses_counts_and_a_connection_does_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 00000000:1F46 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100 0 0 10 0\n   1: 0100007F:20FB 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0 100 0 0 10 0\n";
        let at = |port| inode(table, SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        assert_eq!(at(8006).as_deref(), Some("77"));
        assert_eq!(at(8443), None);
    }
}
