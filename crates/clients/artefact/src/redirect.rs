//! Being sent elsewhere: from one https address to the next, a few times, and never away from https.

use castle_wire::Reply;
use http::Uri;

use crate::ArtefactError;

/// How often a download may be sent elsewhere: GitHub's releases do it once or twice.
pub(crate) const REDIRECTS: usize = 5;

/// Where an answer that is no success sends us.
pub(crate) fn target(url: &str, base: &str, reply: &Reply) -> Result<String, ArtefactError> {
    if !reply.status.is_redirection() {
        return Err(refused(url, reply));
    }
    match reply.header("location") {
        Some(place) if place.starts_with('/') => Ok(format!("{base}{place}")),
        Some(place) => Ok(place.to_owned()),
        None => Err(redirect(url, "without saying where to".to_owned())),
    }
}

/// An answer that is no success, with the first line of what it says.
pub(crate) fn refused(url: &str, reply: &Reply) -> ArtefactError {
    let text = reply.text().lines().next().unwrap_or_default().chars().take(200).collect();
    ArtefactError::Answer { url: url.to_owned(), status: reply.status.as_u16(), text }
}

pub(crate) fn not_https(url: &str, place: &str) -> ArtefactError {
    redirect(url, format!("to `{place}`, which is not an https address"))
}

pub(crate) fn redirect(url: &str, why: String) -> ArtefactError {
    ArtefactError::Redirect { url: url.to_owned(), why }
}

/// An https address as server and path.
pub(crate) fn split(url: &str) -> Option<(String, String)> {
    let uri: Uri = url.parse().ok()?;
    if uri.scheme_str() != Some("https") {
        return None;
    }
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    Some((format!("https://{}", uri.authority()?), path.to_owned()))
}
