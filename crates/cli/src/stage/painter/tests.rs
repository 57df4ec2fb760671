//! Frames against a small terminal, which is resized under them.

use super::*;

#[path = "../../../tests/castle/grid.rs"]
mod grid;

use self::grid::Grid;

fn picture(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn show(
    painter: &mut Painter,
    grid: &mut Grid,
    size: (usize, usize),
    log: &[&str],
    lines: &[&str],
) {
    if let Some(frame) = painter.frame(&picture(log), &picture(lines), size) {
        grid.write(&frame);
    }
}

#[test]
fn what_is_said_scrolls_above_the_picture() {
    let (mut painter, mut grid) = (Painter::default(), Grid::new(30, 6));
    grid.write("$ castle up\r\n");
    let size = (30, 6);
    show(&mut painter, &mut grid, size, &[], &["> platform  0:01", "1 of 4"]);
    assert!(!grid.cursor_shown);
    show(&mut painter, &mut grid, size, &["one", "two\nthree"], &["> platform  0:02", "2 of 4"]);
    insta::assert_snapshot!(grid.all(), @"
    $ castle up
    one
    two
    three
    > platform  0:02
    2 of 4
    ");
    show(&mut painter, &mut grid, size, &[], &["> platform  0:03", "  > vm  0:01", "3 of 4"]);
    show(&mut painter, &mut grid, size, &["four", "five"], &["+ platform", "4 of 4"]);
    insta::assert_snapshot!(grid.all(), @"
    $ castle up
    one
    two
    three
    four
    five
    + platform
    4 of 4
    ");
    grid.write(&painter.leave(&picture(&["six"])).unwrap());
    grid.write("the report\r\n");
    insta::assert_snapshot!(grid.all(), @"
    $ castle up
    one
    two
    three
    four
    five
    six
    the report
    ");
    assert!(grid.cursor_shown);
    assert_eq!(painter.leave(&[]), None, "it has gone already");
}

#[test]
fn the_same_picture_is_not_painted_twice() {
    let mut painter = Painter::default();
    let lines = picture(&["> platform"]);
    assert!(painter.frame(&[], &lines, (80, 24)).is_some());
    assert_eq!(painter.frame(&[], &lines, (80, 24)), None);
    assert!(painter.frame(&[], &lines, (79, 24)).is_some(), "another size is painted anew");
    assert!(painter.frame(&picture(&["said"]), &lines, (79, 24)).is_some());
}

#[test]
fn no_size_leaves_torn_lines_behind() {
    let long = "0123456789".repeat(7);
    let sizes = [(80, 24), (60, 24), (30, 24), (100, 12), (40, 8), (120, 30), (20, 10), (80, 24)];
    let (mut painter, mut grid) = (Painter::default(), Grid::new(80, 24));
    let mut said = vec!["$ castle up".to_owned()];
    grid.write("$ castle up\r\n");
    for (round, (columns, rows)) in sizes.into_iter().enumerate() {
        grid.resize(columns, rows);
        let fits: String = long.chars().take(columns - 1).collect();
        let lines: Vec<String> = (0..5.min(rows - 1)).map(|_| fits.clone()).collect();
        // Once without news, once with.
        for log in [Vec::new(), vec![format!("said {round}")]] {
            if let Some(frame) = painter.frame(&log, &lines, (columns, rows)) {
                grid.write(&frame);
            }
            said.extend(log);
            let wanted: Vec<&str> = said.iter().chain(&lines).map(String::as_str).collect();
            assert_eq!(grid.all(), wanted.join("\n"), "round {round}");
        }
    }
    grid.write(&painter.leave(&[]).unwrap());
    assert_eq!(grid.all(), said.join("\n"));
}

#[test]
fn a_line_that_is_too_long_for_a_terminal_that_shrank_is_cut_and_not_broken() {
    let (mut painter, mut grid) = (Painter::default(), Grid::new(10, 5));
    show(&mut painter, &mut grid, (20, 5), &[], &["0123456789abcdef", "next"]);
    show(&mut painter, &mut grid, (10, 5), &[], &["012345678", "next"]);
    assert_eq!(grid.all(), "012345678\nnext");
}
