//! Puts every story of the folder `scenarios` on the shelf that the program carries, so that a new one needs no Rust.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked for when it runs: a build folder that two clones share keeps the program of the one that was built first.
    let folder = Path::new(&told("CARGO_MANIFEST_DIR")?).join("../../scenarios").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut stories: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    stories.sort_by_key(fs::DirEntry::file_name);
    let mut shelf = String::from("&[\n");
    for story in stories {
        let path = story.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "hcl") {
            writeln!(shelf, "({name:?}, include_str!({:?})),", path.display().to_string()).ok();
        }
    }
    shelf.push_str("]\n");
    fs::write(Path::new(&told("OUT_DIR")?).join("shelf.rs"), shelf)
}

/// What cargo tells.
#[expect(clippy::disallowed_methods, reason = "this is how cargo tells where to read and to write")]
fn told(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
