//! Prints the page of everything that can be broken, for `docs/reference/faults.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(castle_rehearsal::fault::reference().as_bytes())
}
