//! Standard output is data, standard error is talk. Neither can fail a run: a reader that has gone is let go.

use std::io::Write;

/// Writes data to standard output.
pub(crate) fn data(text: &str) {
    write(&mut std::io::stdout().lock(), text);
}

/// Writes talk to standard error.
pub(crate) fn talk(text: &str) {
    write(&mut std::io::stderr().lock(), text);
}

fn write(to: &mut dyn Write, text: &str) {
    // `| head` and a closed terminal must neither kill nor fail what is going on.
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    to.write_all(text.as_bytes())
        .and_then(|()| to.write_all(line_end.as_bytes()))
        .and_then(|()| to.flush())
        .ok();
}
