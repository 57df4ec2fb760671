//! Sets single values of a castle file and leaves all else as it was written: order, comments, layout.

use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::structure::{Block, BlockLabel, Body};

/// One value to set, in every block of a keyword and label inside of `castle`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<'a> {
    /// The keyword of the block.
    pub block: &'a str,
    /// Its label; none for blocks whatever their label.
    pub label: Option<&'a str>,
    /// The key.
    pub key: &'a str,
    /// The value as HCL; none takes the key out.
    pub value: Option<String>,
}

impl Setting<'_> {
    fn means(&self, block: &Block) -> bool {
        let label = block.labels.first().map(BlockLabel::as_str);
        block.has_ident(self.block) && (self.label.is_none() || self.label == label)
    }
}

/// The text with the values set; where a block is not there, one is made for values without a label. None if the text
/// has no castle in it that can be read.
#[must_use]
pub fn edited(text: &str, settings: &[Setting<'_>]) -> Option<String> {
    let body: Body = text.parse().ok()?;
    let castle = body.get_blocks("castle").next()?;
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut fresh: Vec<(&str, String)> = Vec::new();
    for setting in settings {
        let mut found = false;
        for block in castle.body.blocks().filter(|block| setting.means(block)) {
            found = true;
            changes.extend(change(block, setting)?);
        }
        if let (false, None, Some(value)) = (found, setting.label, &setting.value) {
            let line = format!("    {} = {value}\n", setting.key);
            match fresh.iter_mut().find(|(block, _)| *block == setting.block) {
                Some((_, lines)) => lines.push_str(&line),
                None => fresh.push((setting.block, line)),
            }
        }
    }
    let top = first(&castle.body)?;
    for (block, lines) in fresh {
        changes.push((top..top, format!("{block} {{\n{lines}  }}\n\n  ")));
    }
    // From the end, so that places before stay where they are; of several at one place the first comes first.
    changes.sort_by_key(|(place, _)| place.start);
    let mut edited = text.to_owned();
    for (place, new) in changes.into_iter().rev() {
        edited.replace_range(place, &new);
    }
    Some(edited)
}

/// What must change in one block, if anything; none if its place is not known.
fn change(block: &Block, setting: &Setting<'_>) -> Option<Vec<(Range<usize>, String)>> {
    let there = block.body.get_attribute(setting.key);
    Some(match (there, &setting.value) {
        (Some(attribute), Some(value)) => vec![(attribute.value.span()?, value.clone())],
        (Some(attribute), None) => vec![(attribute.span()?, String::new())],
        (None, Some(value)) => {
            let top = first(&block.body)?;
            vec![(top..top, format!("{} = {value}\n    ", setting.key))]
        }
        (None, None) => Vec::new(),
    })
}

/// Where the first thing in a body begins.
fn first(body: &Body) -> Option<usize> {
    Some(body.iter().next()?.span()?.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<'a>(block: &'a str, label: Option<&'a str>, key: &'a str, value: &str) -> Setting<'a> {
        Setting { block, label, key, value: Some(value.to_owned()) }
    }

    #[test]
    fn values_are_set_added_and_taken_out_where_they_stand() {
        let text = "castle \"blue\" {\n  talos = \"1.13.9\" # pinned\n\n  platform \"proxmox\" {\n    endpoint = env(\"X\") # ours\n    ca       = file(\"a.pem\")\n  }\n\n  nodes \"worker\" {\n    first_ip = \"10.0.0.1\"\n  }\n  nodes \"control-plane\" {\n    first_ip = \"10.0.0.9\"\n  }\n}\n";
        let settings = [
            set("platform", None, "endpoint", "\"https://127.0.0.1:8006\""),
            set("platform", None, "fingerprint", "\"ab\""),
            Setting { block: "platform", label: None, key: "ca", value: None },
            set("nodes", Some("worker"), "first_ip", "\"127.0.1.1\""),
            set("downloads", None, "mirror", "\"https://127.0.0.1:8444\""),
            set("downloads", None, "factory", "\"https://127.0.0.1:8444\""),
            set("gitops", Some("flux"), "url", "\"x\""),
        ];
        insta::assert_snapshot!(edited(text, &settings).unwrap(), @r#"
        castle "blue" {
          downloads {
            mirror = "https://127.0.0.1:8444"
            factory = "https://127.0.0.1:8444"
          }

          talos = "1.13.9" # pinned

          platform "proxmox" {
            fingerprint = "ab"
            endpoint = "https://127.0.0.1:8006" # ours
            
          }

          nodes "worker" {
            first_ip = "127.0.1.1"
          }
          nodes "control-plane" {
            first_ip = "10.0.0.9"
          }
        }
        "#);
        assert_eq!(edited("nothing = {", &settings), None);
        assert_eq!(edited("other {}", &settings), None);
    }

    #[test]
    fn the_example_reads_the_same_when_its_values_are_set_to_themselves() {
        let settings = [set("network", None, "vip", "\"192.168.1.210\"")];
        assert_eq!(edited(crate::EXAMPLE, &settings).unwrap(), crate::EXAMPLE);
    }
}
