//! Where the emulated API server is known to say something else than the real one, and why that is so. It may only shrink.

/// A case, the steps whose answers differ, and the reason.
type Known = (&'static str, &'static [&'static str], &'static str);

/// All that is known to differ.
pub(super) const KNOWN_DIFFERENCES: &[Known] = &[
    (
        "apply dry run",
        &["try to delete", "try to post"],
        "a dry run of a deletion or a creation answers with less",
    ),
    (
        "apply removes what is no longer wanted",
        &["less", "nothing"],
        "a map whose last field goes away is refused",
    ),
    (
        "client watches",
        &["event 3", "event 4", "event 5"],
        "an object that leaves a selection is not told as deleted",
    ),
    (
        "default values",
        &["a deployment", "a namespace", "a secret", "a service"],
        "only the defaults that castle looks at are set",
    ),
    (
        "definition",
        &[
            "a field missing",
            "a field that is not defined",
            "a field that is not defined, posted",
            "a wrong type",
            "a wrong type, posted",
            "an object",
            "before",
            "conditions",
            "discovery",
            "discovery before",
            "list",
            "no objects",
            "stored versions",
            "too small",
        ],
        "objects are not checked against their schema, discovery is shorter",
    ),
    (
        "definition goes",
        &["an object", "discovery", "its objects", "nothing came back"],
        "defaults of a schema are not set, an unknown group is told as an unknown path",
    ),
    ("discovery", &["/api/v1", "/apis/apps/v1"], "subresources are not listed"),
    (
        "endpoint slices",
        &["an address of a pod", "an address of everybody"],
        "defaults and the check of addresses are missing",
    ),
    (
        "finalizers",
        &[
            "another finalizer now",
            "another value",
            "delete",
            "delete again",
            "let go",
            "still there",
        ],
        "a deletion that is held up answers with a status",
    ),
    (
        "invalid objects",
        &[
            "a bad key",
            "a bad label",
            "a bad name",
            "a service with a bad port",
            "a service without ports",
            "an empty deployment",
            "labels that do not match",
        ],
        "only the checks that a mistake of castle would meet first",
    ),
    (
        "malformed bodies",
        &[
            "a wrong type",
            "an unknown field, strictly",
            "another kind",
            "another name",
            "another version",
            "no kind",
            "no manager",
        ],
        "the words are shorter, types are not checked",
    ),
    ("namespace goes", &["delete"], "a deletion that goes on answers with a status"),
    (
        "namespace held by a finalizer",
        &["create in it", "why it stays"],
        "the conditions that say what is left are missing",
    ),
    ("not found", &["a group"], "an unknown group is told as an unknown path"),
    ("orphans", &["delete", "left", "the owner"], "owners go in the background only"),
    ("owners in the background", &["the owner"], "a finalizer does not hold up what is owned"),
    (
        "owners in the foreground",
        &["delete", "the owner", "the owner waits"],
        "owners go in the background only",
    ),
    ("pages", &["first", "nonsense", "second", "third"], "lists have one page"),
    ("pages that are too old", &["an old page"], "lists have one page"),
    (
        "patches",
        &["a path that is not there", "a test that fails", "merge of an old one"],
        "words of JSON patches, and an old version in a merge",
    ),
    (
        "pod security",
        &["a plain pod", "a plain pod, baseline", "a privileged pod", "a privileged pod, baseline"],
        "not checked",
    ),
    ("preconditions", &["another's uid", "its uid"], "not checked"),
    ("replace", &["replace by another name"], "the words are shorter"),
    (
        "scope",
        &["in a namespace", "where it belongs"],
        "the scope is not checked, defaults of a schema are not set",
    ),
    (
        "selectors",
        &[
            "labelSelector=%3D%3D",
            "labelSelector=name+in+(a,c)",
            "labelSelector=name+notin+(a),case",
        ],
        "sets are not read",
    ),
    (
        "status of a kind",
        &["get status", "merged", "spec", "status with the object", "the same spec"],
        "defaults of a schema are not set",
    ),
    ("watch", &["events", "from nowhere"], "a watch has no limit of time"),
    (
        "watch from too long ago",
        &["lines", "nonsense", "nonsense, listed", "status"],
        "a watch has no limit of time",
    ),
    ("watch lines", &["initial events"], "a watch has no limit of time"),
    ("webhook for others", &["update"], "the words lack the address"),
    (
        "webhook where nobody listens",
        &["apply", "client", "create", "try"],
        "webhooks are not found by their EndpointSlices",
    ),
    (
        "webhook without a service",
        &["apply", "client", "create", "try"],
        "the words lack the address",
    ),
    (
        "webhook without endpoints",
        &["apply", "client", "create", "try"],
        "webhooks are not found by their EndpointSlices",
    ),
];
