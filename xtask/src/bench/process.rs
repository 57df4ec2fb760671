//! Figures of the whole program, as its user meets it: size, start, memory, a re-run, bring-ups.

use std::fs;
use std::io::{PipeWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Bound, Measure, median};
use crate::talk;

const SIZE: Bound = Bound::at_most("release binary", 20.0, "MB");
const START: Bound = Bound::at_most("start (--version)", 3.0, "ms");
const MEMORY: Bound = Bound::at_most("memory (--version)", 15.0, "MB");
const RERUN: Bound = Bound::at_most("no-op re-run of six layers", 50.0, "ms");
const RISES: Bound = Bound::at_least("rehearsed 3+2 bring-ups", 5.0, "a second");

const WHOLE: Bound = Bound::at_most("3+2 bring-up, whole process", 250.0, "ms");

const SCREEN: Bound = Bound::at_most("live screen, share of a run's processor time", 2.0, "%");

const STARTS: usize = 200;
const RERUNS: usize = 20;
const BRING_UPS: usize = 20;
const SHOWN: usize = 40;
const SHOWN_AT_ONCE: usize = 5;

/// Milliseconds of a tick in which Linux counts processor time for programs.
const TICK: f64 = 10.0;

/// What a pipe holds by default; one more byte makes its writer wait.
const PIPE: usize = 65_536;

/// Measures everything that needs only the binary.
pub(crate) fn measure(castle: &Path) -> Vec<Measure> {
    vec![
        SIZE.judge(size(castle)),
        START.judge(start(castle)),
        MEMORY.judge(memory(castle)),
        RERUN.judge(rerun(castle)),
        RISES.judge(rises(castle)),
        WHOLE.judge(whole_rise(castle)),
        SCREEN.judge(screen(castle)),
    ]
}

fn size(castle: &Path) -> Result<(f64, String)> {
    let bytes =
        fs::metadata(castle).with_context(|| format!("looking at {}", castle.display()))?.len();
    Ok((megabytes(bytes), String::new()))
}

fn start(castle: &Path) -> Result<(f64, String)> {
    let mut took = Vec::new();
    for _ in 0..STARTS {
        took.push(milliseconds(timed(Command::new(castle).arg("--version"))?));
    }
    let median = median(took).context("no run was made")?;
    Ok((median, format!("median of {STARTS}")))
}

/// Peak memory. The program is made to wait at its last act, writing to a full pipe, so that it can be looked at.
fn memory(castle: &Path) -> Result<(f64, String)> {
    let (reader, mut writer) = std::io::pipe().context("making a pipe")?;
    fill(&mut writer)?;
    let mut child = Command::new(castle)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(writer)
        .spawn()
        .context("starting it")?;
    let peak = settled_peak(child.id());
    drop(reader);
    child.wait().context("waiting for its end")?;
    Ok((megabytes(peak? * 1024), "VmHWM while it writes its answer".to_owned()))
}

fn fill(writer: &mut PipeWriter) -> Result<()> {
    writer.write_all(&vec![0; PIPE]).context("filling the pipe")
}

/// The peak in KiB, once it has stayed the same for a while.
#[expect(clippy::disallowed_methods, reason = "a real process is watched in real time")]
fn settled_peak(process: u32) -> Result<u64> {
    let (mut last, mut same) = (0, 0);
    while same < 10 {
        std::thread::sleep(Duration::from_millis(5));
        let status =
            fs::read_to_string(format!("/proc/{process}/status")).context("reading its status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = line
            .and_then(|line| line.split_whitespace().next())
            .context("it ended before it could be looked at")?;
        let peak = peak.parse().context("reading its peak memory")?;
        same = if peak == last { same + 1 } else { 0 };
        last = peak;
    }
    Ok(last)
}

fn rerun(castle: &Path) -> Result<(f64, String)> {
    let folder = tempfile::tempdir().context("making a folder for the state")?;
    timed(&mut up(castle, folder.path())).context("the first `up`, which the re-runs follow")?;
    let before = processor_time()?;
    let mut took = Vec::new();
    for _ in 0..RERUNS {
        took.push(milliseconds(timed(&mut up(castle, folder.path()))?));
    }
    let each = (processor_time()? - before) / f64::from(u32::try_from(RERUNS)?);
    let median = median(took).context("no run was made")?;
    Ok((median, format!("whole process, median of {RERUNS}; {each:.0} ms of processor each")))
}

fn rises(castle: &Path) -> Result<(f64, String)> {
    let before = processor_time()?;
    let mut command = Command::new(castle);
    command.args(["rehearse", "repeat", "--times", &BRING_UPS.to_string()]);
    let total = timed(&mut command)?;
    let count = f64::from(u32::try_from(BRING_UPS)?);
    let each = (processor_time()? - before) / count;
    let rate = count / total.as_secs_f64();
    Ok((
        rate,
        format!(
            "one process, {BRING_UPS} times, journal in memory; {each:.0} ms of processor each"
        ),
    ))
}

fn whole_rise(castle: &Path) -> Result<(f64, String)> {
    let mut took = Vec::new();
    for _ in 0..BRING_UPS {
        let folder = tempfile::tempdir().context("making a folder for the state")?;
        took.push(milliseconds(timed(&mut up(castle, folder.path()))?));
    }
    let median = median(took).context("no run was made")?;
    Ok((median, format!("whole process, fresh state on disk, median of {BRING_UPS}")))
}

/// What the live screen costs: bring-ups on a pseudo terminal that `script` gives, with the screen and with no face at all,
/// in turns that begin with the one as often as with the other, so that whatever else the machine does strikes both.
fn screen(castle: &Path) -> Result<(f64, String)> {
    let mut shares = Vec::new();
    for turn in 0..SHOWN {
        let shown_first = turn % 2 == 0;
        let one = on_terminal(castle, shown_first)?;
        let other = on_terminal(castle, !shown_first)?;
        let (with, without) = if shown_first { (one, other) } else { (other, one) };
        shares.push((with - without) / without * 100.0);
    }
    let (middle, off) = spread(&shares).context("no run was made")?;
    let note = format!(
        "{} bring-ups each way, beside none of any kind shown; {off:.1} either way (95 of 100)",
        SHOWN * SHOWN_AT_ONCE
    );
    Ok((middle, note))
}

/// The mean of several figures, and how far the true one may lie from it in 95 cases of 100.
fn spread(figures: &[f64]) -> Option<(f64, f64)> {
    let count = f64::from(u32::try_from(figures.len()).ok()?);
    if count < 2.0 {
        return None;
    }
    let mean = figures.iter().sum::<f64>() / count;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    Some((mean, 1.96 * (squares / (count - 1.0) / count).sqrt()))
}

/// Processor time of some bring-ups on a terminal, in milliseconds: of castle alone, and not of the terminal that shows them.
fn on_terminal(castle: &Path, shown: bool) -> Result<f64> {
    let times = SHOWN_AT_ONCE;
    let show = if shown { " --show" } else { "" };
    let folder = tempfile::tempdir().context("making a folder for the figures")?;
    let file = folder.path().join("times");
    let (castle, told) = (castle.display(), file.display());
    let line =
        format!("bash -c \"'{castle}' rehearse repeat --times {times}{show} && times > '{told}'\"");
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.env_remove("CI").env("TERM", "xterm");
    timed(&mut command).context("`script` (util-linux) gives the terminal")?;
    let text = fs::read_to_string(&file).context("reading what the shell's `times` told")?;
    children_times(&text).context("understanding what the shell's `times` told")
}

/// The processor time of a shell's children in milliseconds, user's and system's, as its `times` tells them in the second
/// line: `0m1.234s 0m0.056s`.
fn children_times(text: &str) -> Option<f64> {
    let mut sum = 0.0;
    for time in text.lines().nth(1)?.split_whitespace() {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        sum += minutes.parse::<f64>().ok()? * 60_000.0 + seconds.parse::<f64>().ok()? * 1000.0;
    }
    Some(sum)
}

/// `castle up` of the embedded example at full speed.
fn up(castle: &Path, state: &Path) -> Command {
    let mut command = Command::new(castle);
    command.args(["up", "--speed", "max", "--state"]).arg(state.join("state")).current_dir(state);
    command
}

/// From start to end of a process that must succeed.
fn timed(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = talk::now();
    let output = command.output().context("starting it")?;
    let took = start.elapsed();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "it ended with {}: {}",
            output.status,
            said.lines().last().unwrap_or("nothing was said")
        );
    }
    Ok(took)
}

/// Processor time of all children so far, in milliseconds: on a busy machine it tells cost from waiting.
fn processor_time() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat").context("reading our own figures")?;
    children_ticks(&text)
        .map(|ticks| f64::from(ticks) * TICK)
        .context("understanding our own figures")
}

/// User and system ticks of the children: fields 16 and 17, counted from the name in parentheses, which is field 2.
fn children_ticks(stat: &str) -> Option<u32> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some(ticks(13)? + ticks(14)?)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "sizes of programs are far below 2^52 bytes")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_of_children_are_found() {
        let stat = "42 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 11 12 130 140 15";
        assert_eq!(children_ticks(stat), Some(270));
        assert_eq!(children_ticks("42 (a) R 1"), None);
    }

    #[test]
    fn the_times_of_a_shells_children_are_found() {
        let told = "0m0.001s 0m0.002s\n0m2.512s 1m0.030s\n";
        assert_eq!(children_times(told), Some(62_542.0));
        assert_eq!(children_times("0m0.001s 0m0.002s\n"), None);
        assert_eq!(children_times("\n1,5s\n"), None);
    }

    #[test]
    fn figures_that_agree_lie_close_to_the_true_one() {
        let (mean, off) = spread(&[1.0, 3.0, 1.0, 3.0]).unwrap();
        assert!((mean - 2.0).abs() < 1e-9 && (off - 1.131_606).abs() < 1e-3, "{mean} {off}");
        assert_eq!(spread(&[1.0, 1.0]), Some((1.0, 0.0)));
        assert_eq!(spread(&[1.0]), None);
    }
}
