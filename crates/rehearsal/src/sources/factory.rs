//! The image factory: schematics are registered by their content, and named by its hash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::text_reply;
use crate::turn::{HttpBody, HttpCall, HttpReply};

/// What an image is made from; unknown fields are refused, as the factory does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schematic {
    #[serde(default)]
    customization: Customization,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Customization {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extra_kernel_args: Vec<String>,
    #[serde(default)]
    system_extensions: SystemExtensions,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SystemExtensions {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    official_extensions: Vec<String>,
}

impl Schematic {
    /// A schematic that puts extensions into the image and changes nothing else.
    #[must_use]
    pub fn with(official_extensions: Vec<String>) -> Self {
        let system_extensions = SystemExtensions { official_extensions };
        Self { customization: Customization { extra_kernel_args: Vec::new(), system_extensions } }
    }

    /// The extensions it puts into the image.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.customization.system_extensions.official_extensions
    }

    /// The factory's own way to write it, which its id is the hash of.
    #[must_use]
    pub fn canonical(&self) -> String {
        let arguments = &self.customization.extra_kernel_args;
        if arguments.is_empty() && self.extensions().is_empty() {
            return "customization: {}\n".to_owned();
        }
        let mut text = "customization:\n".to_owned();
        if !arguments.is_empty() {
            text += "    extraKernelArgs:\n";
            text.extend(arguments.iter().map(|argument| format!("        - {argument}\n")));
        }
        if !self.extensions().is_empty() {
            text += "    systemExtensions:\n        officialExtensions:\n";
            text.extend(self.extensions().iter().map(|name| format!("            - {name}\n")));
        }
        text
    }

    /// The id: SHA-256 of the canonical text.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(Sha256::digest(self.canonical()))
    }
}

/// Whether a request is one to a factory, whatever its host is called: no repository has such a path.
pub(super) fn serves(call: &HttpCall) -> bool {
    let path = call.path.as_str();
    let of_factory = matches!(path, "/schematics" | "/versions")
        || path.starts_with("/schematics/")
        || path.starts_with("/image/");
    of_factory && !super::MANIFEST_HOSTS.contains(&call.host.as_str())
}

/// Answers a request to the factory.
pub(super) fn call(schematics: &mut BTreeMap<String, Schematic>, call: &HttpCall) -> HttpReply {
    match (call.method.as_str(), call.path.as_str()) {
        ("POST", "/schematics") => register(schematics, &call.body),
        ("GET", "/versions") => HttpReply::json(200, &json!(VERSIONS)),
        ("GET" | "HEAD", path) => match path.strip_prefix("/schematics/") {
            Some(id) if schematics.contains_key(id) => {
                HttpReply::json(200, &json!({"schematic": schematics[id].canonical()}))
            }
            Some(id) => plain(404, &format!("schematic not found: {id}")),
            None => image(schematics, path),
        },
        _ => plain(404, "404 page not found"),
    }
}

fn register(schematics: &mut BTreeMap<String, Schematic>, body: &[u8]) -> HttpReply {
    let read = std::str::from_utf8(body).map_err(|error| error.to_string()).and_then(|text| {
        yaml_serde::from_str::<Schematic>(text).map_err(|error| error.to_string())
    });
    match read {
        Err(why) => plain(400, &format!("yaml: unmarshal errors: {why}")),
        Ok(schematic) => {
            let id = schematic.id();
            let reply =
                HttpReply::json(201, &json!({"id": id, "schematic": schematic.canonical()}));
            // Registering the same content again changes nothing.
            match schematics.insert(id, schematic) {
                None => reply.changed(),
                Some(_) => reply,
            }
        }
    }
}

/// How long an image is. Nobody boots these bytes, so they are few; but enough for Proxmox to tell how many it has fetched.
pub(crate) const IMAGE_LENGTH: u64 = 8 << 20;

/// The bytes of an image: they follow from its path, so that whoever fetches it gets the same.
pub(crate) fn image_bytes(path: &str) -> Vec<u8> {
    let length = usize::try_from(IMAGE_LENGTH).expect("an image fits into memory");
    let line = format!("{path}\n");
    let mut bytes = line.repeat(length.div_ceil(line.len())).into_bytes();
    bytes.truncate(length);
    bytes
}

/// The versions of Talos that images are made of: the last of each line.
const VERSIONS: [&str; 3] = ["v1.12.11", "v1.13.9", "v1.14.0"];

/// The ends of the names of all images that are made for machines of Proxmox and bare metal.
const FORMS: [&str; 4] = ["-amd64.qcow2", "-amd64.raw.xz", "-amd64.raw.zst", "-amd64.iso"];

/// An image is there as soon as its schematic is.
fn image(schematics: &BTreeMap<String, Schematic>, path: &str) -> HttpReply {
    let mut parts = path.strip_prefix("/image/").unwrap_or_default().split('/');
    let id = parts.next().filter(|id| !id.is_empty());
    let (version, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Some(refusal) =
        id.filter(|id| schematics.contains_key(*id)).and_then(|_| wrong(version, name))
    {
        return refusal;
    }
    match id {
        Some(id) if schematics.contains_key(id) => HttpReply {
            headers: vec![("content-type".to_owned(), "application/octet-stream".to_owned())],
            body: HttpBody::Whole(image_bytes(path).into()),
            ..HttpReply::empty(200)
        },
        Some(id) => plain(404, &format!("schematic not found: {id}")),
        None => plain(404, "404 page not found"),
    }
}

/// Why an image can not be made, if so.
fn wrong(version: &str, name: &str) -> Option<HttpReply> {
    if [".sha256", ".sha512"].iter().any(|end| name.ends_with(end)) {
        return Some(plain(402, "checksums are part of the enterprise edition"));
    }
    if !is_version(version) {
        return Some(plain(400, &format!("invalid version: {version:?}")));
    }
    let known = FORMS.iter().any(|form| name.ends_with(form));
    (!known).then(|| plain(400, &format!("error parsing profile from path: {name:?}")))
}

/// Whether this names a version, such as `v1.13.9`.
fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or_default();
    let mut numbers = text.split('-').next().unwrap_or_default().split('.');
    numbers.clone().count() == 3 && numbers.all(|number| number.parse::<u16>().is_ok())
}

fn plain(status: u16, text: &str) -> HttpReply {
    text_reply(status, "text/plain; charset=utf-8", format!("{text}\n"))
}
