//! A small terminal: the lines that scrolled away, those on its screen, and the cursor; what it does not know is refused.

/// A terminal of so many columns and rows.
pub(crate) struct Grid {
    columns: usize,
    rows: usize,
    /// Every line from the first on; the last `rows` of them are the screen. The mark says that it goes on in the next.
    lines: Vec<(Vec<char>, bool)>,
    /// Line of `lines`, and column.
    cursor: (usize, usize),
    pub(crate) cursor_shown: bool,
    wrap: bool,
    /// What came of a sequence that is not whole yet.
    open: String,
    /// The ordinary screen and its cursor, while the other one is shown.
    ordinary: Option<Screen>,
}

type Screen = (Vec<(Vec<char>, bool)>, (usize, usize));

impl Grid {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let (lines, cursor) = (vec![(Vec::new(), false)], (0, 0));
        let (cursor_shown, wrap, open) = (true, true, String::new());
        Self { columns, rows, lines, cursor, cursor_shown, wrap, open, ordinary: None }
    }

    /// Whether the other screen is shown.
    pub(crate) fn is_other(&self) -> bool {
        self.ordinary.is_some()
    }

    /// Everything that was ever there, or what the other screen shows, without spaces at the ends.
    pub(crate) fn all(&self) -> String {
        let shown = self.lines.iter().map(|(line, _)| {
            let text: String = line.iter().collect();
            text.trim_end().to_owned()
        });
        shown.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Takes in what a program writes; a sequence may come in pieces.
    pub(crate) fn write(&mut self, text: &str) {
        for c in text.chars() {
            if self.open.is_empty() {
                match c {
                    '\x1b' => self.open.push(c),
                    '\r' => self.cursor.1 = 0,
                    '\n' => self.down(),
                    '\x07' => {}
                    c => self.put(c),
                }
                continue;
            }
            self.open.push(c);
            if self.open.len() > 2 && c.is_ascii_alphabetic() {
                let sequence = std::mem::take(&mut self.open);
                self.obey(&sequence[1..]);
            }
        }
    }

    /// Changes the size as tmux does: lines of the ordinary screen are broken anew, and the cursor stays with its text unless
    /// that has scrolled away; those of the other one are cut.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        if let Some(ordinary) = self.ordinary.take() {
            let (lines, cursor) =
                (std::mem::take(&mut self.lines), std::mem::replace(&mut self.cursor, ordinary.1));
            self.lines = ordinary.0;
            self.resize(columns, rows);
            let below = std::mem::replace(&mut self.lines, lines);
            self.ordinary = Some((below, self.cursor));
            self.cursor = (cursor.0.min(rows - 1), cursor.1.min(columns));
            self.lines.resize_with(rows, Default::default);
            for (line, _) in &mut self.lines {
                line.truncate(columns);
            }
            return;
        }
        let mut whole: Vec<Vec<char>> = vec![Vec::new()];
        let mut cursor = (0, 0);
        for (at, (line, goes_on)) in self.lines.iter().enumerate() {
            let begun = whole.len() - 1;
            if at == self.cursor.0 {
                cursor = (begun, whole[begun].len() + self.cursor.1);
            }
            whole[begun].extend(line);
            if !goes_on {
                whole.push(Vec::new());
            }
        }
        whole.pop();
        let mut lines = Vec::new();
        for (at, line) in whole.iter().enumerate() {
            if at == cursor.0 {
                self.cursor = (lines.len() + cursor.1 / columns, cursor.1 % columns);
            }
            let mut parts: Vec<Vec<char>> = line.chunks(columns).map(<[char]>::to_vec).collect();
            if parts.is_empty() {
                parts.push(Vec::new());
            }
            let last = parts.len() - 1;
            lines.extend(parts.into_iter().enumerate().map(|(n, part)| (part, n < last)));
        }
        // A lower screen first loses what is below the cursor.
        let top = self.lines.len().saturating_sub(self.rows);
        let top = top.min(self.cursor.0);
        lines.truncate((top + rows).max(self.cursor.0 + 1));
        (self.lines, self.columns, self.rows) = (lines, columns, rows);
        let top = self.lines.len().saturating_sub(self.rows);
        if self.cursor.0 < top {
            self.cursor = (top, 0);
        }
    }

    fn down(&mut self) {
        self.cursor.0 += 1;
        if self.cursor.0 == self.lines.len() {
            assert!(!self.is_other(), "the other screen does not scroll");
            self.lines.push((Vec::new(), false));
        }
    }

    fn put(&mut self, c: char) {
        if self.cursor.1 == self.columns {
            if self.wrap {
                self.lines[self.cursor.0].1 = true;
                self.down();
                self.cursor.1 = 0;
            } else {
                self.cursor.1 -= 1;
            }
        }
        let (line, column) = self.cursor;
        let cells = &mut self.lines[line].0;
        cells.resize(cells.len().max(column + 1), ' ');
        cells[column] = c;
        self.cursor.1 += 1;
    }

    fn obey(&mut self, sequence: &str) {
        let (line, column) = self.cursor;
        match sequence {
            "[?25l" => self.cursor_shown = false,
            "[?25h" => self.cursor_shown = true,
            "[?7l" => self.wrap = false,
            "[?7h" => self.wrap = true,
            "[?2026h" | "[?2026l" => {}
            // Behind a full line the cursor stands on the last column, and what it stands on goes too.
            "[K" => {
                self.lines[line].0.truncate(column.min(self.columns - 1));
                self.lines[line].1 = false;
            }
            "[?1049h" => {
                let blank = vec![Default::default(); self.rows];
                self.ordinary = Some((std::mem::replace(&mut self.lines, blank), self.cursor));
                self.cursor = (0, 0);
            }
            "[?1049l" => {
                (self.lines, self.cursor) = self.ordinary.take().expect("the other screen");
            }
            "[J" if self.ordinary.is_some() => {
                self.lines[line].0.truncate(column.min(self.columns - 1));
                for (below, _) in &mut self.lines[line + 1..] {
                    below.clear();
                }
            }
            // From the first cell of the ordinary screen, tmux moves it all away instead of clearing it.
            "[J" if (line, column) == (self.lines.len().saturating_sub(self.rows), 0) => {
                let last = self.lines.iter().rposition(|(line, _)| !line.is_empty());
                self.lines.truncate(last.map_or(line, |last| last + 1));
                self.cursor = (self.lines.len(), 0);
                self.lines.extend(vec![Default::default(); self.rows]);
            }
            "[J" => {
                self.lines[line].0.truncate(column);
                self.lines[line].1 = false;
                self.lines.truncate(line + 1);
            }
            _ if sequence.ends_with('m') => {}
            _ => {
                // A place is told from the screen's first row on, and on the other screen alone: the ordinary one moves.
                assert!(self.is_other(), "{sequence}");
                let place = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('H'));
                let place = place.and_then(|place| match place.split_once(';') {
                    Some((row, column)) => Some((row.parse().ok()?, column.parse().ok()?)),
                    None if place.is_empty() => Some((1, 1)),
                    None => None,
                });
                let (row, column): (usize, usize) = place.expect(sequence);
                self.cursor = (row.min(self.rows) - 1, column.min(self.columns) - 1);
            }
        }
    }
}
