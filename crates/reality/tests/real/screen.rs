//! The live screen in a real tmux, which breaks lines anew when it is resized and keeps what scrolls away for good.

use std::time::Duration;

use castle_reality::{Real, nap, run};
use tempfile::TempDir;

use crate::schema::castle;
use crate::setting::{SOON, folder, write};

const LOOK: Duration = Duration::from_millis(100);

/// Longer than any wait on a busy machine.
const PATIENCE: usize = 1200;

/// What is left on the window is looked at after its program has ended.
const CONFIG: &str = "set-option -g remain-on-exit on\nset-option -g history-limit 9999\n";

/// A tmux of our own with one window, which stays when its program ends.
struct Tmux {
    real: Real,
    home: TempDir,
}

impl Tmux {
    /// Runs `castle up` and its words in a window of this size.
    async fn start(real: &Real, size: (u16, u16), words: &str) -> Self {
        let tmux = Self { real: real.clone(), home: folder() };
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let told = format!("{} up {words}; echo ended with $?", castle().display());
        let config = write(tmux.home.path(), "config", CONFIG);
        let window = ["new-session", "-d", "-x", &columns, "-y", &rows, "sh", "-c", &told];
        tmux.say(&[&["-f", config.to_str().unwrap()], &window[..]].concat()).await;
        tmux
    }

    async fn say(&self, words: &[&str]) -> String {
        let mut command = self.real.program();
        let socket = self.home.path().join("tmux");
        command.arg("-u").arg("-S").arg(socket).args(words).env_clear();
        command.env("HOME", self.home.path()).env("LANG", "C.UTF-8").env("PATH", "/usr/bin:/bin");
        run(command, SOON).await.expect_success()
    }

    /// Everything that there is, from the first line that was kept on.
    async fn all(&self) -> String {
        self.say(&["capture-pane", "-p", "-S", "-"]).await
    }

    async fn until(&self, sign: &str) {
        for _ in 0..PATIENCE {
            if self.all().await.contains(sign) {
                return;
            }
            nap(LOOK).await;
        }
        panic!("{sign} does not come:\n{}", self.all().await);
    }

    async fn resize(&self, columns: u16, rows: u16) {
        self.say(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]).await;
        // Time for frames of the new size, and for what is said above them.
        nap(LOOK * 8).await;
    }

    /// What is left when the program has ended; nothing of the screen is. (Its last line says `3 under way,` or `3 under way;`, a report says `under way:` of what a
    /// run that was stopped leaves behind.)
    async fn end(&self, sign: &str) -> String {
        self.until(sign).await;
        let all = self.all().await;
        for torn in ["critical path so far", "under way,", "under way;", "to come", "░", "▸"] {
            assert!(!all.contains(torn), "{torn} is left over:\n{all}");
        }
        all
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = self.real.program();
        command.arg("-S").arg(self.home.path().join("tmux")).arg("kill-server");
        drop(command.output());
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn no_resizing_leaves_a_torn_picture_in_the_scrollback() {
    let Some(real) = Real::find("tmux") else { return };
    let rounds: [&[(u16, u16)]; 3] = [
        &[(120, 30), (80, 30), (120, 30), (80, 30)],
        &[(120, 30), (80, 24)],
        &[(70, 40), (60, 8), (120, 30)],
    ];
    for sizes in rounds {
        let tmux = Tmux::start(&real, sizes[0], "--speed 15").await;
        tmux.until("critical path so far").await;
        for (columns, rows) in &sizes[1..] {
            tmux.resize(*columns, *rows).await;
        }
        let all = tmux.end("ended with 0").await;
        for layer in ["secrets", "platform", "engine", "networking", "storage", "gitops"] {
            let told = all.matches(&format!("layer {layer} stands after")).count();
            assert_eq!(told, 1, "{layer} after {sizes:?}:\n{all}");
        }
        assert_eq!(all.matches("castle blue (a rehearsal) stands").count(), 1, "{all}");
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn ctrl_c_after_a_resizing_leaves_only_words() {
    let Some(real) = Real::find("tmux") else { return };
    let tmux = Tmux::start(&real, (120, 30), "--speed 10").await;
    tmux.until("critical path so far").await;
    tmux.resize(80, 24).await;
    tmux.say(&["send-keys", "C-c"]).await;
    let all = tmux.end("stopped; everything done is recorded").await;
    assert_eq!(all.matches("stopped; everything done is recorded").count(), 1, "{all}");
}
