//! Bodies of requests are wiped when the last reader lets them go: secrets are sent in them.

use bytes::Bytes;
use zeroize::Zeroizing;

/// Takes a body over, to be wiped. What is shared or static stays as it is: it is somebody else's.
pub(crate) fn wiped(body: Bytes) -> Bytes {
    match body.try_into_mut() {
        Ok(own) => Bytes::from_owner(Zeroizing::new(Vec::from(own))),
        Err(shared) => shared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_taken_over_and_not_copied() {
        let text = String::from("{\"clientSecret\":\"hunter2\"}");
        let place = text.as_ptr();
        let body = wiped(Bytes::from(text));
        assert_eq!((&body[2..8], body.as_ptr()), (&b"client"[..], place));
        // One that has an owner of its own can not be taken from it again: that is how we know that it was taken over.
        assert!(body.try_into_mut().is_err());
        assert_eq!(wiped(Bytes::from_static(b"plain")), "plain");
        let shared = Bytes::from(String::from("shared"));
        assert_eq!(wiped(shared.clone()), shared);
    }
}
