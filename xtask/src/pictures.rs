//! `cargo xtask pictures`: takes the pictures of the documentation again, with a real browser, from a rehearsal of the example castle.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::generate;
use crate::talk::{self, say};
use crate::tree;

/// A picture that is heavier than this does not belong into a repository.
const HEAVIEST: u64 = 150_000;

/// A page that is photographed: its name, and the runs after the last of which it is made. The test `pictures` of castle makes
/// the same pages, and holds them against [`SUMS`].
const PAGES: [(&str, &[&[&str]]); 2] = [
    ("timeline", &[&["up"], &["down", "--yes"], &["up"]]),
    ("failed", &[&["up", "--fault", "talos cp-02: dead from 0:20"]]),
];

/// The digests of the pages that were photographed, beside the pictures: a page that looks otherwise since then is noticed.
const SUMS: &str = "docs/pictures/pages.sha256";

/// How a picture is taken.
struct Shot {
    /// Its file in docs/pictures.
    name: &'static str,
    /// Of which page.
    page: &'static str,
    /// The number that the browser has for a scheme of colours.
    scheme: u8,
    /// The part of the page that is photographed, and how large it is shown.
    size: &'static str,
    scale: &'static str,
}

const SHOTS: [Shot; 3] = [
    Shot {
        name: "timeline-dark.png",
        page: "timeline",
        scheme: 0,
        size: "1240,1500",
        scale: "0.7",
    },
    Shot {
        name: "timeline-light.png",
        page: "timeline",
        scheme: 1,
        size: "1240,1500",
        scale: "0.7",
    },
    Shot { name: "timeline-phone.png", page: "failed", scheme: 1, size: "390,1340", scale: "1.0" },
];

/// Plays what the pages tell of, photographs them, and writes down what was photographed.
pub(crate) fn run() -> Result<bool> {
    let root = tree::root()?;
    let place = target(&root).join("pictures");
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context("making room for the rehearsal");
        }
        _ => fs::create_dir_all(&place).context("making room for the rehearsal")?,
    }
    generate::built(&root)?;
    let pictures = root.join("docs/pictures");
    fs::create_dir_all(&pictures).context("making docs/pictures")?;
    let mut sums = String::new();
    for (name, runs) in PAGES {
        let page = made(&root, &place, name, runs)?;
        let bytes = fs::read(&page).context("reading the page")?;
        writeln!(sums, "{}  {name}", hex::encode(Sha256::digest(&bytes)))?;
        for shot in SHOTS.iter().filter(|shot| shot.page == name) {
            let picture = pictures.join(shot.name);
            photograph(&root, &place, &page, &picture, shot)?;
            let weight = fs::metadata(&picture).context("looking at the picture")?.len();
            ensure!(
                weight <= HEAVIEST,
                "{} has {weight} bytes, and {HEAVIEST} are allowed",
                picture.display()
            );
            say(&format!("docs/pictures/{}: {weight} bytes", shot.name));
        }
    }
    fs::write(root.join(SUMS), sums).context("writing down what was photographed")?;
    Ok(true)
}

/// Plays the runs in a rehearsal of their own, and makes the page of the last.
fn made(root: &Path, place: &Path, name: &str, runs: &[&[&str]]) -> Result<PathBuf> {
    let state = place.join(name);
    for words in runs {
        say(&format!("castle {}", words.join(" ")));
        castle(root, &state, words)?;
    }
    let page = place.join(format!("{name}.html"));
    castle(root, &state, &["report", "--out", &page.display().to_string()])?;
    Ok(page)
}

fn target(root: &Path) -> PathBuf {
    talk::surrounding("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Runs castle on a state of its own; what it says is shown only if it can not do it. A run that fails by a fault is as wanted.
fn castle(root: &Path, state: &Path, words: &[&str]) -> Result<()> {
    let program = target(root).join("debug/castle").display().to_string();
    let mut command = talk::program(root, &[&[program.as_str()], words].concat())?;
    command.env("XDG_STATE_HOME", state).env_remove("CASTLE_STATE").env("CI", "true");
    let output = command.output().context("running castle")?;
    let broken = words.contains(&"--fault") && output.status.code() == Some(1);
    if !output.status.success() && !broken {
        bail!("castle {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn photograph(root: &Path, place: &Path, page: &Path, picture: &Path, shot: &Shot) -> Result<()> {
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
        format!("--blink-settings=preferredColorScheme={}", shot.scheme),
        format!("--force-device-scale-factor={}", shot.scale),
        format!("--window-size={}", shot.size),
        format!("--screenshot={}", picture.display()),
        format!("file://{}", page.display()),
    ];
    talk::output(root, &words).map(drop).context(
        "the pictures are taken with the program `chromium` (Debian's package of that name; `cargo xtask real` installs it)",
    )
}
