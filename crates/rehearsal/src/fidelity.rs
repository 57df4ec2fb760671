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

/// Where what is hardly a request, or who hardly asks, is met otherwise than by the real servers; and why.
pub const HTTP_DIFFERENCES: &[&str] = &[
    "downloads and Git are answered as Go's `net/http` does it, in which the image factory is written; what stands in front of GitHub nobody publishes",
    "Infisical's backend speaks neither TLS nor HTTP/2, so a proxy stands before a real one, and may answer for it: here Fastify on Node answers, as recorded; \
     after a URL that can not be decoded, and an expectation that it does not know, it keeps the connection, which ends here",
    "what is malformed within HTTP/2, its frames and fields, is answered by our library: each real server has one of its own",
    "plain HTTP where TLS is spoken ends the connection; Go's servers say a line first, and pveproxy sends such a caller to https",
    "a caller of Talos that offers nothing but HTTP/1.1 is refused in the handshake; the real one takes the handshake and hangs up then",
    "of a target only 65,000 bytes are heard, of fields two thousand: our library bears no more; Go's servers take a megabyte of them",
    "a head that trickles in has at most thirty seconds (thirty-two at an API server, sixty at Infisical), a body one minute, and an idle connection to \
     Talos, downloads or Git one minute, however long the real one would wait: whoever is slow must not hold what others need",
    "headers that no client relies on are left away: the date, pveproxy's `Server`, an API server's `Audit-Id`",
    "what differs in JSON differs in YAML: columns of tables have no descriptions, one object is not given as PartialObjectMetadata, reviews have no managed fields",
];

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

/// What works in the emulated cluster, or beside it, of itself. No real one stands behind it: what it does is held by tests
/// that say what the real one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controller {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// The test that holds it.
    pub test: &'static str,
    /// What the real one does besides, or otherwise.
    pub different: &'static str,
}

/// Every one of them.
pub const CONTROLLERS: &[Controller] = &[
    Controller {
        name: "kubelet and nodes",
        what: "a machine joins, its Node turns Ready once its network is up, falls silent forty seconds after its power went, and tells what it has of processors and memory",
        test: "nodes_join_and_turn_ready_with_their_network",
        different: "heartbeats and leases carry the time of the last change, and are not renewed in between; there is no condition of pressure, and the kernel's version is invented",
    },
    Controller {
        name: "scheduler",
        what: "pods of workloads get nodes that they tolerate and select, and say why if there is none",
        test: "a_pod_that_no_node_takes_says_why",
        different: "requests of processors and memory, affinity and spreading are not weighed; a pod without a workload, and a Job, stay pending; the pods of a node that is silent are not evicted after five minutes",
    },
    Controller {
        name: "workloads",
        what: "Deployments by their ReplicaSets, DaemonSets and StatefulSets become pods, which start, turn ready and go with their owner",
        test: "pods_of_a_deployment_belong_to_its_replica_set_and_go_with_it",
        different: "pods are objects: no container runs, none fails, no probe is asked; static pods of control planes have no mirror pods; Jobs and CronJobs do nothing; there are EndpointSlices and no Endpoints",
    },
    Controller {
        name: "image pulls",
        what: "each node pulls an image once; a registry can limit them, and then pods wait in ImagePullBackOff",
        test: "a_scant_registry_keeps_pods_waiting_until_it_lets_them",
        different: "a pull takes a drawn time, whatever the image and whoever else pulls; whether a registry has the image is not asked",
    },
    Controller {
        name: "admission webhooks",
        what: "those of a known release are called through their Service, and serve some seconds later than their pod looks Ready",
        test: "a_webhook_serves_later_than_its_pod_looks_ready",
        different: "what they judge is what castle's gates ask of them: the pools of MetalLB and the stores of External Secrets; everything else is let through",
    },
    Controller {
        name: "MetalLB",
        what: "Services get addresses from the pools by its rules, and speakers announce them",
        test: "addresses_are_given_by_the_rules_of_metallb",
        different: "nothing is announced on a network; the real controller and its webhook hold castle (`metallb.rs`), and the shape of its stand-in (`releases.rs`), not what is emulated here; BGP is not",
    },
    Controller {
        name: "Longhorn",
        what: "managers find disks, the deployer makes the drivers, and claims are bound where their copies fit",
        test: "a_claim_is_bound_when_longhorn_has_disks_and_drivers",
        different: "a volume is bound and no more: it is attached to nothing, rebuilds nothing and is never faulted; its real definitions alone are asked (`definitions.rs`)",
    },
    Controller {
        name: "External Secrets",
        what: "a store proves its identity to Infisical, and external secrets become Secrets with the values that are there",
        test: "a_secret_comes_through_when_the_identity_is_right",
        different: "Infisical alone is a provider; templates, generators and pushes are not; its real definitions alone are asked (`definitions.rs`)",
    },
    Controller {
        name: "Flux",
        what: "the source controller fetches the branch, Kustomizations are built, tried and applied in the order of their needs, and charts are installed after a while",
        test: "flux_builds_the_tree_in_the_order_of_its_needs",
        different: "every release succeeds and what a chart holds is not made; of health checks `wait` alone is looked at, which calls every Service healthy; no notifications, no image automation; the real Flux holds castle (`flux.rs`), not what is emulated here",
    },
    Controller {
        name: "image factory",
        what: "a schematic gets the id that the real factory gives it, and an image of it can be downloaded",
        test: "schematics_have_the_ids_that_the_factory_gives",
        different: "an image is a name and a size, and holds nothing",
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

    #[test]
    fn what_works_of_itself_is_held_by_a_test_that_is_there() {
        let tests = [
            include_str!("kubernetes/tests.rs"),
            include_str!("kubernetes/tests/pods.rs"),
            include_str!("kubernetes/tests/stories.rs"),
            include_str!("sources/tests.rs"),
        ];
        for controller in CONTROLLERS {
            let named = format!("\nfn {}()", controller.test);
            assert!(tests.iter().any(|text| text.contains(&named)), "{} is gone", controller.test);
        }
    }
}
