//! The calibration of the datacenter: how long everything takes, read from one checked-in file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::durations::Span;

/// The file: lines of `name = [shortest, usual, longest]` in seconds, under `[author]` and `[ours]`.
pub const FILE: &str = include_str!("../calibration/author-2026.toml");

/// What the file is called where figures are told.
pub const NAME: &str = "author-2026";

/// Where a line of the file stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the author's table.
    Author,
    /// Beside it.
    Ours,
}

static SPANS: LazyLock<BTreeMap<&'static str, (Origin, Span)>> = LazyLock::new(|| read(FILE));

/// How long something takes, by its name in the file; none if the file has no such line.
#[must_use]
pub fn span(name: &str) -> Option<Span> {
    SPANS.get(name).map(|(_, span)| *span)
}

/// Every line of the file by its name.
pub fn all() -> impl Iterator<Item = (&'static str, Origin, Span)> {
    SPANS.iter().map(|(name, (origin, span))| (*name, *origin, *span))
}

/// Reads the lines; what is none is left out, and missed by the test that counts them.
fn read(text: &'static str) -> BTreeMap<&'static str, (Origin, Span)> {
    let mut origin = Origin::Ours;
    let mut spans = BTreeMap::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line {
            "[author]" => origin = Origin::Author,
            "[ours]" => origin = Origin::Ours,
            line => {
                if let Some((name, span)) = line.split_once(" = ")
                    && let Some(span) = three(span)
                {
                    spans.insert(name, (origin, span));
                }
            }
        }
    }
    spans
}

fn three(text: &str) -> Option<Span> {
    let mut parts = text.strip_prefix('[')?.strip_suffix(']')?.split(',').map(milliseconds);
    let span = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(span)
}

/// Seconds with up to three places as milliseconds, without floating point: every machine reads the same.
fn milliseconds(text: &str) -> Option<u64> {
    let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if rest.len() > 3 {
        return None;
    }
    Some(whole.parse::<u64>().ok()? * 1000 + format!("{rest:0<3}").parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table once more, in tenths of a second, so that nobody changes the file alone.
    const TABLE: &[(&str, [u64; 3])] = &[
        ("secrets-api", [3, 8, 30]),
        ("full-clone", [50, 120, 300]),
        ("vm-create", [5, 12, 30]),
        ("vm-start", [10, 20, 40]),
        ("boot", [80, 140, 250]),
        ("install", [150, 300, 600]),
        ("reboot", [120, 200, 350]),
        ("etcd-pull", [20, 50, 150]),
        ("etcd-bootstrap", [20, 40, 80]),
        ("etcd-promotion", [30, 60, 150]),
        ("control-plane-pull", [30, 80, 200]),
        ("api-server", [30, 50, 100]),
        ("election", [10, 30, 80]),
        ("terragrunt-unit", [30, 60, 140]),
        ("node-network", [50, 120, 300]),
        ("node-ready", [20, 60, 120]),
        ("external-secrets-pull", [20, 60, 150]),
        ("external-secrets-start", [40, 80, 150]),
        ("secret-sync", [10, 20, 60]),
        ("metallb-pull", [20, 60, 150]),
        ("metallb-start", [30, 60, 100]),
        ("metallb-webhook", [20, 50, 120]),
        ("longhorn-manager-pull", [100, 250, 600]),
        ("longhorn-manager-start", [60, 120, 250]),
        ("longhorn-csi", [120, 220, 450]),
        ("instance-manager-pull", [80, 200, 500]),
        ("longhorn-disk", [30, 60, 150]),
        ("flux-pull", [40, 90, 200]),
        ("flux-start", [30, 60, 120]),
        ("git-fetch", [10, 20, 50]),
        ("flux-level", [20, 50, 150]),
        ("app-pull", [20, 50, 120]),
        ("app-start", [10, 30, 60]),
        ("lock-wait", [100, 100, 100]),
        ("pull-back-off", [100, 100, 100]),
    ];

    #[test]
    fn the_authors_part_is_the_table() {
        let of_author = all().filter(|(_, origin, _)| *origin == Origin::Author);
        let found: BTreeMap<&str, Span> = of_author.map(|(name, _, span)| (name, span)).collect();
        let wanted: BTreeMap<&str, Span> = TABLE
            .iter()
            .map(|(name, [low, usual, high])| (*name, (low * 100, usual * 100, high * 100)))
            .collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn every_line_is_read_once() {
        let lines = FILE.lines().filter(|line| line.contains(" = [")).count();
        assert_eq!(all().count(), lines, "a line that is none, or a name twice");
        for (name, _, (low, usual, high)) in all() {
            assert!(low <= usual && usual <= high, "{name}");
        }
        assert_eq!(three("[0.021, 1, 2.5]"), Some((21, 1000, 2500)));
        assert_eq!(
            (three("[1, 2]"), three("[1, 2, 3, 4]"), three("[1, 2, x]")),
            (None, None, None)
        );
        assert_eq!(three("[0.0001, 1, 2]"), None, "shorter than the clock's unit");
    }
}
