//! What goes wrong with Infisical when the world says so, and the rate limit, which only some servers have.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Infisical;
use super::permission::{Member, Role};
use super::reply::Refusal;
use crate::turn::{HttpBody, HttpCall, HttpReply};

/// How long a window of the rate limit is, in milliseconds.
const WINDOW: u64 = 60_000;

/// Something that goes wrong with Infisical.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InfisicalTrouble {
    /// The rate limit of the hosted service holds from now on, or no more.
    Limited(bool),
    /// A rate limit holds of so many calls of a kind in a minute.
    LimitedTo(u64),
    /// The next calls that would write stumble inside the server, and write nothing.
    Stumbles(u32),
    /// A proxy answers in the server's place, with a page of this status and title.
    Page(u16, String),
    /// The proxy is gone.
    PageGone,
    /// Every identity is confined to the paths that fit this pattern.
    Confined(String),
    /// Every identity may read, and nothing else.
    ReadOnly,
    /// The client secret of every identity has run out, and so have the tokens that came from it.
    Expired,
    /// Somebody has revoked the client secret of every identity, and the tokens that came from it.
    Revoked,
    /// The client secrets are good again.
    Restored,
    /// Somebody deletes the secret of this name, wherever it is.
    Lost(String),
}

/// Troubles that are on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Troubles {
    /// What was asked for in the window that runs, by route: when it began, and how often.
    limited: Option<BTreeMap<String, (u64, u64)>>,
    /// How often each may be asked for, if not as often as the hosted service allows.
    #[serde(default)]
    most: Option<u64>,
    stumbles: u32,
    page: Option<(u16, String)>,
    /// Why no client secret and no token is taken.
    pub(super) ended: Option<Ended>,
}

/// Why credentials that were good are not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ended {
    Expired,
    Revoked,
}

impl Ended {
    /// How a login is refused.
    pub(super) fn login(self) -> Refusal {
        Refusal::unauthorized(match self {
            Self::Expired => "Access denied due to expired client secret",
            Self::Revoked => "Invalid credentials",
        })
    }

    /// How a token is refused.
    pub(super) fn token(self) -> Refusal {
        match self {
            Self::Expired => Refusal::token("Your token has expired. Please re-authenticate."),
            Self::Revoked => Refusal::unauthorized("Failed to authorize: token has been revoked"),
        }
    }
}

impl Infisical {
    /// Lets a trouble happen.
    pub fn suffer(&mut self, trouble: &InfisicalTrouble) {
        let troubles = &mut self.troubles;
        match trouble {
            InfisicalTrouble::Limited(on) => {
                (troubles.limited, troubles.most) = (on.then(BTreeMap::new), None);
            }
            InfisicalTrouble::LimitedTo(calls) => {
                (troubles.limited, troubles.most) = (Some(BTreeMap::new()), Some(*calls));
            }
            InfisicalTrouble::Stumbles(times) => troubles.stumbles = *times,
            InfisicalTrouble::Page(status, title) => troubles.page = Some((*status, title.clone())),
            InfisicalTrouble::PageGone => troubles.page = None,
            InfisicalTrouble::Expired => troubles.ended = Some(Ended::Expired),
            InfisicalTrouble::Revoked => troubles.ended = Some(Ended::Revoked),
            InfisicalTrouble::Restored => troubles.ended = None,
            InfisicalTrouble::Lost(key) => {
                let environments = self
                    .projects
                    .values_mut()
                    .flat_map(|project| project.environments.values_mut());
                for folder in environments.flat_map(|each| each.folders.values_mut()) {
                    folder.secrets.remove(key);
                }
            }
            InfisicalTrouble::Confined(pattern) => {
                let members =
                    self.projects.values_mut().flat_map(|project| project.members.values_mut());
                for member in members {
                    *member = Member::confined(pattern);
                }
            }
            InfisicalTrouble::ReadOnly => {
                let members =
                    self.projects.values_mut().flat_map(|project| project.members.values_mut());
                for member in members {
                    *member = Member { role: Role::Viewer, rules: Vec::new() };
                }
            }
        }
    }

    /// What is wrong because somebody said so.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let troubles = &self.troubles;
        [
            (troubles.limited.is_some(), "Infisical limits how often it is called"),
            (troubles.stumbles > 0, "Infisical stumbles over the next calls that write"),
            (troubles.page.is_some(), "a proxy answers in the place of Infisical"),
            (
                troubles.ended == Some(Ended::Expired),
                "the client secrets of Infisical have run out",
            ),
            (troubles.ended == Some(Ended::Revoked), "the client secrets of Infisical are revoked"),
        ]
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, words)| words.to_owned())
        .collect()
    }

    /// Serves one call, unless a trouble is in the way.
    pub(super) fn call_in_trouble(
        &mut self,
        now: u64,
        call: &HttpCall,
        answer: impl FnOnce(&mut Self) -> HttpReply,
    ) -> HttpReply {
        if let Some((status, title)) = &self.troubles.page {
            let text = format!("<!doctype html><html><head><title>{title}</title></head></html>");
            let mut page = HttpReply::empty(*status);
            page.headers = vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())];
            page.body = HttpBody::Whole(Bytes::from(text));
            return page;
        }
        let Some(windows) = &mut self.troubles.limited else {
            return self.call_or_stumble(now, call, answer);
        };
        let (route, limit) = bucket(call);
        let limit = self.troubles.most.unwrap_or(limit);
        let (begun, count) = windows.entry(route).or_insert((now, 0));
        if now >= *begun + WINDOW {
            (*begun, *count) = (now, 0);
        }
        *count += 1;
        let (count, reset) = (*count, (*begun + WINDOW - now).div_ceil(1000));
        self.touched += 1;
        let mut reply = if count > limit {
            let message = format!("Rate limit exceeded. Please try again in {reset} seconds");
            let mut refused = Refusal::new(429, "RateLimitExceeded", message).reply(call, now);
            refused.headers.push(("retry-after".to_owned(), reset.to_string()));
            refused
        } else {
            self.call_or_stumble(now, call, answer)
        };
        for (name, value) in
            [("limit", limit), ("remaining", limit.saturating_sub(count)), ("reset", reset)]
        {
            reply.headers.push((format!("x-ratelimit-{name}"), value.to_string()));
        }
        reply
    }

    fn call_or_stumble(
        &mut self,
        now: u64,
        call: &HttpCall,
        answer: impl FnOnce(&mut Self) -> HttpReply,
    ) -> HttpReply {
        if self.troubles.stumbles > 0 && super::counts(call) {
            self.troubles.stumbles -= 1;
            self.touched += 1;
            // The server names what it was doing inside.
            return Refusal::new(500, "Create", "Something went wrong").reply(call, now);
        }
        answer(self)
    }
}

/// What a call is counted with, and how often that may be in a minute.
fn bucket(call: &HttpCall) -> (String, u64) {
    let path = match call.path.strip_prefix("/api/v4/secrets/") {
        Some(name) if name != "batch" => "/api/v4/secrets/:secretName",
        _ => &call.path,
    };
    let secrets = path.starts_with("/api/v4/secrets");
    let limit = if path.starts_with("/api/v1/auth/") {
        200
    } else if secrets || (path == "/api/v2/folders" && call.method == "POST") {
        40
    } else {
        60
    };
    (format!("{} {path}", call.method), limit)
}
