//! Standard output is data, standard error is talk. Neither can fail a run: a reader that has gone is let go.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::termios::tcgetwinsize;

use crate::address;
use crate::settings::Stream;
use crate::stage::Inbox;

/// Whether data could not be written although somebody wanted it: a full disk, not a reader that went away.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether nobody is there to be told: a run that left its terminal.
static MUTE: AtomicBool = AtomicBool::new(false);

/// The live screen, while one is up: what is said on its terminal scrolls above it.
static STAGE: Mutex<Option<Arc<Inbox>>> = Mutex::new(None);

/// Puts a screen up, or none.
pub(crate) fn stage(inbox: Option<Arc<Inbox>>) {
    *STAGE.lock().unwrap_or_else(PoisonError::into_inner) = inbox;
}

/// The screen that is up.
pub(crate) fn staged() -> Option<Arc<Inbox>> {
    STAGE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether a passing line is on the terminal.
static PASSING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What is said on this thread while somebody takes it down.
    static TAKEN_DOWN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says nothing from here on.
pub(crate) fn mute() {
    MUTE.store(true, Ordering::Relaxed);
}

/// Takes down what this thread says from now on, until [`taken_down`] asks for it; it is shown all the same.
pub(crate) fn take_down() {
    TAKEN_DOWN.set(Some(String::new()));
}

/// What was said since [`take_down`], which ends.
pub(crate) fn taken_down() -> String {
    TAKEN_DOWN.take().unwrap_or_default()
}

fn note(text: &str) {
    TAKEN_DOWN.with_borrow_mut(|taken| {
        if let Some(taken) = taken {
            taken.push_str(text);
            taken.push('\n');
        }
    });
}

/// Writes data to standard output.
pub(crate) fn data(text: &str) {
    note(text);
    if let Some(stage) = staged().filter(|_| io::stdout().is_terminal()) {
        return stage.say(text);
    }
    if write(&mut io::stdout().lock(), text).is_err_and(|e| e.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Writes what a person reads to standard output: lines that a terminal would break anywhere are broken between words. JSON,
/// and what no terminal shows, stays as it is.
pub(crate) fn page(text: &str) {
    let text = if text.starts_with('{') { Cow::Borrowed(text) } else { address::text(text) };
    let text = text.as_ref();
    match columns(Stream::Data).filter(|_| staged().is_none()) {
        Some(width) if !text.starts_with('{') => {
            let folded =
                |line: &str| if seen(line) > width { fold(line, width) } else { line.to_owned() };
            data(&text.lines().map(folded).collect::<Vec<_>>().join("\n"));
        }
        _ => data(text),
    }
}

/// How many characters of a line are to be seen: colours are not.
pub(crate) fn seen(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().map_or(0, |text| text.chars().count());
    let shown = |part: &str| part.split_once('m').map_or(0, |(_, text)| text.chars().count());
    first + parts.map(shown).sum::<usize>()
}

/// Writes a value to standard output as it is; for a person's eyes with an end of line.
pub(crate) fn value(text: &str) {
    if MUTE.load(Ordering::Relaxed) {
        return;
    }
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        drop(out);
        return data(text);
    }
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if written.is_err_and(|e| e.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Whether any data was lost.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Writes talk to standard error. `| head` and a closed terminal must neither kill nor fail what is going on.
pub(crate) fn talk(text: &str) {
    note(text);
    aside(text);
}

/// Columns of a terminal that does not tell.
const WIDTH: usize = 80;

/// A line of the terminal that is written over by the next one, and goes when this is dropped.
pub(crate) struct Passing;

impl Passing {
    /// Shows this instead of what it showed before. What one line has no room for is left out.
    pub(crate) fn show(text: &str) {
        if staged().is_none() {
            PASSING.store(true, Ordering::Relaxed);
            over(&cut(text, columns(Stream::Talk).unwrap_or(WIDTH).saturating_sub(1)));
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        wipe();
    }
}

/// Takes the passing line away, if there is one.
fn wipe() {
    if PASSING.swap(false, Ordering::Relaxed) {
        over("");
    }
}

/// Writes over the last line of the terminal.
fn over(text: &str) {
    if !MUTE.load(Ordering::Relaxed) {
        let mut err = io::stderr().lock();
        write!(err, "\r{text}\x1b[K").and_then(|()| err.flush()).ok();
    }
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(3)).chain("...".chars()).collect()
}

/// Writes to standard error what is not castle's own word: nobody takes it down.
pub(crate) fn aside(text: &str) {
    wipe();
    match staged() {
        Some(stage) => stage.say(text),
        None => drop(write(&mut io::stderr().lock(), text)),
    }
}

/// Writes sentences to standard error, broken between words where a terminal would break them anywhere.
pub(crate) fn say(text: &str) {
    // The screen lays out itself what is said above it, as wide as it is then.
    match columns(Stream::Talk).filter(|_| staged().is_none()) {
        Some(width) => {
            note(text);
            aside(&fold(text, width));
        }
        None => talk(text),
    }
}

/// How many columns the terminal behind a stream has now, if it is one.
pub(crate) fn columns(stream: Stream) -> Option<usize> {
    let (is_terminal, window) = match stream {
        Stream::Data => (io::stdout().is_terminal(), tcgetwinsize(io::stdout())),
        Stream::Talk => (io::stderr().is_terminal(), tcgetwinsize(io::stderr())),
    };
    let window = window.ok().filter(|_| is_terminal);
    window.map(|window| usize::from(window.ws_col)).filter(|width| *width > 0)
}

/// Breaks long lines between words and goes on under their beginning. What has no space, or stands in backquotes, is left whole, to
/// be copied.
pub(crate) fn fold(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let words = line.trim_start_matches(' ');
        let indent = " ".repeat(line.len() - words.len());
        let mut current = indent.clone();
        let mut fresh = true;
        for word in castle_view::words(words) {
            if !fresh && seen(&current) + 1 + seen(word) > width {
                lines.push(std::mem::replace(&mut current, format!("{indent}  ")));
                fresh = true;
            }
            if !fresh {
                current.push(' ');
            }
            current.push_str(word);
            fresh = false;
        }
        lines.push(current);
    }
    lines.join("\n")
}

fn write(to: &mut dyn Write, text: &str) -> io::Result<()> {
    if MUTE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    to.write_all(text.as_bytes())?;
    to.write_all(line_end.as_bytes())?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_between_words() {
        let text = "notice: nothing pins the manifests of longhorn\n  why: it is https://example.com/a/long/address\nshort";
        insta::assert_snapshot!(fold(text, 26), @r"
        notice: nothing pins the
          manifests of longhorn
          why: it is
            https://example.com/a/long/address
        short
        ");
        assert_eq!(fold(text, 200), text);
        let command = "hint: it is stopped (state T): `kill -CONT 14630` lets it go on";
        insta::assert_snapshot!(fold(command, 40), @r"
        hint: it is stopped (state T):
          `kill -CONT 14630` lets it go on
        ");
    }
}
