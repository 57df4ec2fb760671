//! How long files, functions and inline tests are.

use super::Finding;
use crate::house::Limits;
use crate::scan;
use crate::tree::Source;

/// How many are longer than wished, though not refused.
pub(crate) struct Wishes {
    /// Files.
    pub(crate) files: usize,
    /// Functions.
    pub(crate) functions: usize,
}

/// Finds what is longer than allowed.
pub(crate) fn check(limits: &Limits, files: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        if lines > limits.file_lines {
            let text =
                format!("{lines} lines, {} are allowed: split it by verb", limits.file_lines);
            findings.push(Finding::measured("file-lines", &file.path, 0, lines, text));
        }
        let code = scan::scan(&file.text).code;
        for function in scan::functions(&code)
            .into_iter()
            .filter(|function| function.lines > limits.function_lines)
        {
            let (name, lines) = (&function.name, function.lines);
            let text = format!(
                "`{name}` has {lines} lines, {} are allowed: give a part a name",
                limits.function_lines
            );
            findings.push(Finding::measured(
                "function-lines",
                &file.path,
                function.line,
                lines,
                text,
            ));
        }
        if let Some((line, lines)) =
            scan::inline_tests(&code).filter(|(_, lines)| *lines > limits.inline_test_lines)
        {
            let text = format!(
                "`mod tests` has {lines} lines, {} are allowed: move it to `tests.rs` beside",
                limits.inline_test_lines
            );
            findings.push(Finding::measured("inline-tests", &file.path, line, lines, text));
        }
    }
    findings
}

/// Counts what is longer than wished.
pub(crate) fn wishes(limits: &Limits, files: &[Source]) -> Wishes {
    let mut wishes = Wishes { files: 0, functions: 0 };
    for file in files.iter().filter(|file| file.is_rust()) {
        wishes.files += usize::from(file.text.lines().count() > limits.file_lines_wished);
        let functions = scan::functions(&scan::scan(&file.text).code);
        wishes.functions +=
            functions.iter().filter(|f| f.lines > limits.function_lines_wished).count();
    }
    wishes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, house};

    fn rules(text: &str) -> Vec<&'static str> {
        check(&house().limits, &[file("a.rs", text)])
            .into_iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn the_limit_itself_is_allowed_and_one_more_is_not() {
        assert_eq!(rules(&"//!\n".repeat(600)), [""; 0]);
        assert_eq!(rules(&"//!\n".repeat(601)), ["file-lines"]);
        assert_eq!(rules(&format!("fn a() {{\n{}}}\n", "one();\n".repeat(98))), [""; 0]);
        assert_eq!(rules(&format!("fn a() {{\n{}}}\n", "one();\n".repeat(99))), ["function-lines"]);
        assert_eq!(rules(&format!("mod tests {{\n{}}}\n", "\n".repeat(148))), [""; 0]);
        assert_eq!(rules(&format!("mod tests {{\n{}}}\n", "\n".repeat(149))), ["inline-tests"]);
    }

    #[test]
    fn wishes_are_counted() {
        let long = format!("{}fn a() {{\n{}}}\n", "//!\n".repeat(400), "one();\n".repeat(60));
        let wishes = wishes(&house().limits, &[file("a.rs", &long), file("b.md", &long)]);
        assert_eq!((wishes.files, wishes.functions), (1, 1));
    }
}
