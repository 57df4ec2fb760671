//! A run as one page that a browser shows: `timeline.html`, whole in itself, made from a [`Timeline`] and nothing else.
//!
//! Start at [`timeline`]. [`html`](crate::html) is the only way to write markup: text can not get past its escaping. The page needs nothing
//! from anywhere, and its script only adds search and zoom: everything is there without it.

mod chart;
mod detail;
mod html;
mod scale;
mod summary;
mod tables;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_view::timeline::Timeline;
use sha2::{Digest, Sha256};

use crate::html::{Node, el};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What a page says besides the run itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The commands that go on with the run, one after the other, if it is not finished.
    pub go_on: Vec<String>,
    /// The command that makes the page again.
    pub again: String,
    /// The version of castle that made it.
    pub version: String,
}

/// The page of a run, as one HTML document.
#[must_use]
pub fn timeline(timeline: &Timeline, words: &Words) -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    );
    let head = el("head")
        .child(el("meta").attr("charset", "utf-8"))
        .child(el("meta").attr("http-equiv", "Content-Security-Policy").attr("content", policy))
        .child(
            el("meta")
                .attr("name", "viewport")
                .attr("content", "width=device-width, initial-scale=1"),
        )
        .child(el("meta").attr("name", "color-scheme").attr("content", "light dark"))
        .child(el("meta").attr("name", "referrer").attr("content", "no-referrer"))
        .child(el("title").text(&summary::title(timeline)))
        .child(el("style").raw(STYLE));
    let main = el("main")
        .attr("id", "main")
        .maybe(summary::failures(timeline, words))
        .maybe(summary::path(timeline))
        .child(chart::section(timeline))
        .child(tables::layers(timeline))
        .maybe(tables::slower(timeline))
        .maybe(tables::happenings(timeline));
    let body = el("body")
        .child(el("a").class("skip").attr("href", "#steps").text("Skip to the timeline"))
        .child(summary::header(timeline))
        .child(main)
        .child(footer(timeline, words))
        .child(el("script").raw(SCRIPT));
    let page = el("html").attr("lang", "en").child(head).child(body);
    format!("<!doctype html>\n{}\n", page.write())
}

fn footer(timeline: &Timeline, words: &Words) -> Node {
    let times = if timeline.rehearsal {
        "All times are the rehearsal's own, in which a minute is a minute."
    } else {
        "All lengths come from a clock that never jumps."
    };
    el("footer")
        .child(
            el("p").text(&format!(
                "Made by castle {} from the events of the run. {times}",
                words.version
            )),
        )
        .child(el("p").text("To make it again: ").child(el("code").text(&words.again)))
}

#[cfg(test)]
mod tests;
