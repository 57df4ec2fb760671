//! Image registries as kubelets meet them: some let only so many pulls through.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Which images the nodes have, and which registries are scant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pulls {
    /// Node and image.
    there: BTreeSet<String>,
    /// By the host of the registry.
    limits: BTreeMap<String, Limit>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Limit {
    left: u32,
    /// In virtual milliseconds.
    until: u64,
}

impl Pulls {
    /// From now on a registry lets only so many pulls through, until a time.
    pub(super) fn limit(&mut self, registry: &str, left: u32, until: u64) {
        self.limits.insert(registry.to_owned(), Limit { left, until });
    }

    /// The registries that are scant, in words.
    pub(super) fn scant(&self, now: u64) -> impl Iterator<Item = String> {
        let scant = self.limits.iter().filter(move |(_, limit)| now < limit.until);
        scant.map(|(registry, limit)| format!("{registry} lets {} more pulls through", limit.left))
    }

    /// A node pulls an image, unless it has it.
    ///
    /// # Errors
    /// What the container runtime says.
    pub(super) fn pull(&mut self, now: u64, node: &str, image: &str) -> Result<(), String> {
        let entry = format!("{node} {image}");
        if self.there.contains(&entry) {
            return Ok(());
        }
        let (registry, path) = place(image);
        if let Some(limit) = self.limits.get_mut(registry).filter(|limit| now < limit.until) {
            let Some(left) = limit.left.checked_sub(1) else {
                let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
                let (name, tag) = path.rsplit_once(':').unwrap_or((path, "latest"));
                return Err(format!(
                    "failed to pull and unpack image \"{registry}/{path}\": failed to copy: httpReadSeeker: failed open: \
                    unexpected status code https://{host}/v2/{name}/manifests/{tag}: 429 Too Many Requests - Server \
                    message: toomanyrequests: You have reached your unauthenticated pull rate limit. \
                    https://www.docker.com/increase-rate-limit"
                ));
            };
            limit.left = left;
        }
        self.there.insert(entry);
        Ok(())
    }
}

/// The registry of an image, and the rest of its name.
fn place(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((host, rest)) if host.contains('.') || host.contains(':') => (host, rest),
        _ => ("docker.io", image),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scant_registry_refuses_until_its_time_is_over() {
        let mut pulls = Pulls::default();
        pulls.limit("docker.io", 1, 1_000);
        assert_eq!(pulls.pull(0, "a", "x/y:1"), Ok(()));
        assert_eq!(pulls.pull(0, "a", "x/y:1"), Ok(()), "it is there");
        let no = pulls.pull(0, "b", "docker.io/x/y:1").unwrap_err();
        assert!(
            no.contains("https://registry-1.docker.io/v2/x/y/manifests/1: 429 Too Many Requests"),
            "{no}"
        );
        assert_eq!(pulls.pull(0, "b", "ghcr.io/x/y:1"), Ok(()));
        assert_eq!(pulls.pull(1_000, "b", "docker.io/x/y:1"), Ok(()));
    }
}
