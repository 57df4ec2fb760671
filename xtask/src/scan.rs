//! Takes Rust text apart just far enough: code with strings and comments blanked, comments, functions, blocks.

/// Rust text in which braces and words can be counted.
pub(crate) struct Scanned {
    /// The text with comments as spaces and what stands in literals as `x`; same lines as the original.
    pub(crate) code: String,
    /// Every line of comment: line number from 1, and what it says.
    pub(crate) comments: Vec<(usize, String)>,
}

/// A function and how long it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from `fn` to the closing brace, without blank lines and comments.
    pub(crate) lines: usize,
}

/// Blanks literals and comments.
pub(crate) fn scan(text: &str) -> Scanned {
    let mut scanner = Scanner {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
        code: String::new(),
        comments: Vec::new(),
    };
    while let Some(c) = scanner.peek(0) {
        match (c, scanner.peek(1)) {
            ('/', Some('/')) => scanner.line_comment(),
            ('/', Some('*')) => scanner.block_comment(),
            ('"', _) => scanner.string(),
            ('r', Some('"' | '#')) if !scanner.inside_word() && scanner.raw_hashes().is_some() => {
                scanner.raw_string();
            }
            ('\'', _) => scanner.quote(),
            _ => scanner.keep(),
        }
    }
    Scanned { code: scanner.code, comments: scanner.comments }
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: usize,
    code: String,
    comments: Vec<(usize, String)>,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        let Some(c) = self.peek(0) else { return };
        self.code.push(c);
        self.step(c);
    }

    fn blank(&mut self, with: char) {
        let Some(c) = self.peek(0) else { return };
        self.code.push(if c == '\n' { '\n' } else { with });
        self.step(c);
    }

    fn step(&mut self, c: char) {
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
    }

    /// Whether the character before belongs to a word; `b` and `c` before a literal do not count.
    fn inside_word(&self) -> bool {
        let before =
            |back: usize| self.at.checked_sub(back).and_then(|at| self.chars.get(at)).copied();
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match before(1) {
            Some('b' | 'c') => is_word(before(2)),
            other => is_word(other),
        }
    }

    fn line_comment(&mut self) {
        let (line, mut said) = (self.line, String::new());
        while let Some(c) = self.peek(0).filter(|&c| c != '\n') {
            said.push(c);
            self.blank(' ');
        }
        self.comments.push((line, said));
    }

    fn block_comment(&mut self) {
        let (mut line, mut said, mut depth) = (self.line, String::new(), 0_usize);
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => {
                    depth += 1;
                    self.blank(' ');
                }
                ('*', Some('/')) => {
                    depth -= 1;
                    self.blank(' ');
                }
                ('\n', _) => self.comments.push((line, std::mem::take(&mut said))),
                _ => said.push(c),
            }
            self.blank(' ');
            line = self.line;
            if depth == 0 {
                break;
            }
        }
        self.comments.push((line, said));
    }

    fn string(&mut self) {
        self.keep();
        while let Some(c) = self.peek(0).filter(|&c| c != '"') {
            if c == '\\' {
                self.blank('x');
            }
            self.blank('x');
        }
        self.keep();
    }

    /// The number of `#` of a raw string that begins here, if one does.
    fn raw_hashes(&self) -> Option<usize> {
        let hashes = self.chars[self.at + 1..].iter().take_while(|&&c| c == '#').count();
        (self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    fn raw_string(&mut self) {
        let hashes = self.raw_hashes().unwrap_or(0);
        for _ in 0..hashes + 2 {
            self.keep();
        }
        let ends = |s: &Self| {
            s.peek(0) == Some('"') && (1..=hashes).all(|ahead| s.peek(ahead) == Some('#'))
        };
        while self.peek(0).is_some() && !ends(self) {
            self.blank('x');
        }
        for _ in 0..=hashes {
            self.keep();
        }
    }

    /// A character, or a lifetime.
    fn quote(&mut self) {
        let escaped = self.peek(1) == Some('\\');
        if !escaped && self.peek(2) != Some('\'') {
            return self.keep();
        }
        self.keep();
        if escaped {
            self.blank('x');
        }
        self.blank('x');
        while self.peek(0).is_some_and(|c| c != '\'') {
            self.blank('x');
        }
        self.keep();
    }
}

/// Every function with a body, in the order of the text; inner ones count in their outer one too.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name: String =
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        if let Some(end) = body(&code[at..]).map(|(_, end)| at + end) {
            let lines = code[at..end].lines().filter(|line| !line.trim().is_empty()).count();
            found.push(Function { name, line: line_of(code, at), lines });
        }
    }
    found
}

/// Where the `mod tests` of a file begins (line from 1), and how many lines it has.
pub(crate) fn inline_tests(code: &str) -> Option<(usize, usize)> {
    let at = code.find("mod tests {")?;
    let (_, end) = body(&code[at..])?;
    Some((line_of(code, at), code[at..at + end].lines().count()))
}

/// The line of a byte, from 1.
pub(crate) fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// The first block outside of parentheses: offsets of its opening brace and of the end; none if `;` comes first.
fn body(code: &str) -> Option<(usize, usize)> {
    let (mut nested, mut braces, mut opened) = (0_usize, 0_usize, None);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' if opened.is_none() => nested += 1,
            ')' | ']' if opened.is_none() => nested = nested.saturating_sub(1),
            ';' if opened.is_none() && nested == 0 => return None,
            '{' if opened.is_some() || nested == 0 => {
                opened = opened.or(Some(at));
                braces += 1;
            }
            '}' if braces > 0 => {
                braces -= 1;
                if let (0, Some(start)) = (braces, opened) {
                    return Some((start, at + 1));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<(String, usize)> {
        functions(&scan(text).code).into_iter().map(|f| (f.name, f.lines)).collect()
    }

    #[test]
    fn braces_in_literals_and_comments_do_not_count() {
        let text = "fn a() {\n    let x = \"}\\\"}\"; // }\n    /* } /* } */ } */\n    let c = '}';\n    let r = r#\"}\"}\"#;\n}\nfn b() {}\n";
        assert_eq!(lengths(text), [("a".to_owned(), 5), ("b".to_owned(), 1)]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(lengths("fn a<'a>(x: &'a str) -> &'a str {\n    x\n}\n"), [("a".to_owned(), 3)]);
    }

    #[test]
    fn signatures_without_a_body_and_pointers_are_no_functions() {
        assert_eq!(
            lengths("trait T {\n    fn a(&self) -> [u8; 2];\n}\ntype F = fn (u8) -> u8;\n"),
            []
        );
    }

    #[test]
    fn blank_lines_and_comments_are_free() {
        assert_eq!(lengths("fn a() {\n\n    // why\n    one();\n}\n"), [("a".to_owned(), 3)]);
    }

    #[test]
    fn comments_are_kept_with_their_line() {
        let scanned = scan("let a = \"// no\";\n// yes\n/* one\ntwo */\n");
        let said: Vec<_> =
            scanned.comments.iter().map(|(line, said)| (*line, said.trim())).collect();
        assert_eq!(said, [(2, "// yes"), (3, "one"), (4, "two")]);
    }

    #[test]
    fn the_code_keeps_its_lines() {
        let text = "a(\"one\ntwo\");\nlet b = b\"x\"; /* c\n */ let d = 'd';\n";
        assert_eq!(scan(text).code.lines().count(), text.lines().count());
        assert_eq!(inline_tests("//\nmod tests {\n    x\n}\n"), Some((2, 3)));
    }
}
