//! Who calls, and what each may: tokens, users, and privileges by path with all their inheritance.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::form::{Parameters, segment};
use super::reply::{Answer, Refusal};
use super::role::ROLE;
use super::{Proxmox, ProxmoxBirth, Request};
use crate::turn::HttpCall;

/// The one user who may everything.
const ROOT: &str = "root@pam";

/// All privileges that anything here asks for.
const ALL: &[&str] = &[
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Pool.Audit",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
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

/// Paths whose privileges are listed even if no ACL names them.
const TOP: [&str; 8] =
    ["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"];

/// Tokens and ACLs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access {
    tokens: BTreeMap<String, Token>,
    /// Those that were removed, for whoever wants them back.
    removed: BTreeMap<String, Token>,
    /// Path, then user or token, then privilege: whether it holds below the path too.
    acl: BTreeMap<String, BTreeMap<String, BTreeMap<String, bool>>>,
    /// Pools, each with the guests in it.
    pools: BTreeMap<String, BTreeSet<u32>>,
}

/// An API token. Only the hash of its secret is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    secret: String,
    /// Whether it has only what both its user and the token itself were given.
    separated: bool,
}

/// The privileges at a path, each with whether it holds below the path too.
type Rights = BTreeMap<String, bool>;

impl Access {
    /// Adds a castle's token. One of root is as mighty as its user, any other gets the least that a castle needs.
    pub(super) fn ensure(&mut self, birth: &ProxmoxBirth) {
        if self.tokens.contains_key(&birth.token_id) {
            return;
        }
        self.add_token(&birth.token_id, &birth.token_secret);
        let user = user_of(&birth.token_id);
        for (place, privileges) in ROLE.iter().filter(|_| user != ROOT) {
            for who in [user, &birth.token_id] {
                self.grant(&place.path(birth), who, privileges);
            }
        }
    }

    /// Adds a token: one of root is as mighty as its user, others have nothing of their own yet.
    pub(super) fn add_token(&mut self, id: &str, secret: &str) {
        let token = Token { secret: hashed(secret), separated: user_of(id) != ROOT };
        self.tokens.insert(id.to_owned(), token);
    }

    /// Gives privileges at a path and below it.
    pub(super) fn grant(&mut self, path: &str, who: &str, privileges: &[&str]) {
        let entry = self.acl.entry(path.to_owned()).or_default().entry(who.to_owned()).or_default();
        entry.extend(privileges.iter().map(|name| ((*name).to_owned(), true)));
    }

    /// Takes a privilege at a path from everybody, or from one.
    pub(super) fn take(&mut self, path: &str, who: Option<&str>, privilege: &str) {
        for (name, rights) in self.acl.get_mut(path).into_iter().flatten() {
            if who.is_none_or(|who| who == name) {
                rights.remove(privilege);
            }
        }
    }

    /// Lets a privilege hold at a path alone, whoever has it.
    pub(super) fn flatten(&mut self, path: &str, privilege: &str) {
        for rights in self.acl.get_mut(path).into_iter().flat_map(BTreeMap::values_mut) {
            rights.entry(privilege.to_owned()).and_modify(|below| *below = false);
        }
    }

    /// Lets everything that was given at a path be given at others instead.
    pub(super) fn shift(&mut self, from: &str, to: &[String]) {
        let given = self.acl.remove(from).unwrap_or_default();
        for path in to {
            for (who, rights) in &given {
                let place = self.acl.entry(path.clone()).or_default();
                place.entry(who.clone()).or_default().extend(rights.clone());
            }
        }
    }

    /// Puts guests into a pool.
    pub(super) fn pool(&mut self, name: &str, vmids: &[u32]) {
        self.pools.entry(name.to_owned()).or_default().extend(vmids);
    }

    /// Removes every token.
    pub(super) fn revoke(&mut self) {
        self.removed.append(&mut self.tokens);
    }

    /// Whether tokens were removed.
    pub(super) fn is_revoked(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Gives every token back that was removed.
    pub(super) fn restore(&mut self) {
        self.tokens.append(&mut self.removed);
    }

    /// What is given to one user or token: by the path itself, and by the pool that a guest is in.
    fn given(&self, who: &str, path: &str) -> Rights {
        let mut found = self.by_path(who, path);
        let guest = path.strip_prefix("/vms/").and_then(|vmid| vmid.parse::<u32>().ok());
        for (pool, _) in
            self.pools.iter().filter(|(_, held)| guest.is_some_and(|id| held.contains(&id)))
        {
            let more = self.by_path(who, &format!("/pool/{pool}"));
            found.extend(more.into_iter().filter(|(_, below)| *below));
        }
        found
    }

    /// What an ACL gives to one user or token: what is set deeper replaces what is inherited.
    fn by_path(&self, who: &str, path: &str) -> Rights {
        let mut found = Rights::new();
        let pieces: Vec<&str> = path.split('/').filter(|piece| !piece.is_empty()).collect();
        for depth in 0..=pieces.len() {
            let here = format!("/{}", pieces[..depth].join("/"));
            let Some(rights) = self.acl.get(&here).and_then(|entries| entries.get(who)) else {
                continue;
            };
            let valid = rights.iter().filter(|(_, below)| **below || depth == pieces.len());
            let valid: Rights = valid.map(|(name, below)| (name.clone(), *below)).collect();
            if !valid.is_empty() {
                found = valid;
            }
        }
        found
    }

    /// What a token may at a path: what both it and its user may, unless it is as mighty as its user.
    fn rights(&self, id: &str, path: &str) -> Rights {
        let user = user_of(id);
        let of_user = if user == ROOT {
            ALL.iter().map(|name| ((*name).to_owned(), true)).collect()
        } else {
            self.given(user, path)
        };
        if self.tokens.get(id).is_some_and(|token| !token.separated) {
            return of_user;
        }
        let mut rights = self.given(id, path);
        rights.retain(|name, _| of_user.contains_key(name));
        rights
    }
}

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// User and token, such as `root@pam!castle`.
    pub(super) user: String,
    access: Access,
}

impl Caller {
    /// Whether it has a privilege at a path.
    pub(super) fn may(&self, path: &str, privilege: &str) -> bool {
        self.access.rights(&self.user, path).contains_key(privilege)
    }

    /// Demands a privilege at a path.
    pub(super) fn need(&self, path: &str, privilege: &str) -> Result<(), Refusal> {
        if self.may(path, privilege) {
            Ok(())
        } else {
            Err(Refusal::denied(&format!("{path}, {privilege}")))
        }
    }

    /// Demands one of several privileges at a path.
    pub(super) fn need_any(&self, path: &str, privileges: &[&str]) -> Result<(), Refusal> {
        if privileges.iter().any(|privilege| self.may(path, privilege)) {
            return Ok(());
        }
        Err(Refusal::denied(&format!("{path}, {}", privileges.join("|"))))
    }

    /// The pools that are shown to it.
    pub(super) fn pools(&self) -> Vec<Value> {
        let seen = |name: &&String| self.may(&format!("/pool/{name}"), "Pool.Audit");
        self.access.pools.keys().filter(seen).map(|name| json!({ "poolid": name })).collect()
    }

    /// Whether a storage is shown to it.
    pub(super) fn sees_storage(&self, name: &str) -> bool {
        let path = format!("/storage/{name}");
        self.may(&path, "Datastore.Audit") || self.may(&path, "Datastore.AllocateSpace")
    }

    /// Demands what the schema says about a call: `["perm", path, [privileges]]`, or `and` and `or` of such.
    pub(super) fn check(&self, check: &Value, path: &Parameters) -> Result<(), Refusal> {
        let Some([word, rest @ ..]) = check.as_array().map(Vec::as_slice) else { return Ok(()) };
        match (word.as_str(), rest) {
            (Some("and"), parts) => parts.iter().try_for_each(|part| self.check(part, path)),
            (Some("or"), parts) => {
                if parts.iter().any(|part| self.check(part, path).is_ok()) {
                    return Ok(());
                }
                Err(Refusal::denied(""))
            }
            (_, [at, privileges, how @ ..]) => {
                let at =
                    path.iter().fold(at.as_str().unwrap_or_default().to_owned(), |at, (n, v)| {
                        at.replace(&format!("{{{n}}}"), v)
                    });
                let names: Vec<&str> =
                    privileges.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                if how.first().is_some_and(|word| word == "any") {
                    return self.need_any(&at, &names);
                }
                names.iter().try_for_each(|name| self.need(&at, name))
            }
            // A check that nobody here understands lets nobody pass.
            _ => Err(Refusal::denied("")),
        }
    }
}

impl Proxmox {
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
        let token = self.access.tokens.get(id).ok_or_else(failed)?;
        if token.secret != hashed(secret) {
            return Err(failed());
        }
        Ok(Caller { user: id.to_owned(), access: self.access.clone() })
    }

    /// `GET /access/permissions`: the caller's own, at one path or wherever there are any.
    pub(super) fn permissions(request: &Request) -> Result<Answer, Refusal> {
        let Caller { user, access } = &request.caller;
        let shown = |path: &str| -> Map<String, Value> {
            let rights = access.rights(user, path).into_iter();
            rights.map(|(name, below)| (name, json!(u8::from(below)))).collect()
        };
        if request.parameters.get("userid").is_some_and(|other| other != user) {
            request.caller.need("/access", "Sys.Audit")?;
        }
        if let Some(path) = request.parameters.get("path") {
            return Ok(Answer::read(json!({path: shown(path)})));
        }
        let paths: BTreeSet<&str> =
            TOP.into_iter().chain(access.acl.keys().map(String::as_str)).collect();
        let all = paths.into_iter().map(|path| (path.to_owned(), shown(path)));
        let some: Map<String, Value> = all
            .filter(|(_, rights)| !rights.is_empty())
            .map(|(p, r)| (p, Value::Object(r)))
            .collect();
        Ok(Answer::read(Value::Object(some)))
    }
}

fn user_of(token: &str) -> &str {
    token.split('!').next().unwrap_or_default()
}

fn hashed(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}
