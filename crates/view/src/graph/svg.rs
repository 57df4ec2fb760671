//! The graph as a picture that needs nobody else's program to be drawn.

use std::fmt::Write;

use castle_model::time::length;

use super::label::{BROAD, NARROW, TIP, numbers, place, plate};
use super::letters::Font;
use super::place::{HEAD, Layout, PAD, Rect, lay_out};
use super::rank::Shape;
use super::sketch::{Drawn, Sketch, common};

const NAME: Font = Font { size: 120, bold: true };
const WORDS: Font = Font { size: 105, bold: false };
const LAYER: Font = Font { size: 110, bold: true };
const TEXT: Font = Font { size: 115, bold: false };

/// The widest and the narrowest text in a box.
const WIDEST: i64 = 130;
const NARROWEST: i64 = 70;
/// The widest head of a box: its name is cut only where it must be.
const HEADLINE: i64 = 200;
/// Between the border of a box and its text.
const INSIDE: i64 = 9;
/// The distance of lines.
const LINE: i64 = 14;
/// Around everything.
const MARGIN: i64 = 20;
/// Narrower pictures leave no room for the words around the graph.
const LEAST: i64 = 720;
/// Between the boxes of a stack that stands for several.
const STACK: i64 = 3;

/// Colours for a light and for a dark page. Each stands once more in front as it is: what is no browser knows no variables, and would
/// draw everything black.
const STYLE: &str = "\
svg{--page:#fff;--ink:#1f2328;--quiet:#59636e;--frame:#f3f5f7;--edge:#d5dbe1;--box:#fff;--rim:#aab4be;--line:#98a3ae;--hot:#c4460b;--warm:#fff4ec;\
font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
@media(prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--quiet:#9aa4af;--frame:#151b23;--edge:#2d343d;--box:#1d242d;--rim:#4b5560;--line:#66717d;--hot:#ff9d5c;--warm:#33221a}}\
.page{fill:#fff;fill:var(--page)}.frame{fill:#f3f5f7;fill:var(--frame);stroke:#d5dbe1;stroke:var(--edge)}\
.plate{fill:#f3f5f7;fill:var(--frame)}\
.box{fill:#fff;fill:var(--box);stroke:#aab4be;stroke:var(--rim)}.proves{stroke-dasharray:4 3}\
.hot .box{fill:#fff4ec;fill:var(--warm);stroke:#c4460b;stroke:var(--hot);stroke-width:1.8}\
.arrow{fill:none;stroke:#98a3ae;stroke:var(--line);stroke-width:1.2}.hot.arrow{stroke:#c4460b;stroke:var(--hot);stroke-width:2.6}\
.tip{fill:#98a3ae;fill:var(--line)}.tip.hot{fill:#c4460b;fill:var(--hot)}\
text{fill:#1f2328;fill:var(--ink)}.name{font-size:12px;font-weight:700}.words{font-size:10.5px;fill:#59636e;fill:var(--quiet)}\
.time{font-size:10.5px;fill:#59636e;fill:var(--quiet)}.hot .time{fill:#c4460b;fill:var(--hot);font-weight:700}\
.layer{font-size:11px;font-weight:700;fill:#59636e;fill:var(--quiet);stroke:#f3f5f7;stroke:var(--frame);stroke-width:4;paint-order:stroke}\
.title{font-size:16px;font-weight:700}.text{font-size:11.5px;fill:#59636e;fill:var(--quiet)}.key{font-size:11.5px;font-weight:700}\
";

/// A box and what is written in it.
struct Card {
    name: String,
    time: String,
    words: Vec<String>,
    width: i64,
    height: i64,
}

impl Card {
    fn of(drawn: &Drawn) -> Self {
        let time = length(drawn.takes);
        let room = HEADLINE - WORDS.width(&time) - 8;
        let name = NAME.lines(&drawn.name, room, 1).concat();
        let words = WORDS.lines(&drawn.words, WIDEST, 2);
        let head = NAME.width(&name) + 8 + WORDS.width(&time);
        let widest = words.iter().map(|line| WORDS.width(line)).chain([head, NARROWEST]).max();
        let width = (widest.unwrap_or(NARROWEST) + 2 * INSIDE + 1) / 2 * 2;
        let lines = i64::try_from(words.len()).unwrap_or(2);
        Self { name, time, words, width, height: 24 + LINE * lines + if lines > 0 { 2 } else { 0 } }
    }
}

/// The whole picture.
#[must_use]
pub fn svg(sketch: &Sketch) -> String {
    let cards: Vec<Card> = sketch.boxes.iter().map(Card::of).collect();
    let layout = lay_out(&shape(sketch, &cards));
    let width = layout.width.max(LEAST) + 2 * MARGIN;
    let proofs = Proofs::of(sketch, width - 2 * MARGIN);
    let top = MARGIN + 78;
    let height = top + layout.height + proofs.height() + MARGIN;
    let about = format!(
        "castle {}: {} steps in {} layers and what each one needs; critical path {}",
        sketch.castle,
        sketch.steps,
        sketch.layers.len(),
        sketch.critical
    );
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" data-crossings=\"{}\" aria-label=\"{}\">\n\
         <style>{STYLE}</style>\n<desc>{}</desc>\n<rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n",
        layout.crossings,
        escaped(&about),
        escaped(&told(sketch)),
    );
    heading(&mut page, sketch);
    let left = MARGIN + (width - 2 * MARGIN - layout.width) / 2;
    let _ = writeln!(page, "<g transform=\"translate({left} {top})\">");
    frames(&mut page, &layout);
    arrows(&mut page, sketch, &layout);
    labels(&mut page, sketch, &layout);
    for ((drawn, card), rect) in sketch.boxes.iter().zip(&cards).zip(&layout.boxes) {
        card_in(&mut page, drawn, card, *rect, &sketch.layers[drawn.layer]);
    }
    page.push_str("</g>\n");
    proofs.draw(&mut page, top + layout.height);
    page.push_str("</svg>\n");
    page
}

fn shape(sketch: &Sketch, cards: &[Card]) -> Shape {
    Shape {
        sizes: cards.iter().map(|card| (card.width, card.height)).collect(),
        layers: sketch.boxes.iter().map(|drawn| drawn.layer).collect(),
        edges: sketch
            .arrows
            .iter()
            .map(|arrow| (arrow.from, arrow.to, if arrow.critical || arrow.chain { 3 } else { 1 }))
            .collect(),
        labels: sketch
            .layers
            .iter()
            .map(|layer| LAYER.width(layer.as_str()) + LAYER.width(&part(1, 2)) + 2 * PAD)
            .collect(),
    }
}

/// What the picture shows, for whoever can not see it.
fn told(sketch: &Sketch) -> String {
    let path: Vec<&str> =
        sketch.boxes.iter().filter(|b| b.critical).map(|b| b.name.as_str()).collect();
    format!("On the critical path: {}.", path.join(", "))
}

/// What it is, and how it is to be read.
fn heading(page: &mut String, sketch: &Sketch) {
    let (x, y) = (MARGIN, MARGIN + 14);
    let title = format!("castle {}", sketch.castle);
    let _ = writeln!(page, "<text class=\"title\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(&title));
    let line = format!(
        "{} steps in {} layers. An arrow runs from a step to what needs it: the proof of the one is asked for before the other starts.",
        sketch.steps,
        sketch.layers.len(),
    );
    let _ =
        writeln!(page, "<text class=\"text\" x=\"{x}\" y=\"{}\">{}</text>", y + 22, escaped(&line));
    let y = y + 44;
    let critical = format!("critical path: {}", sketch.critical);
    let _ = writeln!(
        page,
        "<path class=\"arrow hot\" d=\"M{x} {0}h26\"/><text class=\"text\" x=\"{1}\" y=\"{y}\">{2}</text>",
        y - 4,
        x + 34,
        escaped(&critical)
    );
    let mut x = x + 34 + TEXT.width(&critical) + 24;
    let _ = writeln!(
        page,
        "<rect class=\"box proves\" x=\"{x}\" y=\"{}\" width=\"24\" height=\"13\" rx=\"4\"/><text class=\"text\" x=\"{}\" y=\"{y}\">makes nothing, only proves</text>",
        y - 11,
        x + 32,
    );
    if sketch.boxes.iter().any(|drawn| drawn.ids.len() > 1) {
        x += 32 + TEXT.width("makes nothing, only proves") + 24;
        stack(page, Rect { x, y: y - 11, width: 22, height: 11 }, "box");
        let _ = writeln!(
            page,
            "<rect class=\"box\" x=\"{x}\" y=\"{}\" width=\"22\" height=\"11\" rx=\"4\"/><text class=\"text\" x=\"{}\" y=\"{y}\">machines that are alike</text>",
            y - 11,
            x + 36,
        );
    }
}

/// The boxes behind one that stands for several.
fn stack(page: &mut String, rect: Rect, class: &str) {
    for step in [2, 1] {
        let _ = writeln!(
            page,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\"/>",
            rect.x + step * STACK,
            rect.y + step * STACK,
            rect.width,
            rect.height,
        );
    }
}

fn frames(page: &mut String, layout: &Layout) {
    for (_, rect) in &layout.frames {
        let Rect { x, y, width, height } = rect;
        let _ = writeln!(
            page,
            "<rect class=\"frame\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>",
        );
    }
}

/// What is said of a layer that has several frames.
fn part(number: usize, of: usize) -> String {
    format!(" {number}/{of}")
}

/// The names of the layers, on plates that no arrow shows through.
fn labels(page: &mut String, sketch: &Sketch, layout: &Layout) {
    for ((layer, rect), (number, of)) in layout.frames.iter().zip(numbers(layout)) {
        let name = sketch.layers[*layer].as_str();
        let name = if of > 1 { format!("{name}{}", part(number, of)) } else { name.to_owned() };
        let wide = LAYER.width(&name);
        let left = place(*rect, wide, layout);
        let Rect { x, y, width, height } = plate(*rect, left, wide);
        let _ = writeln!(
            page,
            "<rect class=\"plate\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/><text class=\"layer\" x=\"{left}\" y=\"{}\">{}</text>",
            rect.y + HEAD - 7,
            escaped(&name)
        );
    }
}

/// Quiet arrows first, so that the critical path lies on top.
fn arrows(page: &mut String, sketch: &Sketch, layout: &Layout) {
    for hot in [false, true] {
        for (arrow, way) in
            sketch.arrows.iter().zip(&layout.edges).filter(|(a, _)| a.critical == hot)
        {
            let (from, to) = (&sketch.boxes[arrow.from], &sketch.boxes[arrow.to]);
            let class = if hot { " hot" } else { "" };
            let _ = writeln!(
                page,
                "<g><title>{}</title><path class=\"arrow{class}\" d=\"{}\"/>{}</g>",
                escaped(&format!("{} → {}: {}", from.name, to.name, from.proof)),
                curve(way),
                tip(way, class),
            );
        }
    }
}

/// Straight through the rows, bent between them.
fn curve(way: &[(i64, i64, i64)]) -> String {
    let mut path = String::new();
    let last = way.len() - 1;
    for (number, (x, top, bottom)) in way.iter().enumerate() {
        let top = if number == last { top - TIP } else { *top };
        if number == 0 {
            let _ = write!(path, "M{x} {bottom}");
            continue;
        }
        let (from, above) = (way[number - 1].0, way[number - 1].2);
        let half = (top - above) / 2;
        if from == *x {
            let _ = write!(path, "V{top}");
        } else {
            let _ = write!(path, "C{from} {} {x} {} {x} {top}", above + half, top - half);
        }
        if bottom > &top && number != last {
            let _ = write!(path, "V{bottom}");
        }
    }
    path
}

fn tip(way: &[(i64, i64, i64)], class: &str) -> String {
    let Some((x, y, _)) = way.last() else { return String::new() };
    let half = if class.is_empty() { NARROW } else { BROAD };
    format!(
        "<path class=\"tip{class}\" d=\"M{} {}h{}L{x} {y}z\"/>",
        x - half,
        y - TIP - 1,
        2 * half
    )
}

fn card_in(
    page: &mut String,
    drawn: &Drawn,
    card: &Card,
    rect: Rect,
    layer: &castle_model::LayerName,
) {
    let hot = if drawn.critical { " class=\"hot\"" } else { "" };
    let proves = if drawn.only_proves { " proves" } else { "" };
    let title = format!(
        "{layer}/{}: {}; proven when {}; takes {}",
        drawn.name, drawn.words, drawn.proof, card.time
    );
    let _ = writeln!(page, "<g{hot}><title>{}</title>", escaped(&title));
    if drawn.ids.len() > 1 {
        stack(page, rect, "box");
    }
    let Rect { x, y, width, height } = rect;
    let _ = writeln!(
        page,
        "<rect class=\"box{proves}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>"
    );
    let _ = writeln!(
        page,
        "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text><text class=\"time\" x=\"{}\" y=\"{1}\" text-anchor=\"end\">{}</text>",
        x + INSIDE,
        y + 16,
        escaped(&card.name),
        rect.right() - INSIDE,
        card.time,
    );
    let mut line = y + 16;
    for words in &card.words {
        line += LINE;
        let _ = writeln!(
            page,
            "<text class=\"words\" x=\"{}\" y=\"{line}\">{}</text>",
            x + INSIDE,
            escaped(words)
        );
    }
    page.push_str("</g>\n");
}

/// What each arrow stands for, below the graph: a picture on a page shows no titles.
struct Proofs {
    /// The name and the lines of each one.
    rows: Vec<(String, Vec<String>)>,
    columns: usize,
    width: i64,
    names: i64,
}

impl Proofs {
    fn of(sketch: &Sketch, width: i64) -> Self {
        let mut rows: Vec<(String, &str)> = Vec::new();
        for (number, drawn) in sketch.boxes.iter().enumerate() {
            let name = drawn.ids.first().map_or("", |id| common(id)).to_owned();
            let proof = drawn.proof.as_str();
            let needed = sketch.arrows.iter().any(|arrow| arrow.from == number);
            if needed && !rows.iter().any(|row| row.0 == name && row.1 == proof) {
                rows.push((name, proof));
            }
        }
        let bold = Font { bold: true, ..TEXT };
        let names = rows.iter().map(|row| bold.width(&row.0)).max().unwrap_or(0) + 10;
        let columns = usize::try_from(width / 400).unwrap_or(1).clamp(1, 4);
        let column = width / i64::try_from(columns).unwrap_or(1);
        let lines = |proof: &str| WORDS.lines(proof, column - names - 16, 2);
        let rows = rows.into_iter().map(|(name, proof)| (name, lines(proof))).collect();
        Self { rows, columns, width: column, names }
    }

    fn per_column(&self) -> usize {
        self.rows.len().div_ceil(self.columns)
    }

    fn height_of(rows: &[(String, Vec<String>)]) -> i64 {
        rows.iter().map(|(_, lines)| i64::try_from(lines.len()).unwrap_or(1) * LINE + 3).sum()
    }

    fn height(&self) -> i64 {
        let columns = self.rows.chunks(self.per_column().max(1)).map(Self::height_of);
        columns.max().map_or(0, |tallest| tallest + 52)
    }

    fn draw(&self, page: &mut String, top: i64) {
        let y = top + 34;
        let _ = writeln!(
            page,
            "<text class=\"key\" x=\"{MARGIN}\" y=\"{y}\">What is proven before anything relies on it</text>"
        );
        for (column, rows) in self.rows.chunks(self.per_column().max(1)).enumerate() {
            let x = MARGIN + self.width * i64::try_from(column).unwrap_or(0);
            let mut y = y + 20;
            for (name, lines) in rows {
                let _ = writeln!(
                    page,
                    "<text class=\"key\" x=\"{x}\" y=\"{y}\">{}</text>",
                    escaped(name)
                );
                for line in lines {
                    let _ = writeln!(
                        page,
                        "<text class=\"words\" x=\"{}\" y=\"{y}\">{}</text>",
                        x + self.names,
                        escaped(line)
                    );
                    y += LINE;
                }
                y += 3;
            }
        }
    }
}

/// Text as it may stand in a picture.
fn escaped(text: &str) -> String {
    crate::style::clean(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests;
