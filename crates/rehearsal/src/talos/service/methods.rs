//! The methods of Talos: who may call each, and what a real machine was heard to answer.

use std::sync::LazyLock;

use tonic::{Code, Status};

use crate::fidelity;

/// The record: see the head of the file.
const RECORD: &str = include_str!("../methods.txt");

/// The methods that are emulated in full; the others answer as recorded, or say that they are not emulated.
pub(super) const EMULATED: &[&str] = &[
    "/cluster.ClusterService/HealthCheck",
    "/cosi.resource.State/Get",
    "/cosi.resource.State/List",
    "/cosi.resource.State/Watch",
    "/machine.MachineService/ApplyConfiguration",
    "/machine.MachineService/Bootstrap",
    "/machine.MachineService/EtcdForfeitLeadership",
    "/machine.MachineService/EtcdLeaveCluster",
    "/machine.MachineService/EtcdMemberList",
    "/machine.MachineService/EtcdRemoveMemberByID",
    "/machine.MachineService/EtcdStatus",
    "/machine.MachineService/Events",
    "/machine.MachineService/Hostname",
    "/machine.MachineService/Kubeconfig",
    "/machine.MachineService/List",
    "/machine.MachineService/Memory",
    "/machine.MachineService/Read",
    "/machine.MachineService/Reboot",
    "/machine.MachineService/Reset",
    "/machine.MachineService/ServiceList",
    "/machine.MachineService/ServiceRestart",
    "/machine.MachineService/Shutdown",
    "/machine.MachineService/SystemStat",
    "/machine.MachineService/Version",
    "/storage.StorageService/Disks",
];

/// Whether a machine has a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It has none.
    Maintenance,
    /// It has one.
    Configured,
}

/// A method and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    pub(super) path: &'static str,
    roles: &'static str,
    maintenance: Option<&'static str>,
    configured: Option<&'static str>,
}

impl Method {
    /// All methods of the record.
    pub(super) fn all() -> &'static [Self] {
        static ALL: LazyLock<Vec<Method>> = LazyLock::new(|| Method::read().collect());
        &ALL
    }

    fn read() -> impl Iterator<Item = Self> {
        let mut lines = RECORD.lines().filter(|line| !line.starts_with('#')).peekable();
        std::iter::from_fn(move || {
            let (path, roles) = lines.next()?.split_once(' ')?;
            let mut method = Self { path, roles, maintenance: None, configured: None };
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                match line.trim_start().split_once(' ') {
                    Some(("maintenance", answer)) => method.maintenance = Some(answer),
                    Some(("configured", answer)) => method.configured = Some(answer),
                    _ => {}
                }
            }
            Some(method)
        })
    }

    pub(super) fn find(path: &str) -> Option<Self> {
        Self::all().iter().find(|method| method.path == path).copied()
    }

    pub(super) fn is_service(name: &str) -> bool {
        Self::all().iter().any(|method| method.path.split('/').nth(1) == Some(name))
    }

    /// Whether a caller with certain roles may call it.
    pub(super) fn allows(&self, has: impl Fn(&str) -> bool) -> bool {
        let least = self.roles.split(',').any(|role| match role {
            "reader" => has("reader") || has("operator"),
            other => has(other),
        });
        least || has("admin")
    }

    pub(super) fn is_emulated(&self) -> bool {
        EMULATED.contains(&self.path)
    }

    /// Code and words that were recorded.
    pub(super) fn recorded(&self, mode: Mode) -> Option<(Code, &'static str)> {
        let answer = match mode {
            Mode::Maintenance => self.maintenance,
            Mode::Configured => self.configured,
        }?;
        let (name, words) = answer.split_once(' ').unwrap_or((answer, ""));
        let codes = (0..17).map(Code::from_i32);
        let code =
            codes.into_iter().find(|code| format!("{code:?}") == name.replace("OK", "Ok"))?;
        Some((code, words))
    }

    /// The method as the page about fidelity tells it.
    pub(super) fn known(&self) -> fidelity::Method {
        let recorded = [self.maintenance, self.configured].iter().flatten().count();
        fidelity::Method { path: self.path, emulated: self.is_emulated(), recorded }
    }

    /// What a method that is not emulated says.
    pub(super) fn recorded_refusal(&self, mode: Mode) -> Status {
        match self.recorded(mode) {
            Some((code, words)) if code != Code::Ok => Status::new(code, words),
            _ => Status::unimplemented(format!("{} is not emulated", self.path)),
        }
    }
}
