//! Frames against a small terminal, which is resized under them.

use castle_model::event::SCHEMA;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, RunId, StepId};
use castle_view::{Progress, Signs, plain};

use super::*;

#[path = "../../../tests/castle/grid.rs"]
mod grid;

use self::grid::Grid;

/// A painter before a terminal that it has taken.
struct Screen {
    painter: Painter,
    grid: Grid,
    size: (usize, usize),
}

impl Screen {
    fn new(columns: usize, rows: usize) -> Self {
        let mut grid = Grid::new(columns, rows);
        grid.write("$ castle up\r\n");
        grid.write(ENTER);
        Self { painter: Painter::default(), grid, size: (columns, rows) }
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        self.grid.resize(columns, rows);
        self.size = (columns, rows);
    }

    /// Says and shows this, and tells whether anything was written.
    fn show(&mut self, said: &[&str], picture: &[&str]) -> bool {
        for text in said {
            self.painter.hear(text);
        }
        let lines: Vec<String> = picture.iter().map(|line| (*line).to_owned()).collect();
        let frame = self.painter.frame(&lines, self.size);
        if let Some(text) = &frame {
            self.grid.write(text);
        }
        frame.is_some()
    }

    fn leave(&mut self) -> String {
        self.grid.write(LEAVE);
        self.grid.write(&self.painter.leave(self.size.0));
        assert!(self.grid.cursor_shown);
        self.grid.all()
    }
}

#[test]
fn what_is_said_scrolls_above_the_picture_and_stays_when_it_has_gone() {
    let mut screen = Screen::new(30, 6);
    assert!(screen.show(&[], &["> platform  0:01", "1 of 4"]));
    assert!(!screen.grid.cursor_shown);
    assert!(screen.show(&["one", "two\nthree\n"], &["> platform  0:02", "2 of 4"]));
    insta::assert_snapshot!(screen.grid.all(), @"
    one
    two
    three
    > platform  0:02
    2 of 4
    ");
    screen.show(&[], &["> platform  0:03", "  > vm  0:01", "3 of 4"]);
    screen.show(&["four", "five"], &["+ platform", "4 of 4"]);
    insta::assert_snapshot!(screen.grid.all(), @"
    two
    three
    four
    five
    + platform
    4 of 4
    ");
    screen.painter.hear("six");
    insta::assert_snapshot!(screen.leave(), @"
    $ castle up
    one
    two
    three
    four
    five
    six
    ");
    assert_eq!(screen.painter.leave(30), "", "it was left already");
}

#[test]
fn only_rows_that_changed_are_painted() {
    let mut screen = Screen::new(80, 24);
    assert!(screen.show(&["said"], &["> platform", "1 of 4"]));
    assert!(!screen.show(&[], &["> platform", "1 of 4"]));
    let changed = screen.painter.frame(&["> platform".into(), "2 of 4".into()], (80, 24));
    assert_eq!(changed.unwrap(), "\x1b[?2026h\x1b[3;1H\x1b[K2 of 4\x1b[?2026l");
    screen.resize(79, 24);
    assert!(screen.show(&[], &["> platform", "2 of 4"]), "another size is painted anew");
}

#[test]
fn a_line_as_wide_as_the_screen_keeps_its_last_character() {
    let mut screen = Screen::new(20, 6);
    screen.show(&["layer storage stands"], &["1 of 4"]);
    assert_eq!(screen.grid.all(), "layer storage stands\n1 of 4");
    // A shorter one in its place leaves nothing of it behind.
    screen.resize(20, 2);
    screen.show(&["short"], &["1 of 4"]);
    assert_eq!(screen.grid.all(), "short\n1 of 4");
}

#[test]
fn no_size_leaves_torn_lines_behind() {
    let long = "0123456789".repeat(13);
    let sizes = [(120, 30), (80, 30), (60, 8), (120, 30), (80, 24), (40, 8), (20, 10), (130, 40)];
    let mut screen = Screen::new(120, 30);
    let mut said = Vec::new();
    for (round, (columns, rows)) in sizes.into_iter().enumerate() {
        screen.resize(columns, rows);
        let line: String = long.chars().take(columns - 1).collect();
        let height = screen.painter.room((columns, rows)).min(12);
        let lines: Vec<&str> = std::iter::repeat_n(line.as_str(), height).collect();
        // Once without news, once with.
        for log in [None, Some(format!("said {round}"))] {
            let log: Vec<String> = log.into_iter().collect();
            screen.show(&log.iter().map(String::as_str).collect::<Vec<_>>(), &lines);
            said.extend(log);
            let last = said.len().saturating_sub(rows - height);
            let wanted = said[last..].iter().map(String::as_str).chain(lines.iter().copied());
            let wanted: Vec<&str> = wanted.collect();
            assert_eq!(screen.grid.all(), wanted.join("\n"), "round {round}");
        }
    }
    assert_eq!(screen.leave(), format!("$ castle up\n{}", said.join("\n")));
}

#[test]
fn what_was_said_on_a_wider_screen_is_broken_between_words() {
    let mut screen = Screen::new(40, 6);
    screen.show(&["\x1b[32mlayer platform stands\x1b[0m after 1:02"], &["1 of 4"]);
    screen.resize(16, 6);
    screen.show(&[], &["1 of 4"]);
    insta::assert_snapshot!(screen.grid.all(), @"
    layer platform
      stands after
      1:02
    1 of 4
    ");
    screen.resize(40, 6);
    screen.show(&[], &["1 of 4"]);
    assert_eq!(screen.grid.all(), "layer platform stands after 1:02\n1 of 4");
}

#[test]
fn news_hang_below_their_own_beginning_at_every_width() {
    let mut screen = Screen::new(60, 8);
    let (decls, step) = (Vec::new(), StepId::new("platform", "vm"));
    let text = "the same name is taken by a guest of somebody else, which stays".to_owned();
    let event = Event {
        v: SCHEMA,
        seq: 1,
        at: Moment(0),
        run: RunId::new("r0001-20260202"),
        kind: EventKind::Notice { step: Some(step), text },
    };
    let news = plain::news(&event, &Progress::new(&decls), Signs::Unicode);
    screen.painter.hear_news(news.unwrap());
    screen.show(&[], &["1 of 4"]);
    insta::assert_snapshot!(screen.grid.all(), @"
    [ 0:00] platform/vm  i the same name is taken by a guest of
                           somebody else, which stays
    1 of 4
    ");
    // Nothing of how it was laid out for the wider screen is left.
    screen.resize(46, 8);
    screen.show(&[], &["1 of 4"]);
    insta::assert_snapshot!(screen.grid.all(), @"
    [ 0:00] platform/vm  i the same name is taken
                           by a guest of somebody
                           else, which stays
    1 of 4
    ");
    insta::assert_snapshot!(screen.leave(), @"
    $ castle up
    [ 0:00] platform/vm  i the same name is taken
                           by a guest of somebody
                           else, which stays
    ");
}

#[test]
fn what_was_said_keeps_a_quarter_of_the_screen_at_most() {
    let mut painter = Painter::default();
    let room = |painter: &Painter, rows| painter.room((80, rows));
    assert_eq!(room(&painter, 24), 24);
    painter.hear("one\ntwo");
    assert_eq!(room(&painter, 24), 22);
    painter.hear(&"more\n".repeat(20));
    assert_eq!((room(&painter, 24), room(&painter, 3), room(&painter, 0)), (18, 3, 0));
}
