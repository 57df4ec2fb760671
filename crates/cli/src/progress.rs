//! How far a download has come, on one line of a terminal; nothing where nobody looks at one.

use std::io::{self, Write};

use crate::settings::Settings;

/// How many characters the bar itself has.
const LENGTH: u64 = 30;

/// A bar that goes when it is dropped.
pub(crate) struct Bar<'a> {
    name: &'a str,
    shown: Option<String>,
    wanted: bool,
}

impl<'a> Bar<'a> {
    /// A bar for something with a name; it shows itself only to a person at a terminal.
    pub(crate) fn new(name: &'a str, settings: &Settings) -> Self {
        Self { name, shown: None, wanted: settings.interactive() }
    }

    /// Shows how many bytes have come, of how many if that is known.
    pub(crate) fn show(&mut self, done: u64, total: Option<u64>) {
        if !self.wanted {
            return;
        }
        let text = line(self.name, done, total);
        if self.shown.as_ref() != Some(&text) {
            write(&format!("\r{text}\x1b[K"));
            self.shown = Some(text);
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if self.shown.is_some() {
            write("\r\x1b[K");
        }
    }
}

/// A terminal that has gone must not fail what is going on.
fn write(text: &str) {
    let mut err = io::stderr().lock();
    err.write_all(text.as_bytes()).and_then(|()| err.flush()).ok();
}

/// The line: a bar where the end is known, else how much has come.
fn line(name: &str, done: u64, total: Option<u64>) -> String {
    let tenths = |bytes: u64| {
        let tenths = u128::from(bytes) * 10 / (1 << 20);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{name}: {} MiB", tenths(done));
    };
    let full = u64::try_from(u128::from(done.min(total)) * u128::from(LENGTH) / u128::from(total));
    let full = full.unwrap_or(LENGTH);
    let bar: String = (0..LENGTH).map(|place| if place < full { '#' } else { '.' }).collect();
    format!("{name}: [{bar}] {} of {} MiB", tenths(done), tenths(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_from_nothing_to_its_end() {
        let mib = 1 << 20;
        let shown: Vec<String> = [0, mib / 2, mib, 3 * mib]
            .iter()
            .map(|done| line("flux 2.9.3", *done, Some(mib)))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        flux 2.9.3: [..............................] 0.0 of 1.0 MiB
        flux 2.9.3: [###############...............] 0.5 of 1.0 MiB
        flux 2.9.3: [##############################] 1.0 of 1.0 MiB
        flux 2.9.3: [##############################] 3.0 of 1.0 MiB
        ");
        assert_eq!(line("flux 2.9.3", 3 * mib / 2, None), "flux 2.9.3: 1.5 MiB");
        assert_eq!(line("flux 2.9.3", 1, Some(0)), "flux 2.9.3: 0.0 MiB");
    }
}
