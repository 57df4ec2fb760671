//! What kubectl is asked.

use super::Told::{Ends, Exactly, Says, Watches};
use super::{Asked, asked, asked_as, differs};

/// By somebody who may everything.
pub const PEOPLE: &[Asked] = &[
    asked(
        "wait --for=condition=Ready node --all --timeout=100s",
        Says("node/worker-01 condition met"),
    ),
    asked("describe node worker-01", Says("  HolderIdentity:  worker-01\n")),
    asked("version", Says("Server Version: v1.36.3")),
    asked("cluster-info", Says("Kubernetes control plane is running at https://127.0.88.10:6443")),
    asked(
        "api-resources --api-group=apps --output=name",
        Exactly("daemonsets.apps\ndeployments.apps\nreplicasets.apps\nstatefulsets.apps\n"),
    ),
    asked("api-versions", Says("\napps/v1\n")),
    asked("auth can-i delete nodes", Exactly("yes\n")),
    asked(
        "auth whoami --output=jsonpath={.status.userInfo.groups}",
        Exactly("[\"system:masters\",\"system:authenticated\"]"),
    ),
    asked("get --raw /readyz", Exactly("ok")),
    asked(
        "get deploy --watch --output-watch-events",
        Watches(&["ADDED web", "MODIFIED web", "DELETED web"]),
    ),
    asked("diff --server-side -f {web}", Ends(1, "+kind: Deployment")),
    asked("get deploy/web", Ends(1, "(NotFound): deployments.apps \"web\" not found")),
    asked("apply --server-side -f {web}", Exactly("deployment.apps/web serverside-applied\n")),
    asked("diff --server-side -f {web}", Exactly("")),
    asked(
        "wait --for=condition=Available deploy/web --timeout=100s",
        Exactly("deployment.apps/web condition met\n"),
    ),
    asked("rollout status deploy/web --timeout=100s", Says("successfully rolled out")),
    asked(
        "get pods -l app=web --output=jsonpath={.items[*].status.phase}",
        Exactly("Running Running"),
    ),
    asked("get all --output=name", Says("deployment.apps/web\n")),
    asked("describe deploy/web", Says("2 desired | 2 updated | 2 total | 2 available")),
    asked("label deploy/web mine=yes", Exactly("deployment.apps/web labeled\n")),
    asked(
        "patch deploy/web -p {\"spec\":{\"replicas\":1}}",
        Exactly("deployment.apps/web patched\n"),
    ),
    asked(
        "apply --server-side -f {web}",
        Ends(1, "conflict with \"kubectl-patch\" using apps/v1: .spec.replicas"),
    ),
    asked(
        "apply --server-side --force-conflicts -f {web}",
        Exactly("deployment.apps/web serverside-applied\n"),
    ),
    asked("scale deploy/web --replicas=3", Exactly("deployment.apps/web scaled\n")),
    asked("get deploy/web --output=jsonpath={.spec.replicas}", Exactly("3")),
    asked("rollout restart deploy/web", Exactly("deployment.apps/web restarted\n")),
    asked("rollout history deploy/web", Says("REVISION")),
    asked("cordon worker-01", Exactly("node/worker-01 cordoned\n")),
    asked("uncordon worker-01", Exactly("node/worker-01 uncordoned\n")),
    differs(
        "logs deploy/web",
        Ends(1, "(NotImplemented): no containers run in a rehearsal"),
        "pods are objects that become ready; no container runs, so there is nothing to read or to enter",
    ),
    differs(
        "exec deploy/web -- ls",
        Ends(1, "unable to upgrade connection: no containers run in a rehearsal"),
        "the same",
    ),
    differs(
        "port-forward deploy/web 18080:80",
        Ends(1, "unable to upgrade connection: no containers run in a rehearsal"),
        "the same",
    ),
    differs(
        "create namespace blue",
        Ends(1, "(UnsupportedMediaType): the body of the request was in an unknown format"),
        "kubectl writes what it makes up itself in protobuf, and only JSON, YAML and patches are read here: `create -f` works; `create deployment` and `drain`, which evicts in protobuf, end the same",
    ),
    differs(
        "explain deployment.spec",
        Ends(1, "error"),
        "the descriptions of kinds in /openapi/v3 hold what can be patched, not their fields",
    ),
    asked("top nodes", Ends(1, "Metrics API not available")),
    asked("get nonsense", Ends(1, "the server doesn't have a resource type \"nonsense\"")),
    asked("create -f {namespace}", Exactly("namespace/blue created\n")),
    asked("create -f {namespace}", Ends(1, "(AlreadyExists): error when creating")),
    asked("delete namespace blue --timeout=100s", Says("namespace \"blue\" deleted")),
    asked("delete deploy/web --timeout=100s", Says("deployment.apps \"web\" deleted")),
    asked("wait --for=delete pod -l app=web --timeout=100s", Ends(0, "")),
    asked("get pods -l app=web --output=name", Exactly("")),
    asked("delete deploy/web", Ends(1, "(NotFound): deployments.apps \"web\" not found")),
];

/// By others, who are told no.
pub const STRANGERS: &[Asked] = &[
    // kubectl asks for a name and a password where it is refused without having shown anything.
    asked_as("without a certificate", "get --raw /version", Ends(1, "Please enter Username")),
    asked_as(
        "with a certificate of another cluster",
        "get nodes",
        Ends(1, "You must be logged in to the server"),
    ),
    asked_as(
        "with a certificate that has ended",
        "get nodes",
        Ends(1, "You must be logged in to the server"),
    ),
    asked_as(
        "with a certificate of no group",
        "get nodes",
        Ends(
            1,
            "(Forbidden): nodes is forbidden: User \"somebody\" cannot list resource \"nodes\"",
        ),
    ),
    asked_as("with a certificate of no group", "auth can-i get nodes", Ends(1, "no\n")),
    asked_as(
        "trusting another authority",
        "get nodes",
        Ends(1, "x509: certificate signed by unknown authority"),
    ),
    asked_as("with a token", "get --raw /version", Ends(1, "nauthorized")),
];
