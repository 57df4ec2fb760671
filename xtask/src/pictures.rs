//! `cargo xtask pictures`: takes the pictures of the documentation again, with a real browser, from a rehearsal of the example castle.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::talk::{self, say};
use crate::tree;

/// A picture that is heavier than this does not belong into a repository.
const HEAVIEST: u64 = 150_000;

/// What each picture shows, by the number that the browser has for a scheme of colours.
const SCHEMES: [(&str, &str); 2] = [("dark", "0"), ("light", "1")];

/// The part of the page that is photographed, and how much smaller it is shown.
const SIZE: &str = "1240,1500";
const SCALE: &str = "0.7";

/// Raises, razes and raises the example castle, and photographs the timeline of the last run.
pub(crate) fn run() -> Result<bool> {
    let root = tree::root()?;
    let place = target(&root).join("pictures");
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context("making room for the rehearsal");
        }
        _ => fs::create_dir_all(&place).context("making room for the rehearsal")?,
    }
    for words in [&["up"][..], &["down", "--yes"], &["up"]] {
        say(&format!("castle {}", words.join(" ")));
        castle(&root, &place, words)?;
    }
    let page = place.join("timeline.html");
    castle(&root, &place, &["report", "--out", &page.display().to_string()])?;
    let pictures = root.join("docs/pictures");
    fs::create_dir_all(&pictures).context("making docs/pictures")?;
    for (scheme, number) in SCHEMES {
        let picture = pictures.join(format!("timeline-{scheme}.png"));
        photograph(&root, &place, &page, &picture, number)?;
        let weight = fs::metadata(&picture).context("looking at the picture")?.len();
        ensure!(
            weight <= HEAVIEST,
            "{} has {weight} bytes, and {HEAVIEST} are allowed",
            picture.display()
        );
        say(&format!("docs/pictures/timeline-{scheme}.png: {weight} bytes"));
    }
    Ok(true)
}

fn target(root: &Path) -> PathBuf {
    talk::surrounding("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs castle on a state of its own; what it says is shown only if it fails.
fn castle(root: &Path, place: &Path, words: &[&str]) -> Result<()> {
    let cargo = ["cargo", "run", "--quiet", "--locked", "--bin", "castle", "--"];
    let mut command = talk::program(root, &[&cargo[..], words].concat())?;
    command.env("XDG_STATE_HOME", place.join("state")).env_remove("CASTLE_STATE").env("CI", "true");
    let output = command.output().context("running castle")?;
    if !output.status.success() {
        bail!("castle {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn photograph(root: &Path, place: &Path, page: &Path, picture: &Path, scheme: &str) -> Result<()> {
    let words = [
        "chromium".to_owned(),
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--no-first-run".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--hide-scrollbars".to_owned(),
        format!("--user-data-dir={}", place.join("profile").display()),
        format!("--blink-settings=preferredColorScheme={scheme}"),
        format!("--force-device-scale-factor={SCALE}"),
        format!("--window-size={SIZE}"),
        format!("--screenshot={}", picture.display()),
        format!("file://{}", page.display()),
    ];
    talk::output(root, &words).map(drop).context(
        "the pictures are taken with the program `chromium` (Debian's package of that name; `cargo xtask real` installs it)",
    )
}
