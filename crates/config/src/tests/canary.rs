//! The canary: a secret may be written in any wrong way, and is shown in none.

use super::{changed, codes, read, render, shown};
use crate::to_json_lines;

const LITERAL: &str = "token_secret  = secret(\"PROXMOX_TOKEN_SECRET\")";
const NODE: &str = "node          = \"pve\"";
const DOMAIN: &str = "domain       = \"tazlab.net\"";
const DEADLINE: &str = "vm = \"5m\"";

#[test]
fn no_secret_is_ever_shown() {
    for (from, to) in [
        (LITERAL, "token_secret = \"hunter2\""),
        (LITERAL, "token_secret = \"hunter2"),
        (LITERAL, "token_secret = hunter2 hunter2"),
        (LITERAL, "token_secret = \"x-${env(\"S\", \"hunter2\")}\""),
        (LITERAL, "token_secret = <<EOT\nhunter2\nEOT"),
        (LITERAL, "token_secret = \"ghp_hunter2hunter2hunter2\" nonsense"),
        (LITERAL, "tokensecret = \"ghp_hunter2hunter2hunter2\""),
        ("vip         = \"192.168.1.210\"", "vip = \"ghp_hunter2hunter2hunter2\""),
        ("vip         = \"192.168.1.210\"", "vip = [\"ghp_hunter2hunter2hunter2\"]"),
        ("castle \"blue\"", "castle \"ghp_hunter2hunter2hunter2\""),
        ("platform \"proxmox\"", "platform \"ghp_hunter2hunter2hunter2\""),
        ("network {", "network {\n ghp_hunter2hunter2hunter2 = 1"),
        ("vm = \"5m\"", "ghp_hunter2hunter2hunter2 = \"5m\""),
        ("require     = [", "require = [\"ghp_hunter2hunter2hunter2\", "),
        ("vars = {", "vars = {\n ghp_hunter2hunter2hunter2 = []"),
        ("https://github.com/", "https://me:hunter2@github.com/"),
        (LITERAL, "token_secret = hunter2verysecret8374"),
        (LITERAL, "token_secret = hunter2.very.secret8374"),
        (LITERAL, "token_secret = \"${hunter2}\""),
        (LITERAL, "token_secret = [\"hunter2\"]"),
        (LITERAL, "token_secret = [\"a\",\n\"hunter2\"]"),
        (LITERAL, "token_secret = { a = hunter2 }"),
        (LITERAL, "token_secret = hunter2(\"A\")"),
        (LITERAL, "token_secret = secrt(\"hunter2\")"),
        (LITERAL, "token_secret = secret(\"hunter2 is it\")"),
        (LITERAL, "token_secret = secret(\"A\") + \"hunter2\""),
        (LITERAL, "token_secret = cidrhost(\"hunter2\", 1)"),
        (LITERAL, "token_secret = tonumber(\"hunter2\")"),
        (LITERAL, "token_secret = \"${file(\"../hunter2\")}\""),
        (LITERAL, "token_secret = \"${env(\"hunter2\")}\""),
        (LITERAL, "token_secret = true ? hunter2 : 1"),
        (LITERAL, "token_secret = -hunter2"),
        (LITERAL, "token_secret = \"abc\nhunter2\""),
        (LITERAL, "token_secret \"hunter2\""),
        (LITERAL, "token_secret hunter2"),
        (LITERAL, "token_secret : \"hunter2\""),
        (LITERAL, "token_secret\n = \"hunter2\""),
        (LITERAL, "token_secret \"hunter2\" {\n value = \"hunter2\"\n }"),
        (LITERAL, "token_secret =\n \"hunter2\""),
        (LITERAL, "token_secret = \"a\" \\\n \"hunter2\""),
        (LITERAL, "token_secret = \"a\"\n + \"hunter2\""),
        (LITERAL, "token_secret = \"a\" \"hunter2\""),
        (LITERAL, "token_secret == \"hunter2\""),
        (LITERAL, "token_secret => \"hunter2\""),
        (LITERAL, "token_secret='hunter2'"),
        (LITERAL, "\"token_secret\" = \"hunter2\""),
        (LITERAL, "export TOKEN_SECRET=hunter2"),
        (LITERAL, "token_secret = /* a */ hunter2 /* b"),
        (LITERAL, "token_secret = \"hunter2\"\n token_secret = \"hunter2\""),
        (LITERAL, "token_secret = \"hunter2\"\r\n oops\r\n"),
        (LITERAL, "token_secret = \"hunter2\\q\""),
        (LITERAL, "token_secret = \"hunter2 ${\""),
        (LITERAL, "token_secret = <<EOT\nhunter2\n"),
        (LITERAL, "token_secret = [for x in hunter2 : x]"),
        (LITERAL, "token_secret = hunter2::a(\"hunter2\")"),
        (LITERAL, "/* password = hunter2 */ oops"),
        (LITERAL, "secrets = \"hunter2\""),
        ("nameservers = [\"192.168.1.1\"]", "nameservers = \"password=hunter2\""),
        ("vars = {", "vars = merge({ password = \"hunter2\" })\n other = {"),
        (DOMAIN, "db = { password : \"hunter2\" }"),
        (LITERAL, "token_secrt = \"hunter2-8374\""),
        (LITERAL, "token_secrt = hunter2"),
        (LITERAL, "tokenSecret = \"hunter2\""),
        (NODE, "passwd = \"hunter2hunter2\""),
        (NODE, "passwd = <<EOT\nhunter2\nEOT"),
        (NODE, "api_key = hunter2"),
        (NODE, "credentials = { user = \"a\", value = \"hunter2\" }"),
        (NODE, "node = \"pve\" # password: hunter2\n oops"),
        (NODE, "node = pve # password: hunter2"),
        ("castle \"blue\" {", "password = \"hunter2\"\ncastle \"blue\" {"),
        ("castle \"blue\" {", "password \"hunter2\" {\n}\ncastle \"blue\" {"),
        ("platform \"proxmox\" {", "platform \"vsphere\" {\n password = hunter2"),
        (DEADLINE, "token = \"hunter2\""),
        (DEADLINE, "token = hunter2"),
        (DOMAIN, "db_password = \"hunter2\""),
        (DOMAIN, "dbPassword = hunter2"),
        (DOMAIN, "\"db_password\" = \"hunter2\""),
        (DOMAIN, "(\"db_password\") = \"hunter2\""),
        (DOMAIN, "\"db_${\"password\"}\" = \"hunter2\""),
        (DOMAIN, "db_password = cidrhost(\"hunter2\", 1)"),
        (DOMAIN, "db_password = [\"hunter2\"]"),
        (DOMAIN, "db_password = \"hunter2"),
        (DOMAIN, "domain = \"eyJhunter2hunter2.eyJhunter2hunter2.hunter2\""),
        (DOMAIN, "domain = \"PVEAPIToken=root@pam!x=hunter2\""),
    ] {
        let sources = changed(&[(from, to)]);
        let read = read(&sources);
        assert!(read.spec.is_none(), "{to}");
        for colour in [false, true] {
            let text = render(&read.findings, &sources, colour, 120);
            assert!(!text.contains("hunter2"), "{to}\n{text}");
        }
        let json = to_json_lines(&read.findings);
        assert!(!json.contains("hunter2"), "{to}\n{json}");
    }
}

#[test]
fn what_is_no_value_stays_readable() {
    let text = shown(&changed(&[(LITERAL, "token_secret = secrt(\"A\")")]));
    assert!(text.contains("there is no function `secrt`"), "{text}");
    assert!(text.contains("token_secret = secrt(\"*\")"), "{text}");
    assert!(text.contains("did you mean `secret`?"), "{text}");
    let text = shown(&changed(&[(DOMAIN, "db_password = secrt(\"A\")")]));
    assert!(text.contains("there is no function `secrt`"), "{text}");
    let text = shown(&changed(&[(LITERAL, "token_secrt = secret(\"PROXMOX_TOKEN_SECRET\")")]));
    assert!(text.contains("token_secrt = secret(\"PROXMOX_TOKEN_SECRET\")"), "{text}");
    // Another line beside that of a secret is shown whole.
    let text = shown(&changed(&[(LITERAL, "token_secret = \"hunter2\"\n nod = \"pve\"")]));
    assert!(text.contains("nod = \"pve\""), "{text}");
}

#[test]
fn shapes_of_well_known_secrets() {
    let forty = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let var = |text: &str| codes(&changed(&[(DOMAIN, text)]));
    for (text, expected) in [
        ("domain = \"AKIAIOSFODNN7EXAMPLE\"".to_owned(), &["C0303"][..]),
        ("domain = \"ASIAIOSFODNN7EXAMPLE\"".to_owned(), &["C0303"]),
        ("domain = \"AKIAIOSFODNN7EXAMPLE2\"".to_owned(), &[]),
        (format!("aws_key = \"{forty}\""), &["C0303"]),
        (format!("aws_secret_access_key = \"{forty}\""), &["C0303"]),
        (format!("domain = \"{forty}\""), &[]),
        (format!("# aws {forty}\ndomain = \"x\""), &["C0303"]),
        ("domain = \"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln\"".to_owned(), &["C0303"]),
        ("domain = \"eyJhbGciOi.example.net\"".to_owned(), &[]),
        ("domain = \"PVEAPIToken=root@pam!castle=5f2d\"".to_owned(), &["C0303"]),
        ("db_password = \"x\"".to_owned(), &["C0305"]),
        ("db_password = 1234".to_owned(), &["C0305"]),
        ("db_password = \"\"".to_owned(), &[]),
        ("db_password_secret_name = \"x\"".to_owned(), &[]),
        ("db_password = \"ghp_hunter2hunter2hunter2\"".to_owned(), &["C0303"]),
        ("ssh_key_name = \"x\"".to_owned(), &[]),
    ] {
        assert_eq!(var(&text), expected, "{text}");
    }
    for secret in [forty, "AKIAIOSFODNN7EXAMPLE"] {
        let sources = changed(&[(DOMAIN, &format!("aws_key = \"{secret}\""))]);
        assert!(!shown(&sources).contains(secret), "{}", shown(&sources));
        assert!(!to_json_lines(&read(&sources).findings).contains(secret));
    }
}

#[test]
fn a_layer_may_have_a_name_that_sounds_secret() {
    let layer =
        "layer \"token-store\" {\n manifests = \"m\"\n}\n  deadlines {\n    token-store = \"5m\"\n";
    let mut sources = changed(&[("deadlines {", layer)]);
    sources.files.insert("m/a.yaml".into(), b"kind: A".to_vec());
    assert_eq!(codes(&sources), Vec::<&str>::new(), "{}", shown(&sources));
}
