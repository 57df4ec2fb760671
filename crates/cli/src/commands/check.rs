//! `castle check`: the castle file read and judged.

use castle_config::Severity;

use crate::answer;
use crate::args::Everywhere;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::{self, Which};
use crate::settings::{Settings, Stream};

/// Prints every finding; an error among them is exit code 2.
pub(crate) fn run(
    which: &Which,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let sources = project::load(which, settings)?;
    let read = project::read(&sources);
    if everywhere.json {
        project::tell(&read.findings);
        if let Some(spec) = &read.spec {
            let right = serde_json::json!({
                "file": sources.file, "castle": spec.name, "control_planes": spec.control_planes().count(),
                "workers": spec.workers().count(), "talos": spec.talos, "kubernetes": spec.kubernetes,
            });
            output::data(&answer::line("check", &right));
        }
    } else {
        let rendered = castle_config::render(
            &read.findings,
            &sources,
            settings.colour(Stream::Talk),
            settings.width(Stream::Talk),
        );
        output::talk(&rendered);
        if let Some(spec) = &read.spec {
            let (control, workers) = (spec.control_planes().count(), spec.workers().count());
            output::page(&format!(
                "{}: castle `{}` is right: {control}+{workers} machines (control planes + workers), Talos {}, Kubernetes {}",
                sources.file, spec.name, spec.talos, spec.kubernetes
            ));
        }
    }
    let wrong = read.findings.iter().any(|f| f.severity == Severity::Error);
    Ok(if wrong { Exit::Usage } else { Exit::Done })
}
