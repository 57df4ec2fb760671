//! What holds for every picture: nothing overlaps, everything is in its frame, every arrow runs down, all text fits.

use castle_model::{StepDecl, StepId};
use proptest::prelude::*;

use super::*;
use crate::graph::any;
use crate::graph::sketch::Times;

fn sketch(decls: &[StepDecl], expand: bool) -> Sketch {
    Sketch::of(&"blue".parse().unwrap(), decls, &Times::usual(decls), expand)
}

fn laid_out(sketch: &Sketch) -> (Vec<Card>, Layout) {
    let cards: Vec<Card> = sketch.boxes.iter().map(Card::of).collect();
    let layout = lay_out(&shape(sketch, &cards));
    (cards, layout)
}

fn overlap(one: &Rect, other: &Rect) -> bool {
    one.x < other.right()
        && other.x < one.right()
        && one.y < other.bottom()
        && other.y < one.bottom()
}

fn within(inner: &Rect, outer: &Rect) -> bool {
    inner.x >= outer.x
        && inner.y >= outer.y
        && inner.right() <= outer.right()
        && inner.bottom() <= outer.bottom()
}

/// Everything that a picture must keep, for one graph.
fn judge(sketch: &Sketch) -> Result<(), String> {
    let (cards, layout) = laid_out(sketch);
    let all = |rects: &[Rect], what: &str| {
        for (at, one) in rects.iter().enumerate() {
            if let Some(other) = rects[at + 1..].iter().find(|other| overlap(one, other)) {
                return Err(format!("two {what} overlap: {one:?} {other:?}"));
            }
        }
        Ok(())
    };
    all(&layout.boxes, "boxes")?;
    let frames: Vec<Rect> = layout.frames.iter().map(|(_, rect)| *rect).collect();
    all(&frames, "frames")?;
    for (drawn, rect) in sketch.boxes.iter().zip(&layout.boxes) {
        let home = |(layer, frame): &(usize, Rect)| *layer == drawn.layer && within(rect, frame);
        if !layout.frames.iter().any(home) {
            return Err(format!("{} is not in a frame of its layer", drawn.name));
        }
        for (layer, frame) in &layout.frames {
            if *layer != drawn.layer && overlap(rect, frame) {
                return Err(format!("{} is in a foreign frame", drawn.name));
            }
        }
    }
    for (arrow, way) in sketch.arrows.iter().zip(&layout.edges) {
        let (from, to) = (layout.boxes[arrow.from], layout.boxes[arrow.to]);
        let (first, last) = (way[0], way[way.len() - 1]);
        if (first.0, first.1) != (from.middle(), from.bottom())
            || (last.0, last.1) != (to.middle(), to.y)
        {
            return Err(format!("an arrow does not touch its boxes: {way:?}"));
        }
        if way.windows(2).any(|two| two[0].2 >= two[1].1) {
            return Err(format!("an arrow does not run down: {way:?}"));
        }
        let passes = |(x, top, bottom): &(i64, i64, i64), rect: &Rect| {
            top < bottom
                && (rect.x..=rect.right()).contains(x)
                && *top < rect.bottom()
                && rect.y < *bottom
        };
        if layout.boxes.iter().any(|rect| way.iter().any(|place| passes(place, rect))) {
            return Err(format!("an arrow runs through a box: {way:?}"));
        }
    }
    for (card, rect) in cards.iter().zip(&layout.boxes) {
        let room = rect.width - 2 * INSIDE;
        let head = NAME.width(&card.name) + WORDS.width(&card.time);
        if head > room || card.words.iter().any(|line| WORDS.width(line) > room) {
            return Err(format!("the text of {} does not fit", card.name));
        }
        let lines = i64::try_from(card.words.len()).unwrap();
        if 16 + LINE * lines + 3 > rect.height {
            return Err(format!("the lines of {} do not fit", card.name));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_overlaps_and_every_arrow_runs_down(decls in any::decls(16), expand: bool) {
        let sketch = sketch(&decls, expand);
        if let Err(why) = judge(&sketch) {
            prop_assert!(false, "{why}\n{sketch:#?}");
        }
        prop_assert_eq!(svg(&sketch), svg(&sketch.clone()));
    }

    #[test]
    fn what_stands_for_many_has_the_edges_of_each(decls in any::decls(14)) {
        let (folded, whole) = (sketch(&decls, false), sketch(&decls, true));
        let home = |id: &StepId| folded.boxes.iter().position(|b| b.ids.contains(id)).unwrap();
        for arrow in &whole.arrows {
            let ends = (home(&whole.boxes[arrow.from].ids[0]), home(&whole.boxes[arrow.to].ids[0]));
            prop_assert!(folded.arrows.iter().any(|arrow| (arrow.from, arrow.to) == ends));
        }
        for arrow in &folded.arrows {
            for id in &folded.boxes[arrow.to].ids {
                let needs = whole.arrows.iter().filter(|a| whole.boxes[a.to].ids[0] == *id);
                prop_assert!(needs.clone().any(|a| home(&whole.boxes[a.from].ids[0]) == arrow.from));
            }
        }
    }
}

#[test]
fn words_of_others_do_not_become_markup() {
    let id = StepId::new("platform", "image");
    let decls =
        [StepDecl::new(id, "<script>alert(\"&\")</script>\u{1b}[31m", "image", "it is done")];
    let page = svg(&sketch(&decls, false));
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("&lt;script&gt;") || page.contains("&lt;script"), "{page}");
    assert!(!page.contains('\u{1b}'));
}

#[test]
fn no_arrow_shows_through_the_name_of_a_layer() {
    let page = svg(&sketch(&crate::example::decls(), false));
    let last = page.rfind("class=\"arrow").unwrap();
    let names: Vec<(usize, &str)> = page.match_indices("<text class=\"layer\"").collect();
    assert_eq!(names.len(), page.matches("<rect class=\"plate\"").count());
    let plated =
        |at: usize| page[last..at].rsplit('\n').next().unwrap().contains("class=\"plate\"");
    assert!(names.iter().all(|(at, _)| plated(*at)), "{page}");
}

#[test]
fn a_picture_asks_for_nothing_from_elsewhere_and_says_what_it_is() {
    let decls = crate::example::decls();
    let page = svg(&sketch(&decls, false));
    for word in ["href", "url(", "@import", "<image", "<script", "<foreignObject"] {
        assert!(!page.contains(word), "{word}");
    }
    assert_eq!(page.matches("http").count(), 1, "only the name of the format");
    let first = page.lines().next().unwrap();
    insta::assert_snapshot!(first, @r#"<svg xmlns="http://www.w3.org/2000/svg" width="760" height="662" viewBox="0 0 760 662" role="img" data-crossings="0" aria-label="castle blue: 6 steps in 3 layers and what each one needs; critical path 5.0 s by the usual times">"#);
    assert!(page.contains("prefers-color-scheme:dark"));
}
