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
}

impl Grid {
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let (lines, cursor) = (vec![(Vec::new(), false)], (0, 0));
        let (cursor_shown, wrap, open) = (true, true, String::new());
        Self { columns, rows, lines, cursor, cursor_shown, wrap, open }
    }

    /// Everything that was ever there, without spaces at the ends.
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

    /// Changes the size as most terminals do: lines are broken anew, and the cursor stays with its text.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
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
    }

    fn down(&mut self) {
        self.cursor.0 += 1;
        if self.cursor.0 == self.lines.len() {
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
            "[K" => {
                self.lines[line].0.truncate(column);
                self.lines[line].1 = false;
            }
            "[J" => {
                self.lines[line].0.truncate(column);
                self.lines[line].1 = false;
                self.lines.truncate(line + 1);
            }
            _ if sequence.ends_with('m') => {}
            _ => {
                let up = sequence.strip_prefix('[').and_then(|rest| rest.strip_suffix('A'));
                let up: usize = up.and_then(|up| up.parse().ok()).expect(sequence);
                let top = self.lines.len().saturating_sub(self.rows);
                self.cursor.0 = line.saturating_sub(up).max(top);
            }
        }
    }
}
