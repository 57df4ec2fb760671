//! What is emulated, told by the lists that the servers themselves go by: the page about fidelity is made from it.

use crate::{kubernetes, talos};

/// A method of Talos' API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Its path, `/service/Method`.
    pub path: &'static str,
    /// Whether it is emulated in full.
    pub emulated: bool,
    /// In how many modes of a real machine its answer to an empty request was recorded.
    pub recorded: usize,
}

/// A kind of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Group and version, such as `apps/v1`.
    pub version: String,
    /// Its name.
    pub name: String,
    /// What of it is read or written apart.
    pub parts: Vec<&'static str>,
}

/// Every method of Talos 1.13 that is known here.
#[must_use]
pub fn talos_methods() -> Vec<Method> {
    talos::service::known_methods()
}

/// Every type of Talos' resources that is emulated, with its namespace.
#[must_use]
pub fn talos_resources() -> Vec<(&'static str, &'static str)> {
    talos::known_resources()
}

/// Every kind of Kubernetes that is built in. Others come with their definitions.
#[must_use]
pub fn kubernetes_kinds() -> Vec<Kind> {
    kubernetes::known_kinds()
}
