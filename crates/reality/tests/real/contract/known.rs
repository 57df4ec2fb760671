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
        "default values",
        &["a deployment", "a service"],
        "only the defaults that castle looks at are set",
    ),
    (
        "definition",
        &[
            "a field that is not defined",
            "a wrong type",
            "before",
            "conditions",
            "discovery",
            "discovery before",
            "list",
            "no objects",
            "stored versions",
        ],
        "objects are not checked against their schema, discovery is shorter",
    ),
    (
        "definition goes",
        &["discovery", "its objects", "nothing came back"],
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
        &["another finalizer now", "another value"],
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
            "another namespace",
            "another version",
            "no kind",
        ],
        "the words are shorter, types are not checked",
    ),
    (
        "namespace held by a finalizer",
        &["why it stays"],
        "the conditions that say what is left are missing",
    ),
    ("not found", &["a group"], "an unknown group is told as an unknown path"),
    ("pages", &["nonsense"], "lists have one page"),
    ("pod security", &["a privileged pod", "a privileged pod, baseline"], "not checked"),
    ("scope", &["in a namespace"], "the scope is not checked, defaults of a schema are not set"),
    ("selectors", &["labelSelector=%3D%3D"], "sets are not read"),
    ("watch", &["events", "from nowhere"], "a watch has no limit of time"),
    (
        "watch from too long ago",
        &["lines", "nonsense", "nonsense, listed", "status"],
        "a watch has no limit of time",
    ),
    ("watch lines", &["initial events"], "a watch has no limit of time"),
];
