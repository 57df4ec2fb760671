//! The frames of gRPC and the fields of protobuf, as far as a director must know them that adds to any message.

use axum::body::Body;
use bytes::{Buf, Bytes, BytesMut};
use castle_talos_proto::common::{Metadata, Status as Told};
use http::{HeaderMap, Response};
use http_body_util::BodyExt;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use tonic::{Code, Status};

/// The field of the metadata in every reply, and of the replies in every response.
const FIRST: u32 = 1;

/// What a stream of frames brings next.
pub(super) enum Next {
    /// A message.
    Message(Bytes),
    /// The end, and how it was.
    End(Status),
}

/// The messages of a response, one after the other.
pub(super) struct Frames {
    body: Body,
    rest: BytesMut,
    head: HeaderMap,
}

impl Frames {
    pub(super) fn of(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        Self { body, rest: BytesMut::new(), head: head.headers }
    }

    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(message) = self.whole() {
                return Next::Message(message);
            }
            match self.body.frame().await {
                None => {
                    let end = Status::from_header_map(&self.head);
                    return Next::End(end.unwrap_or_else(|| Status::new(Code::Ok, "")));
                }
                Some(Err(error)) => return Next::End(Status::unavailable(error.to_string())),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest.extend_from_slice(&data),
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            self.head = trailers;
                        }
                    }
                },
            }
        }
    }

    /// A frame: a flag, four bytes of length, the message.
    fn whole(&mut self) -> Option<Bytes> {
        let mut head = self.rest.get(..5)?;
        head.advance(1);
        let length = usize::try_from(head.get_u32()).ok()?;
        if self.rest.len() < 5 + length {
            return None;
        }
        self.rest.advance(5);
        Some(self.rest.split_to(length).freeze())
    }
}

/// A message in its frame.
pub(super) fn framed(message: &[u8]) -> Bytes {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend(message);
    frame.into()
}

/// The field that says whom a reply is from.
pub(super) fn signed(target: &str) -> Vec<u8> {
    field(&Metadata { hostname: target.to_owned(), ..Metadata::default() }.encode_to_vec())
}

/// A reply that says nothing but what went wrong, and whom it is from.
pub(super) fn complaint(target: &str, status: &Status) -> Vec<u8> {
    let (code, message) = (status.code(), status.message().to_owned());
    let metadata = Metadata {
        hostname: target.to_owned(),
        error: format!("rpc error: code = {code:?} desc = {message}"),
        status: Some(Told { code: i32::from(code), message }),
    };
    field(&metadata.encode_to_vec())
}

/// Some bytes as the first field of a message.
pub(super) fn field(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(FIRST, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

/// Adds a field to each reply of a response; what is not a reply stays as it is.
pub(super) fn add(response: &[u8], extra: &[u8]) -> Vec<u8> {
    let mut rest = response;
    let mut added = Vec::new();
    while rest.has_remaining() {
        let whole = rest;
        let Ok((FIRST, WireType::LengthDelimited)) = decode_key(&mut rest) else {
            added.extend(whole);
            break;
        };
        let length = decode_varint(&mut rest).ok().and_then(|length| usize::try_from(length).ok());
        let Some(reply) = length.and_then(|length| rest.get(..length)) else { break };
        added.extend(field(&[reply, extra].concat()));
        rest.advance(reply.len());
    }
    added
}
