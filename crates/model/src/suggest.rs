//! Finds the nearest right word for a wrong one.

/// The candidate nearest to `word`, if one is near enough to be what was meant: capitals and small letters are the same.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length > 64 {
        return None;
    }
    let allowed = (length / 3).max(1);
    let word = word.to_lowercase();
    let near = |candidate: &'a str| {
        let lower = candidate.to_lowercase();
        let distance = distance(&word, &lower);
        let near = distance <= allowed || (length >= 3 && lower.starts_with(&word));
        near.then_some((distance, candidate))
    };
    let near = candidates.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance);
    near.map(|(_, candidate)| candidate)
}

/// How many letters must be changed, added, dropped or swapped with their neighbour.
#[must_use]
pub fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i];
        for j in 1..=other.len() {
            let same = one[i - 1] == other[j - 1];
            let mut best = (row[j - 1] + usize::from(!same)).min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

/// Words in quotes for a sentence: "`a`, `b` or `c`".
#[must_use]
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|w| format!("`{w}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_keyboard_are_near_and_other_words_are_not() {
        let keys = ["gateway", "subnet", "vip", "nameservers", "pool"];
        for (wrong, right) in [
            ("gatway", "gateway"),
            ("subent", "subnet"),
            ("vpi", "vip"),
            ("nameserver", "nameservers"),
        ] {
            assert_eq!(nearest(wrong, keys), Some(right), "{wrong}");
        }
        assert_eq!(nearest("colour", keys), None);
        let methods = ["GET", "POST", "PUT"];
        for (wrong, right) in [("PSOT", "POST"), ("psot", "POST"), ("GTE", "GET"), ("pos", "POST")]
        {
            assert_eq!(nearest(wrong, methods), Some(right), "{wrong}");
        }
        assert_eq!(nearest("FETCH", methods), None);
        assert_eq!(nearest(&"x".repeat(1 << 16), keys), None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
