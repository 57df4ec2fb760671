//! What a busy API server says beside its words: for how long it wants to be left alone.
//!
//! The server's own limit on calls in flight answers 429 with plain text and a header. The crate that reads answers here knows
//! the pause only where it stands in the text, as a `Status`; so it is put there.

use std::error::Error;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Either, Full, Limited};
use hyper::body::Body;
use serde_json::{Value, json};

/// The longest refusal that is read.
const REFUSAL_MAX: usize = 64 * 1024;

/// An answer as it came, or a refusal whose text says for how long to wait.
pub(crate) type Told<B> = Response<Either<B, Full<Bytes>>>;

/// For how many seconds the server asks to be left alone.
pub(crate) fn seconds(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// Puts the pause that a refusal asks for in its header into its text.
pub(crate) async fn told<B, E>(answer: Response<B>) -> Result<Told<B>, E>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let status = answer.status();
    let refused = status.is_client_error() || status.is_server_error();
    let Some(seconds) = seconds(answer.headers()).filter(|_| refused) else {
        return Ok(answer.map(Either::Left));
    };
    let (head, body) = answer.into_parts();
    // What breaks off is a refusal all the same; then it has fewer words.
    let read = Limited::new(std::pin::pin!(body), REFUSAL_MAX).collect().await;
    let text = read.map(Collected::to_bytes).unwrap_or_default();
    let mut told = status_of(status, &text);
    if told["details"]["retryAfterSeconds"].as_u64().unwrap_or_default() == 0 {
        told["details"]["retryAfterSeconds"] = seconds.into();
    }
    Ok(Response::from_parts(head, Either::Right(Full::from(told.to_string()))))
}

/// The `Status` that a server sent, or one made of its words.
fn status_of(status: StatusCode, text: &[u8]) -> Value {
    let sent = serde_json::from_slice::<Value>(text).ok();
    if let Some(mut sent) = sent.filter(|sent| sent["kind"] == "Status") {
        if !sent["details"].is_object() {
            sent["details"] = json!({});
        }
        return sent;
    }
    let reason = match status {
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status.as_u16(),
        "message": String::from_utf8_lossy(text).trim(), "details": {},
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn heard(status: u16, pause: Option<&str>, text: &str) -> Value {
        let mut answer = Response::builder().status(status);
        if let Some(pause) = pause {
            answer = answer.header(RETRY_AFTER, pause);
        }
        let answer = answer.body(Full::from(text.to_owned())).unwrap();
        let told = told::<_, Infallible>(answer).await.unwrap();
        let bytes = told.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into())
    }

    #[tokio::test]
    async fn a_pause_that_only_a_header_asks_for_stands_in_the_text() {
        let busy = heard(429, Some("20"), "Too many requests, please try again later.\n").await;
        assert_eq!(busy["details"]["retryAfterSeconds"], 20);
        assert_eq!(busy["message"], "Too many requests, please try again later.");
        assert_eq!((&busy["reason"], &busy["code"]), (&json!("TooManyRequests"), &json!(429)));
    }

    #[tokio::test]
    async fn a_status_keeps_its_own_words_and_its_own_pause() {
        let sent = json!({
            "kind": "Status", "reason": "ServerTimeout", "code": 504, "message": "late",
            "details": {"kind": "pods", "retryAfterSeconds": 3},
        });
        assert_eq!(heard(504, Some("9"), &sent.to_string()).await, sent);
        let mut without = sent.clone();
        without["details"] = json!({"kind": "pods"});
        let told = heard(504, Some("9"), &without.to_string()).await;
        assert_eq!(told["details"], json!({"kind": "pods", "retryAfterSeconds": 9}));
    }

    #[tokio::test]
    async fn what_asks_for_no_pause_is_left_as_it_came() {
        assert_eq!(heard(429, None, "busy").await, "busy");
        assert_eq!(heard(200, Some("9"), "fine").await, "fine");
        assert_eq!(heard(503, Some("Fri, 31 Dec 1999 23:59:59 GMT"), "away").await, "away");
    }
}
