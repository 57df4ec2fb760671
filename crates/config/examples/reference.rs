//! Prints the reference of the castle file, for `docs/reference/castle-file.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(castle_config::reference().as_bytes())
}
