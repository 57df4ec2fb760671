//! What a machine says of its etcd, and what it is told to do with it.

use std::time::Duration;

use castle_talos_proto::machine::{
    BootstrapRequest, EtcdMemberListRequest, EtcdRemoveMemberByIdRequest, ListRequest,
};

use crate::client::{CALL_DEADLINE, Talos};
use crate::error::TalosError;

/// Where etcd keeps its data on a machine.
const DATA: &str = "/var/lib/etcd";

/// A member of etcd.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Its id.
    pub id: u64,
    /// Its machine's name; empty while it is new.
    pub hostname: String,
    /// Where its peers reach it.
    pub peer_urls: Vec<String>,
    /// Whether it only listens yet.
    pub learner: bool,
}

/// What one member of etcd says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub id: u64,
    /// The id of the leader it follows; 0 if there is none.
    pub leader: u64,
    /// Whether it only listens yet.
    pub learner: bool,
    /// What it complains of.
    pub errors: Vec<String>,
}

impl Talos {
    /// Starts a new etcd on this machine. Nothing in Talos prevents a second one elsewhere: the caller must.
    ///
    /// # Errors
    /// If the call fails. After a broken connection its outcome is unknown.
    pub async fn bootstrap(&self) -> Result<(), TalosError> {
        let mut client = self.machine();
        let call = client.bootstrap(BootstrapRequest::default());
        self.call("Bootstrap", CALL_DEADLINE, call).await?;
        Ok(())
    }

    /// The members of etcd as this machine's own member knows them, ordered by id. Before bootstrap the machine does
    /// not answer at all, so the caller says how long to wait.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn etcd_members(&self, deadline: Duration) -> Result<Vec<Member>, TalosError> {
        let mut client = self.machine();
        let call = client.etcd_member_list(EtcdMemberListRequest { query_local: true });
        let reply = self.call("EtcdMemberList", deadline, call).await?;
        let members =
            reply.messages.into_iter().next().ok_or_else(|| self.empty("EtcdMemberList"))?;
        let mut members: Vec<Member> = members
            .members
            .into_iter()
            .map(|member| Member {
                id: member.id,
                hostname: member.hostname,
                peer_urls: member.peer_urls,
                learner: member.is_learner,
            })
            .collect();
        members.sort();
        Ok(members)
    }

    /// What this machine's member of etcd says of itself. It hangs before bootstrap as [`Talos::etcd_members`] does.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn etcd_status(&self, deadline: Duration) -> Result<MemberStatus, TalosError> {
        let mut client = self.machine();
        let reply = self.call("EtcdStatus", deadline, client.etcd_status(())).await?;
        let status = reply.messages.into_iter().next().and_then(|message| message.member_status);
        status
            .map(|status| MemberStatus {
                id: status.member_id,
                leader: status.leader,
                learner: status.is_learner,
                errors: status.errors,
            })
            .ok_or_else(|| self.empty("EtcdStatus"))
    }

    /// Whether data of an etcd lie on this machine's disk, whether it runs or not.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn has_etcd_data(&self) -> Result<bool, TalosError> {
        let request = ListRequest { root: DATA.to_owned(), ..ListRequest::default() };
        let mut client = self.machine();
        let answer = self.call("List", CALL_DEADLINE, client.list(request)).await;
        let mut files = match answer {
            Err(error) if is_missing(&error) => return Ok(false),
            answer => answer?,
        };
        loop {
            let next = async { files.message().await.map(tonic::Response::new) };
            match self.call("List", CALL_DEADLINE, next).await {
                Err(error) if is_missing(&error) => return Ok(false),
                Err(error) => return Err(error),
                Ok(None) => return Ok(false),
                // The folder itself comes first, as a dot.
                Ok(Some(file)) if matches!(file.relative_name.as_str(), "" | ".") => {}
                Ok(Some(_)) => return Ok(true),
            }
        }
    }

    /// Takes a member out of etcd, through this machine's own member.
    ///
    /// # Errors
    /// If the call fails; [`castle_model::Class::Gone`] if there is no such member.
    pub async fn remove_member(&self, id: u64) -> Result<(), TalosError> {
        let mut client = self.machine();
        let call = client.etcd_remove_member_by_id(EtcdRemoveMemberByIdRequest { member_id: id });
        self.call("EtcdRemoveMemberByID", CALL_DEADLINE, call).await?;
        Ok(())
    }
}

/// Whether the machine says that there is no such folder. A worker has none.
fn is_missing(error: &TalosError) -> bool {
    matches!(error, TalosError::Refused { text, ended: None, .. } if text.contains("no such file or directory"))
}
