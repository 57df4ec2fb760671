//! infisicalsdk, the Python client of Infisical, against the emulated one.

use castle_model::spec::{ReaderSpec, SecretRef, SourceSpec, Spec};
use castle_reality::asked::scripts::INFISICALSDK;
use castle_reality::{Real, run};

use crate::datacenter::{Datacenter, LIMIT};
use crate::setting::{folder, pem, told_by_script, with, write};

/// The example castle, with its Infisical at `127.0.<net>.3:8443`, and an identity that only reads.
fn infisical(net: u8) -> Spec {
    let mut spec = castle_config::example();
    let source = spec.secrets.sources.iter_mut().find_map(|source| match source {
        SourceSpec::Infisical(source) => Some(source),
        _ => None,
    });
    let source = source.unwrap();
    source.host = format!("https://127.0.{net}.3:8443");
    source.reader = Some(ReaderSpec {
        id: SecretRef("READER_ID".to_owned()),
        secret: SecretRef("READER_SECRET".to_owned()),
    });
    spec
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_stranger_keeps_secrets() {
    let Some(real) = Real::find("infisicalsdk") else { return };
    let datacenter = Datacenter::open(infisical(82)).await;
    let place = folder();
    let roots: String =
        datacenter.host.roots().iter().map(|root| pem("CERTIFICATE", root)).collect();
    let ca = write(place.path(), "ca.pem", &roots);
    let birth = datacenter.host.read(|world| world.birth.infisical.clone());
    let project = datacenter.host.read(|world| world.infisical.project_id(&birth.project));
    let (reader, reader_secret) = birth.reader.unwrap();
    let script = include_str!("infisical.py");
    let words = ["-c", script, &birth.host, &birth.project, &project.unwrap()];
    let mut command = with(real.python(), &words);
    command.env("REQUESTS_CA_BUNDLE", ca);
    command.env("CLIENT_ID", &birth.client_id).env("CLIENT_SECRET", &birth.client_secret);
    command.env("READER_ID", reader).env("READER_SECRET", reader_secret);
    let told = run(command, LIMIT).await.expect_success();
    told_by_script(INFISICALSDK, &told);
}
