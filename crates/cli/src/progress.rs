//! How far a download has come, on one line of a terminal; nothing where nobody looks at one.

use std::io::{self, Write};

use castle_view::Style;
use castle_view::screen::download;

use crate::face::style;
use crate::output;
use crate::settings::{Settings, Stream};

/// A bar that goes when it is dropped.
pub(crate) struct Bar<'a> {
    name: &'a str,
    style: Style,
    shown: Option<String>,
    wanted: bool,
}

impl<'a> Bar<'a> {
    /// A bar for something with a name; it shows itself only to a person at a terminal.
    pub(crate) fn new(name: &'a str, settings: &Settings) -> Self {
        Self {
            name,
            style: style(settings, Stream::Talk),
            shown: None,
            wanted: settings.interactive(),
        }
    }

    /// Shows how many bytes have come, of how many if that is known.
    pub(crate) fn show(&mut self, done: u64, total: Option<u64>) {
        if !self.wanted {
            return;
        }
        // Somebody may have changed the size of the terminal meanwhile.
        let width = output::columns(Stream::Talk).unwrap_or(self.style.width);
        let text = download(self.name, done, total, Style { width, ..self.style });
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
