//! Links in our pages: every relative one leads to a file, and to a heading if it names one.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finding;
use crate::tree::Source;

/// Follows every link of every Markdown file.
pub(crate) fn check(files: &[Source]) -> Vec<Finding> {
    let texts: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.has_ending("md")) {
        for (line, target) in links(&file.text) {
            if let Some(text) = broken(&file.path, &target, &texts) {
                findings.push(Finding::new("link", &file.path, line, text));
            }
        }
    }
    findings
}

fn broken(from: &str, target: &str, texts: &BTreeMap<&str, &str>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) =
        target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let Some(path) = resolve(from, file) else {
        return Some(format!("`{target}` leads out of the repository"));
    };
    let inside = format!("{path}/");
    let Some(text) = texts.get(path.as_str()) else {
        let is_folder = path.is_empty() || texts.keys().any(|known| known.starts_with(&inside));
        return (!is_folder).then(|| format!("`{target}` leads nowhere: there is no {path}"));
    };
    let anchor =
        anchor.filter(|_| Path::new(&path).extension().is_some_and(|ending| ending == "md"))?;
    let found = anchors(text).iter().any(|known| known == anchor);
    (!found).then(|| format!("`{target}` leads to no heading of {path}"))
}

/// The path that a link names, from the root; none if it leaves the repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Every link with its line, those in code left out.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, words) in prose(text) {
        let mut rest = words.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let target = after.split([')', ' ']).next().unwrap_or_default();
            found.push((line, target.trim_matches(['<', '>']).to_owned()));
            rest = after;
        }
        let named = words.strip_prefix('[').and_then(|words| words.split_once("]: "));
        if let Some(target) = named.and_then(|(_, target)| target.split_whitespace().next()) {
            found.push((line, target.to_owned()));
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (_, line) in fenced(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let times = seen.entry(slug.clone()).or_default();
        found.push(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    found
}

/// The lines outside of code fences, without code between backquotes.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    fenced(text)
        .map(|(line, words)| (line, words.split('`').step_by(2).collect::<Vec<_>>().join("`")))
}

fn fenced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            return None;
        }
        (!inside).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::file;

    fn breaches(text: &str) -> usize {
        let other = file(
            "docs/b.md",
            "# Two words, one `name`\n```\n# no heading\n```\n## Again\n## Again\n",
        );
        check(&[file("docs/a.md", text), other, file("README.md", "")]).len()
    }

    #[test]
    fn links_to_files_and_headings_are_followed() {
        assert_eq!(
            breaches(
                "[a](b.md) [b](../README.md) [c](b.md#two-words-one-name) [d](https://x/y) [e](.)"
            ),
            0
        );
        assert_eq!(breaches("[a](b.md#again-1) [f](../docs/)"), 0);
        assert_eq!(breaches("[a](c.md)"), 1);
        assert_eq!(breaches("[a](b.md#three)"), 1);
        assert_eq!(breaches("[a](b.md#no-heading)"), 1);
        assert_eq!(breaches("[a](../../x)"), 1);
        assert_eq!(breaches("# Here\n[a](#here) [b](#there)"), 1);
        assert_eq!(breaches("[a]: c.md\n"), 1);
    }

    #[test]
    fn code_is_not_followed() {
        assert_eq!(breaches("```\n[a](c.md)\n```\n`[a](c.md)`\n"), 0);
    }
}
