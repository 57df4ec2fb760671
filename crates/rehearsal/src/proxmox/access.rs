//! Who calls: API tokens, their privileges, and the refusals of those who are not known.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::form::segment;
use super::reply::{Answer, Refusal};
use super::{Proxmox, Request};
use crate::turn::HttpCall;

/// The privileges of an administrator, as far as anything here asks for them.
const ALL: &[&str] = &[
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Pool.Allocate",
    "Pool.Audit",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.GuestAgent.Audit",
    "VM.PowerMgmt",
];

/// An API token. Only the hash of its secret is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    secret: String,
    privileges: BTreeSet<String>,
}

impl Token {
    /// A token that may do everything.
    pub(super) fn full(secret: &str) -> Self {
        let privileges = ALL.iter().map(|name| (*name).to_owned()).collect();
        Self { secret: hashed(secret), privileges }
    }
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// User and token, such as `root@pam!castle`.
    pub(super) user: String,
    privileges: BTreeSet<String>,
}

impl Caller {
    /// Whether it has a privilege.
    pub(super) fn may(&self, privilege: &str) -> bool {
        self.privileges.contains(privilege)
    }

    /// Demands a privilege at a path.
    pub(super) fn need(&self, path: &str, privilege: &str) -> Result<(), Refusal> {
        if self.may(privilege) {
            Ok(())
        } else {
            Err(Refusal::denied(&format!("{path}, {privilege}")))
        }
    }
}

impl Proxmox {
    /// Takes privileges away from a token until only these are left.
    pub fn limit_token(&mut self, id: &str, privileges: &[&str]) {
        if let Some(token) = self.tokens.get_mut(id) {
            token.privileges.retain(|name| privileges.contains(&name.as_str()));
        }
    }

    /// Takes a privilege away from everybody.
    pub(super) fn take_privilege(&mut self, _path: &str, privilege: &str) {
        for token in self.tokens.values_mut() {
            token.privileges.remove(privilege);
        }
    }

    /// Finds out who calls. The two refusals are all that a real server tells.
    pub(super) fn caller(&self, call: &HttpCall) -> Result<Caller, Refusal> {
        let refused = |reason: &str| Refusal::Bare { status: 401, reason: reason.to_owned() };
        let text = call
            .header("authorization")
            .and_then(|value| value.strip_prefix("PVEAPIToken"))
            .and_then(|rest| rest.strip_prefix(['=', ' ']))
            .ok_or_else(|| refused("No ticket"))?;
        let text = segment(text.split(';').next().unwrap_or_default());
        let failed = || refused("Authentication failed!");
        let (id, secret) = text.split_once('=').ok_or_else(failed)?;
        let token = self.tokens.get(id).ok_or_else(failed)?;
        if token.secret != hashed(secret) {
            return Err(failed());
        }
        Ok(Caller { user: id.to_owned(), privileges: token.privileges.clone() })
    }

    /// `GET /access/permissions`.
    pub(super) fn permissions(request: &Request) -> Answer {
        let privileges: Map<String, Value> =
            request.caller.privileges.iter().map(|name| (name.clone(), json!(1))).collect();
        let paths = match request.parameters.get("path") {
            Some(path) => vec![path.as_str()],
            None => vec!["/", "/access", "/nodes", "/pool", "/sdn", "/storage", "/vms"],
        };
        let shown: Map<String, Value> = paths
            .into_iter()
            .map(|path| (path.to_owned(), Value::Object(privileges.clone())))
            .collect();
        Answer::read(Value::Object(shown))
    }
}

fn hashed(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}
