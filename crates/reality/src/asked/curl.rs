//! What curl is asked of every server.

use super::Told::{Ends, Exactly, Says};
use super::{ANY, Asked, asked};

/// In this order. `{ca}` is the datacenter's authority, `{pin}` the digest of Proxmox' key.
pub const ASKED: &[Asked] = &[
    asked("-i --cacert {ca} {proxmox}/api2/json/version", Ends(0, "HTTP/1.1 401 No ticket")),
    asked("-i --cacert {ca} -H {token} {proxmox}/api2/json/version", Says("\"release\":\"9.2\"")),
    asked(
        "-o {here}/x -w %{http_version} --http2 --cacert {ca} -H {token} {proxmox}/api2/json/version",
        Exactly("1.1"),
    ),
    asked(
        "-o {here}/x -w %{http_code} --insecure --pinnedpubkey {pin} -H {token} {proxmox}/api2/json/version",
        Exactly("200"),
    ),
    asked(
        "--insecure --pinnedpubkey {otherpin} {proxmox}/api2/json/version",
        Ends(90, "public key"),
    ),
    asked("{proxmox}/api2/json/version", Ends(60, "SSL certificate problem")),
    asked(
        "-i --cacert {ca} -H {token} {proxmox}/api2/json/nosuch",
        Says("HTTP/1.1 501 Method 'GET /nosuch' not implemented"),
    ),
    asked(
        "-i --cacert {ca} -H {token} -X PATCH {proxmox}/api2/json/version",
        Says("HTTP/1.1 501 method 'PATCH' not available"),
    ),
    asked(
        "-o {here}/x -w %{http_version} --http1.1 --cacert {ca} {infisical}/api/status",
        Exactly("1.1"),
    ),
    asked(
        "-o {here}/x -w %{http_version} --http2 --cacert {ca} {infisical}/api/status",
        Exactly("2"),
    ),
    asked("-I --http1.1 --cacert {ca} {infisical}/api/status", Says("HTTP/1.1 404 Not Found")),
    asked("-I --http2 --cacert {ca} {infisical}/api/status", Says("HTTP/2 404")),
    asked("--cacert {ca} {infisical}/api/v4/secrets", Says("\"message\":\"Token missing\"")),
    asked(
        "--cacert {ca} -d {} -H content-type:application/json {infisical}/api/v1/auth/universal-auth/login",
        Says("\"statusCode\":422"),
    ),
    asked(
        "-i --cacert {ca} {git}/info/refs?service=git-upload-pack",
        Says("www-authenticate: Basic realm=\"GitHub\""),
    ),
    asked(
        "-i --cacert {ca} -u git:{gittoken} {git}/info/refs?service=git-upload-pack",
        Says("content-type: application/x-git-upload-pack-advertisement"),
    ),
    asked(
        "-i --cacert {ca} -u git:{gittoken} {git}/info/refs",
        Says("Please upgrade your git client."),
    ),
    asked("-o {here}/whole -w %{http_code} --cacert {ca} {downloads}/a.yaml", Exactly("200")),
    asked("-I --cacert {ca} {downloads}/a.yaml", Says("accept-ranges: bytes")),
    asked("-o {here}/part -w %{http_code} -r 10- --cacert {ca} {downloads}/a.yaml", Exactly("206")),
    asked(
        "-o {here}/x -w %{http_code} -r 9999999- --cacert {ca} {downloads}/a.yaml",
        Exactly("416"),
    ),
    asked("-o {here}/x -w %{http_code} --cacert {ca} -X POST {downloads}/a.yaml", Exactly("404")),
    asked("-i --insecure {kubernetes}/readyz", Says("\"reason\":\"Unauthorized\",\"code\":401")),
    asked("--cacert {kubeca} --cert {kubecert} --key {kubekey} {kubernetes}/readyz", Exactly("ok")),
    asked(
        "--cacert {kubeca} --cert {kubecert} --key {kubekey} -w %{http_version} -o {here}/x {kubernetes}/version",
        Exactly("2"),
    ),
    asked(
        "--cacert {kubeca} --cert {kubecert} --key {kubekey} --http1.1 {kubernetes}/api/v1/nodes/nobody",
        Says("nodes \\\"nobody\\\" not found"),
    ),
    asked(
        "--cacert {kubeca} --cert {kubecert} --key {kubekey} -w %{http_version} -H content-type:application/json \
         --data-binary @{large} {kubernetes}/api/v1/namespaces/default/configmaps",
        Says("Request entity too large: limit is 3145728"),
    ),
    asked("--cacert {ca} {kubernetes}/readyz", Ends(60, "SSL certificate problem")),
    // Which of its reads or writes meets the alert is a matter of time; that there is no answer is not.
    asked("--insecure -w %{http_code} {talos}/", Ends(ANY, "000")),
];
