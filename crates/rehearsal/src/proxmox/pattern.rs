//! The patterns of the schema: as much of regular expressions as they use, matched against a whole value.

/// A pattern, taken apart.
struct Pattern(Vec<Vec<Repeated>>);

/// A piece and how often it may stand in a row.
struct Repeated {
    piece: Piece,
    least: usize,
    most: usize,
}

/// One piece of a pattern.
enum Piece {
    /// One character of a set.
    Set { ranges: Vec<(char, char)>, negated: bool },
    /// Alternatives.
    Group(Vec<Vec<Repeated>>),
    /// `^` and `$`: the whole value is matched in any case.
    Edge,
}

/// Whether a value as a whole fits a pattern.
pub(super) fn fits(pattern: &str, value: &str) -> bool {
    let mut reader = Reader { text: pattern.chars().collect(), at: 0 };
    let pattern = Pattern(reader.alternatives());
    let text: Vec<char> = value.chars().collect();
    alternatives(&pattern.0, &text, 0, &mut |end| end == text.len())
}

struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn takes(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn alternatives(&mut self) -> Vec<Vec<Repeated>> {
        let mut found = vec![Vec::new()];
        while let Some(next) = self.peek().filter(|next| *next != ')') {
            if next == '|' {
                self.at += 1;
                found.push(Vec::new());
                continue;
            }
            let piece = self.piece();
            let (least, most) = self.count();
            if let Some(last) = found.last_mut() {
                last.push(Repeated { piece, least, most });
            }
        }
        found
    }

    fn piece(&mut self) -> Piece {
        let one = |ranges| Piece::Set { ranges, negated: false };
        match self.next() {
            Some('(') => {
                // `(?:`, `(?^:` and `(?^u:` only group.
                if self.takes('?') {
                    while self.next().is_some_and(|flag| flag != ':') {}
                }
                let group = Piece::Group(self.alternatives());
                self.takes(')');
                group
            }
            Some('[') => self.set(),
            Some('.') => Piece::Set { ranges: vec![('\n', '\n')], negated: true },
            Some('\\') => one(escaped(self.next().unwrap_or('\\'))),
            Some('^' | '$') | None => Piece::Edge,
            Some(plain) => one(vec![(plain, plain)]),
        }
    }

    fn set(&mut self) -> Piece {
        let negated = self.takes('^');
        let mut ranges = Vec::new();
        while let Some(first) = self.next().filter(|next| *next != ']') {
            if first == '\\' {
                ranges.extend(escaped(self.next().unwrap_or('\\')));
                continue;
            }
            let next = self.text.get(self.at + 1).copied();
            match (self.peek(), next) {
                (Some('-'), Some(last)) if last != ']' => {
                    self.at += 2;
                    ranges.push((first, last));
                }
                _ => ranges.push((first, first)),
            }
        }
        Piece::Set { ranges, negated }
    }

    /// How often the piece before may stand: `?`, `*`, `+`, `{2}`, `{,8}`, `{1,12}`; otherwise once.
    fn count(&mut self) -> (usize, usize) {
        match self.peek() {
            Some('?') => self.counted(0, 1),
            Some('*') => self.counted(0, usize::MAX),
            Some('+') => self.counted(1, usize::MAX),
            Some('{') => {
                let inner: String =
                    self.text[self.at + 1..].iter().take_while(|c| **c != '}').collect();
                self.at += inner.chars().count() + 2;
                let (low, high) = inner.split_once(',').unwrap_or((&inner, &inner));
                (low.parse().unwrap_or(0), high.parse().unwrap_or(usize::MAX))
            }
            _ => (1, 1),
        }
    }

    fn counted(&mut self, least: usize, most: usize) -> (usize, usize) {
        self.at += 1;
        (least, most)
    }
}

fn escaped(letter: char) -> Vec<(char, char)> {
    match letter {
        'd' => vec![('0', '9')],
        's' => vec![('\t', '\r'), (' ', ' ')],
        other => vec![(other, other)],
    }
}

type Then<'a> = &'a mut dyn FnMut(usize) -> bool;

fn alternatives(choices: &[Vec<Repeated>], text: &[char], at: usize, then: Then<'_>) -> bool {
    choices.iter().any(|pieces| sequence(pieces, text, at, then))
}

fn sequence(pieces: &[Repeated], text: &[char], at: usize, then: Then<'_>) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return then(at) };
    repeated(first, 0, text, at, &mut |end| sequence(rest, text, end, then))
}

/// Tries the longest row first.
fn repeated(part: &Repeated, done: usize, text: &[char], at: usize, then: Then<'_>) -> bool {
    if done < part.most {
        let more = once(&part.piece, text, at, &mut |end| {
            // A piece that took nothing would be repeated for ever.
            end > at && repeated(part, done + 1, text, end, then)
        });
        if more {
            return true;
        }
    }
    let enough = done >= part.least || matches!(part.piece, Piece::Edge);
    enough && then(at)
}

fn once(piece: &Piece, text: &[char], at: usize, then: Then<'_>) -> bool {
    match piece {
        Piece::Edge => then(at),
        Piece::Group(choices) => alternatives(choices, text, at, then),
        Piece::Set { ranges, negated } => text.get(at).is_some_and(|c| {
            let listed = ranges.iter().any(|(low, high)| (low..=high).contains(&c));
            listed != *negated && then(at + 1)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_schema_take_and_refuse() {
        for (pattern, good, bad) in [
            (r"\+?\d+(\.\d+)?[KMGT]?", &["8", "+1G", "0.5T"][..], &["xx", "1.", "-1", "1GG"][..]),
            (r"https?://.*", &["http://a", "https://"], &["ftp://a", "xhttp://"]),
            (r"[acdn]{1,4}", &["c", "cdn"], &["", "x", "acdna"]),
            (r"[A-Za-z0-9\-_\s]{,8}", &["", "a b-c_d1"], &["123456789", "a;b"]),
            (r"(?^:^(0x)[0-9a-fA-F]{16})", &["0x0123456789abcdef"], &["0x1", "0123456789abcdef"]),
            (r"(/dev/[^,]+|socket)", &["socket", "/dev/ttyS0"], &["sockets", "/dev/", "/dev/a,b"]),
            (r"[A-Za-z0-9+\/]+={0,2}", &["YWJj", "YQ=="], &["=", "a===", "a b"]),
            (
                r"(?:[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}|[01])",
                &["1", "4d8fa510-eaba-4898-9227-9302fa37b986"],
                &["2", "4d8fa510-eaba-4898-9227-9302fa37b98", ""],
            ),
            (
                r"(pc|pc(-i440fx)?-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?|q35|pc-q35-\d+(\.\d+)+(\+pve\d+)?(\.pxe)?)",
                &["q35", "pc", "pc-q35-9.2+pve1", "pc-i440fx-10.0.1.pxe"],
                &["q36", "pc-q35-9", "q35 "],
            ),
            (
                r"(?^u:(?^u:([+-])([a-zA-Z0-9\-_\.]+))(;(?^u:([+-])([a-zA-Z0-9\-_\.]+)))*)",
                &["+aes", "+aes;-pcid"],
                &["aes", "+aes;", "+aes,+x"],
            ),
            (r"(?^:\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*)", &["1", "1-3;5"], &["1-", ";1"]),
        ] {
            for value in good {
                assert!(fits(pattern, value), "{value} fits {pattern}");
            }
            for value in bad {
                assert!(!fits(pattern, value), "{value} does not fit {pattern}");
            }
        }
    }
}
