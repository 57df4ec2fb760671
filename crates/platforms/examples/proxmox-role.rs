//! Prints the page of the least privileges, for `docs/reference/proxmox-role.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(castle_platforms::proxmox::privileges::page().as_bytes())
}
