//! What the workshop says, runs and times: the one place that prints, starts programs and reads a clock.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Prints one line, or several.
#[expect(
    clippy::print_stdout,
    reason = "the workshop talks to a person, and this is where it does"
)]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// Reads a stop watch.
#[expect(
    clippy::disallowed_methods,
    reason = "the workshop measures real time, never the rehearsal's"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A setting of the workshop's surroundings: the search path, or where cargo builds.
#[expect(
    clippy::disallowed_methods,
    reason = "the workshop has no settings of its own; it follows cargo's"
)]
pub(crate) fn surrounding(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A duration as a person reads it.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A program with its arguments, to be run in the root of the house.
pub(crate) fn program<S: AsRef<OsStr>>(root: &Path, words: &[S]) -> Result<Command> {
    let [name, arguments @ ..] = words else { bail!("a command without a program") };
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root);
    Ok(command)
}

/// Runs a program to its end with its output shown; says whether it succeeded.
pub(crate) fn runs<S: AsRef<OsStr>>(root: &Path, words: &[S]) -> Result<bool> {
    let status =
        program(root, words)?.status().with_context(|| format!("running {}", line(words)))?;
    Ok(status.success())
}

/// Runs a program and gives what it wrote to standard output; its failure is an error.
pub(crate) fn output<S: AsRef<OsStr>>(root: &Path, words: &[S]) -> Result<String> {
    let output = program(root, words)?
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", line(words)))?;
    if !output.status.success() {
        bail!("`{}` ended with {}", line(words), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading what {} wrote", line(words)))
}

/// A command as one would type it.
pub(crate) fn line<S: AsRef<OsStr>>(words: &[S]) -> String {
    words.iter().map(|word| word.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Lines up rows under a heading; the last column is left as it is.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|&title| title.to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&heading).chain(rows).collect();
    let width = |column: usize| {
        all.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max()
    };
    let widths: Vec<usize> = (0..heading.len()).map(|column| width(column).unwrap_or(0)).collect();
    let show = |row: &&Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(show).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up() {
        let rows =
            [vec!["format".to_owned(), "1.0 s".to_owned()], vec!["a".to_owned(), "b".to_owned()]];
        assert_eq!(table(&["stage", "took"], &rows), "stage   took\nformat  1.0 s\na       b");
    }

    #[test]
    fn a_failing_program_is_an_error() {
        assert!(output(Path::new("."), &["false"]).is_err());
        assert!(!runs(Path::new("."), &["false"]).unwrap());
        assert!(runs::<&str>(Path::new("."), &[]).is_err());
    }
}
