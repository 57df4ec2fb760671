//! What the scripts of the Python clients tell, step by step, in the words of the real servers where these have words.

use super::Told::Exactly;
use super::{Asked, asked};

/// The steps of `proxmox.py`.
pub const PROXMOXER: &[Asked] = &[
    asked("version", Exactly(r#"["release","repoid","version"]"#)),
    asked("nodes", Exactly(r#"[["pve","online","node"]]"#)),
    asked("storages", Exactly(r#"["local","local-lvm"]"#)),
    asked("content", Exactly("[]")),
    asked("nextid", Exactly("100")),
    asked("task", Exactly(r#"["pve","qmcreate","100","castle@pve"]"#)),
    asked("created", Exactly(r#""OK""#)),
    asked("log", Exactly(r#""TASK OK""#)),
    asked(
        "config",
        Exactly(
            r#"{"cores":1,"description":"two words & more: äöü","memory":"1024","name":"by-proxmoxer"}"#,
        ),
    ),
    asked("disk", Exactly("true")),
    asked("listed", Exactly(r#"[[100,"by-proxmoxer","stopped"]]"#)),
    asked("next is another", Exactly("true")),
    asked(
        "taken",
        Exactly(
            r#"{"status":400,"text":"400 Bad Request: Parameter verification failed. - {'vmid': 'VM 100 already exists'}"}"#,
        ),
    ),
    asked(
        "created again",
        Exactly(
            r#"{"status":500,"text":"500 Internal Server Error: unable to create VM 100 - VM 100 already exists on node 'pve'"}"#,
        ),
    ),
    asked(
        "unknown parameter",
        Exactly(
            r#"{"status":400,"text":"400 Bad Request: Parameter verification failed. - {'nonsense': 'property is not defined in schema and the schema does not allow additional properties'}"}"#,
        ),
    ),
    asked("started", Exactly(r#""OK""#)),
    asked("runs", Exactly(r#""running""#)),
    asked("started again", Exactly(r#""VM 100 already running""#)),
    asked(
        "deleted while it runs",
        Exactly(
            r#"{"status":500,"text":"500 Internal Server Error: VM 100 is running - destroy failed"}"#,
        ),
    ),
    asked("changed while it runs", Exactly("null")),
    asked("pending", Exactly("[2]")),
    asked("stopped", Exactly(r#""OK""#)),
    asked("changed", Exactly(r#"[2,"a;b"]"#)),
    asked("resized", Exactly(r#""OK""#)),
    asked("shrunk", Exactly(r#""shrinking disks is not supported""#)),
    asked("tasks", Exactly(r#"["qmcreate","qmstart","qmstop","resize"]"#)),
    asked(
        "a task of nobody",
        Exactly(
            r#"{"status":400,"text":"400 Bad Request: Parameter verification failed. - {'upid': 'no such task'}"}"#,
        ),
    ),
    asked(
        "no such storage",
        Exactly(
            r#"{"status":403,"text":"403 Forbidden: Permission check failed (/storage/nowhere, Datastore.Audit|Datastore.AllocateSpace)"}"#,
        ),
    ),
    asked(
        "no such node",
        Exactly(
            r#"{"status":500,"text":"500 Internal Server Error: hostname lookup 'nowhere' failed - failed to get address info for: nowhere: Name or service not known"}"#,
        ),
    ),
    asked(
        "no such path",
        Exactly(
            r#"{"status":501,"text":"501 Not Implemented: Method 'GET /nosuch' not implemented"}"#,
        ),
    ),
    asked("deleted", Exactly(r#""OK""#)),
    asked(
        "config of nobody",
        Exactly(
            r#"{"status":500,"text":"500 Internal Server Error: Configuration file 'nodes/pve/qemu-server/100.conf' does not exist"}"#,
        ),
    ),
    asked(
        "wrong token",
        Exactly(
            r#"{"status":401,"text":"401 Unauthorized: Authentication failed! - {'errors': b''}"}"#,
        ),
    ),
];

/// The steps of `infisical.py`.
pub const INFISICALSDK: &[Asked] = &[
    asked(
        "no token",
        Exactly(r#"{"error":"UnauthorizedError","status":401,"text":"Token missing"}"#),
    ),
    asked("login", Exactly(r#"["Bearer",2592000,2592000]"#)),
    asked("folder", Exactly(r#"["blue","/sdk/blue"]"#)),
    asked("folders", Exactly(r#"["blue"]"#)),
    asked(
        "folder again",
        Exactly(
            r#"{"error":"BadRequest","status":400,"text":"Folder with name 'blue' already exists in path '/sdk'"}"#,
        ),
    ),
    asked("folder with a dot", Exactly("422")),
    asked("created", Exactly(r#"["TOKEN","käse: 1\n",1]"#)),
    asked(
        "created again",
        Exactly(r#"{"error":"BadRequest","status":400,"text":"Secret already exists"}"#),
    ),
    asked(
        "listed",
        Exactly(r#"[["REFERS","<käse: 1\n>",1,""],["TOKEN","käse: 1\n",1,"by the sdk"]]"#),
    ),
    asked("as written", Exactly(r#"["<${TOKEN}>","käse: 1\n"]"#)),
    asked("hidden", Exactly(r#"["<hidden-by-infisical>","<hidden-by-infisical>"]"#)),
    asked("by slug", Exactly("2")),
    asked("updated", Exactly(r#"["2",2]"#)),
    asked("got", Exactly(r#"["TOKEN","2",2,"by the sdk"]"#)),
    asked("first version", Exactly(r#""käse: 1\n""#)),
    asked(
        "not there",
        Exactly(r#"{"error":"NotFound","status":404,"text":"Secret with name 'NOPE' not found"}"#),
    ),
    asked(
        "no such folder",
        Exactly(
            r#"{"error":"SecretPathNotFound","status":404,"text":"Folder with path '/no/such' in environment 'dev' was not found. Please ensure the environment slug and secret path is correct."}"#,
        ),
    ),
    asked("deleted", Exactly(r#""TOKEN""#)),
    asked(
        "deleted again",
        Exactly(r#"{"error":"NotFound","status":404,"text":"Secret not found"}"#),
    ),
    asked("a reader reads", Exactly(r#"["REFERS"]"#)),
    asked(
        "a reader writes",
        Exactly(
            r#"{"error":"PermissionDenied","status":403,"text":"You are not allowed to create on secrets"}"#,
        ),
    ),
    asked(
        "wrong secret",
        Exactly(
            r#"["Invalid credentials","Invalid credentials","Invalid credentials","This identity auth method is temporarily locked, please try again later"]"#,
        ),
    ),
];
