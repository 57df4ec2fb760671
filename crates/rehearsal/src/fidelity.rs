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

/// What was recorded of a real machine as it went on, and is not replayed: its moments are those of the machine that it ran
/// on. What came after what is held by a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    /// What was recorded.
    pub what: &'static str,
    /// The test that holds what is seen in the end, and in which order; empty if there is none.
    pub test: &'static str,
}

/// Every such recording of Talos.
pub const TALOS_COURSES: &[Course] = &[
    Course {
        what: "the change of listeners while a config is applied, sampled over TCP, without and with certificates",
        test: "the_listener_changes_after_the_answer_has_left",
    },
    Course {
        what: "services and resources after a config is applied, until etcd waits for its bootstrap",
        test: "",
    },
    Course {
        what: "kubelet and static pods, from the bootstrap to an API server that is ready",
        test: "a_small_castle_rises",
    },
    Course {
        what: "three control planes: each joins as a learner, one at a time, until all vote",
        test: "members_join_one_at_a_time_whatever_the_seed",
    },
    Course {
        what: "the shared address, after the machine that held it was killed",
        test: "the_shared_address_moves_when_its_lease_runs_out",
    },
    Course {
        what: "the restart of a configured machine",
        test: "a_reboot_shows_itself_and_ends_at_the_secure_api",
    },
    Course {
        what: "one of three machines killed: the others go on, and it stays a member",
        test: "the_shared_address_moves_when_its_lease_runs_out",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_replayed_is_held_by_a_test_that_is_there() {
        let tests = [
            include_str!("talos/tests.rs"),
            include_str!("talos/tests/ending.rs"),
            include_str!("talos/tests/trouble.rs"),
        ];
        for course in TALOS_COURSES.iter().filter(|course| !course.test.is_empty()) {
            let named = format!("\nfn {}()", course.test);
            assert!(tests.iter().any(|text| text.contains(&named)), "{} is gone", course.test);
        }
    }
}
