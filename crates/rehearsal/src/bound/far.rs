//! Answers from far away that nobody can do without: drawn like everything else, but for a client and not for the datacenter.
//!
//! Only what a way down needs counts, and each once: to log in, to learn the project's id, to read the keys, to remove
//! what was kept, and to see that it is gone. What else a client asks for, or asks for twice, is its own doing.

use crate::durations::{Draw, Process};
use crate::trace::Request;

/// The answer that holds the keys.
pub const KEYS: &str = "secrets/keys";
/// The answer that shows that nothing is kept any more.
pub const GONE: &str = "secrets/gone";

const LIST: &str = "/api/v4/secrets";

/// The answers that count among what a secret source was asked, as draws of the datacenter's kind.
#[must_use]
pub fn answers(requests: &[Request]) -> Vec<Draw> {
    let asked: Vec<&Request> = requests
        .iter()
        .filter(|request| request.server == "infisical" && request.status == 200)
        .collect();
    let mut chain = Chain::default();
    let is_list = |request: &Request| request.method == "GET" && request.path == LIST;
    let first = |is: &dyn Fn(&Request) -> bool| asked.iter().copied().find(|request| is(request));
    let mut before = None;
    before = chain.add(first(&|request| request.path.ends_with("/login")), "secrets/login", before);
    let slug = |request: &Request| request.path.starts_with("/api/v1/projects/slug/");
    before = chain.add(first(&slug), "secrets/project", before);
    chain.add(first(&is_list), KEYS, before);
    let removed = |request: &Request| request.method == "DELETE";
    let removals: Vec<&Request> =
        asked.iter().copied().filter(|request| removed(request)).collect();
    let Some(last) = removals.iter().map(|request| request.at).max() else { return chain.0 };
    let numbers = removals.iter().map(|request| chain.add(Some(request), "secrets/remove", None));
    // They may all begin at once, so the longest one decides.
    let longest = numbers.flatten().zip(&removals).max_by_key(|(_, request)| request.took);
    let proof = first(&|request| request.at > last && is_list(request));
    chain.add(proof, GONE, longest.map(|(number, _)| number));
    chain.0
}

/// Draws that get their numbers from the other end, so that none is one of the datacenter's.
#[derive(Default)]
struct Chain(Vec<Draw>);

impl Chain {
    fn add(&mut self, request: Option<&Request>, subject: &str, after: Option<u64>) -> Option<u64> {
        let request = request?;
        let number = u64::MAX - self.0.len() as u64;
        let (begun_at, ms) = (request.at, request.took);
        let (what, subject) = (Process::AnswerFar, subject.to_owned());
        self.0.push(Draw { number, what, subject, begun_at, ms, after });
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(at: u64, method: &str, path: &str, took: u64) -> Request {
        let (server, status, counted) = ("infisical".to_owned(), 200, method == "DELETE");
        Request {
            at,
            server,
            method: method.to_owned(),
            path: path.to_owned(),
            status,
            counted,
            took,
        }
    }

    #[test]
    fn what_is_asked_twice_counts_once() {
        let mut requests = vec![
            asked(0, "POST", "/api/v1/auth/universal-auth/login", 100),
            asked(100, "GET", "/api/v1/projects/slug/tazlab", 200),
            asked(300, "GET", LIST, 50),
            asked(350, "GET", LIST, 70),
            asked(3000, "DELETE", "/api/v4/secrets/A", 80),
            asked(3000, "DELETE", "/api/v4/secrets/B", 90),
            asked(3100, "GET", LIST, 60),
            asked(3200, "GET", LIST, 60),
        ];
        requests[3].status = 500;
        let told = answers(&requests);
        let words: Vec<(&str, u64)> =
            told.iter().map(|draw| (draw.subject.as_str(), draw.ms)).collect();
        let removed = [("secrets/remove", 80), ("secrets/remove", 90), (GONE, 60)];
        let read = [("secrets/login", 100), ("secrets/project", 200), (KEYS, 50)];
        assert_eq!(words, [read, removed].concat());
        assert_eq!(told[2].after, Some(told[1].number));
        assert_eq!(told[5].after, Some(told[4].number), "the longest removal decides");
    }
}
