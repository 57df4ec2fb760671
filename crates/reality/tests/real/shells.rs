//! The completion scripts in the shells that they are for: read without a complaint, and asked as somebody's Tab asks.

use castle_reality::{Real, run};
use tempfile::TempDir;

use crate::schema::castle;
use crate::setting::{SOON, folder, write};

/// Fills in a command line as its Tab does, without a terminal: fish can be asked, zsh needs one of its own.
const TAB: &str = r#"
zmodload zsh/zpty
filled() {
    zpty shell zsh -f -i
    zpty -w shell "PS1= fpath=(${(q)PWD} \$fpath); autoload -U compinit; compinit -u -D; unsetopt beep zle_bracketed_paste"
    zpty -w shell 'zstyle ":completion:*" list-prompt ""; print re''ady'
    zpty -r shell said '*ready*'
    zpty -n -w shell "$1"$'\t'
    zpty -r -m shell said "*$2*" || return 1
    zpty -d shell
}
for asked in "$@"; filled ${(s:=>:)asked} && print -r -- $asked || { print -r -- "not $asked: $said"; exit 1 }
"#;

/// Writes the script of a shell as a file of this name.
async fn script(home: &TempDir, shell: &str, file: &str) {
    let mut command = std::process::Command::new(castle());
    command.args(["completions", shell]).env_clear().current_dir(home.path());
    write(home.path(), file, &run(command, SOON).await.expect_success());
}

/// The shell with these words, where `castle` is a program and nobody's settings are.
async fn say(real: &Real, home: &TempDir, words: &[&str]) -> String {
    let mut command = real.program();
    let place = castle();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", place.parent().unwrap().display());
    command.args(words).current_dir(home.path()).env("PATH", path).env("HOME", home.path());
    command.env("XDG_STATE_HOME", home.path().join("state")).env("TERM", "dumb");
    let said = run(command, SOON).await;
    assert_eq!(said.stderr, "", "{words:?} complains");
    said.expect_success()
}

#[tokio::test]
#[ignore = "needs real components: cargo xtask test"]
async fn zsh_takes_its_completions() {
    let Some(zsh) = Real::find("zsh") else { return };
    let home = folder();
    script(&home, "zsh", "_castle").await;
    say(&zsh, &home, &["-n", "_castle"]).await;
    write(home.path(), "tab", TAB);
    let asked = [
        "castle rehea=>castle rehearse",
        "castle graph --form=>--format",
        "castle why platform/vi=>platform/vip",
    ];
    let told = say(&zsh, &home, &[&["-f", "tab"], &asked[..]].concat()).await;
    assert_eq!(told.lines().collect::<Vec<_>>(), asked);
}

#[tokio::test]
#[ignore = "needs real components: cargo xtask test"]
async fn fish_takes_its_completions() {
    let Some(fish) = Real::find("fish") else { return };
    let home = folder();
    script(&home, "fish", "castle.fish").await;
    say(&fish, &home, &["--no-execute", "castle.fish"]).await;
    for (line, offered) in [
        ("castle re", "rebirth rehearse report"),
        ("castle graph --f", "--file --format"),
        ("castle why platform/vi", "platform/vip"),
        ("castle down --layer s", "secrets storage"),
    ] {
        let asked = format!("source castle.fish; complete -C '{line}'");
        let told = say(&fish, &home, &["--no-config", "-c", &asked]).await;
        // Behind a value may stand what it means.
        let mut told: Vec<&str> = told.lines().filter_map(|line| line.split('\t').next()).collect();
        told.sort_unstable();
        assert_eq!(told.join(" "), offered, "{line}");
    }
}
