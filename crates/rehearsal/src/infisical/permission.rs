//! Who may do what: roles, and rules that are given to one identity for some environments and paths.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an identity may do in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Everything.
    Admin,
    /// Reads and writes.
    Member,
    /// Reads.
    Viewer,
    /// Belongs to the project and may do nothing.
    NoAccess,
}

impl Role {
    /// The role of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        serde_json::from_value(json!(name)).ok()
    }

    fn allows(self, subject: &str, action: &str) -> bool {
        match self {
            Self::Admin | Self::Member => true,
            Self::Viewer if subject == SECRETS => matches!(action, DESCRIBE | READ_VALUE),
            Self::Viewer => action == "read",
            Self::NoAccess => false,
        }
    }
}

/// The subject of rules about secrets.
pub(super) const SECRETS: &str = "secrets";
/// That of rules about folders.
pub(super) const FOLDERS: &str = "secret-folders";
/// That of rules about imports.
pub(super) const IMPORTS: &str = "secret-imports";
/// To see that a secret is there.
pub(super) const DESCRIBE: &str = "describeSecret";
/// To see what is in it.
pub(super) const READ_VALUE: &str = "readValue";

/// An identity's place in a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) role: Role,
    /// What it may do beyond its role.
    pub(super) rules: Vec<Rule>,
}

/// One rule, as it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) subject: String,
    #[serde(rename = "action")]
    pub(super) actions: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conditions: Option<Value>,
    #[serde(default)]
    pub(super) inverted: bool,
}

/// What somebody wants to touch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) environment: &'a str,
    pub(super) path: &'a str,
    pub(super) key: Option<&'a str>,
}

impl Member {
    /// One who may do everything, in some folders.
    pub(super) fn confined(pattern: &str) -> Self {
        let rule = |subject: &str| Rule {
            subject: subject.to_owned(),
            actions: vec!["*".to_owned()],
            conditions: Some(json!({"secretPath": {"$glob": pattern}})),
            inverted: false,
        };
        Self { role: Role::NoAccess, rules: vec![rule(SECRETS), rule(FOLDERS), rule(IMPORTS)] }
    }

    /// Whether it may do this to that. The last rule that speaks of it decides.
    pub(super) fn may(&self, subject: &str, action: &str, target: &Target<'_>) -> bool {
        let spoken = self.rules.iter().rev().find(|rule| {
            rule.speaks_of(subject, action) && holds(rule.conditions.as_ref(), target)
        });
        spoken.map_or_else(|| self.role.allows(subject, action), |rule| !rule.inverted)
    }

    /// Whether there is any place at all where it may do this.
    pub(super) fn may_somewhere(&self, subject: &str, action: &str) -> bool {
        let granted = |rule: &Rule| !rule.inverted && rule.speaks_of(subject, action);
        self.role.allows(subject, action) || self.rules.iter().any(granted)
    }

    /// The rules that were looked at, as a refusal shows them.
    pub(super) fn details(&self, subject: &str, action: &str) -> Value {
        let spoken = self.rules.iter().filter(|rule| rule.speaks_of(subject, action));
        spoken
            .map(|rule| {
                let mut shown = json!({
                    "action": rule.actions, "inverted": rule.inverted, "subject": [rule.subject],
                });
                if let Some(conditions) = &rule.conditions {
                    shown["conditions"] = conditions.clone();
                }
                shown
            })
            .collect()
    }
}

impl Rule {
    fn speaks_of(&self, subject: &str, action: &str) -> bool {
        // `read` is the old word for both ways of seeing a secret.
        let old = subject == SECRETS && matches!(action, DESCRIBE | READ_VALUE);
        let fits = |word: &String| word == action || word == "*" || (old && word == "read");
        self.subject == subject && self.actions.iter().any(fits)
    }
}

fn holds(conditions: Option<&Value>, target: &Target<'_>) -> bool {
    let Some(Value::Object(conditions)) = conditions else { return true };
    conditions.iter().all(|(field, wanted)| {
        let value = match field.as_str() {
            "environment" => target.environment,
            "secretPath" => target.path,
            // A rule about some keys speaks of a folder as long as no key is named.
            "secretName" => match target.key {
                Some(key) => key,
                None => return true,
            },
            _ => return false,
        };
        fits(wanted, value)
    })
}

fn fits(wanted: &Value, value: &str) -> bool {
    let Value::Object(tests) = wanted else { return wanted == value };
    tests.iter().all(|(operator, operand)| match operator.as_str() {
        "$eq" => operand == value,
        "$ne" => operand != value,
        "$in" => operand.as_array().is_some_and(|several| several.iter().any(|one| one == value)),
        "$glob" => operand.as_str().is_some_and(|pattern| glob(pattern, value)),
        _ => false,
    })
}

/// Whether a path fits a pattern: `*` stands for part of a name, `**` for any number of names.
pub(super) fn glob(pattern: &str, path: &str) -> bool {
    let names = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    names_fit(&names(pattern), &names(path))
}

fn names_fit(pattern: &[String], path: &[String]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "**" => {
            names_fit(rest, path)
                || path.split_first().is_some_and(|(_, left)| names_fit(pattern, left))
        }
        (Some((first, rest)), Some((name, left))) => {
            name_fits(first, name) && names_fit(rest, left)
        }
        _ => false,
    }
}

fn name_fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            ends.any(|at| name_fits(tail, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_they_do_in_the_real_one() {
        for (pattern, path, fits) in [
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/a", true),
            ("/a/**", "/ab", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/**/c", "/a/b/c", true),
            ("/cl*rs", "/clusters", true),
            ("/cl*rs", "/clusterz", false),
            ("/**", "/", true),
        ] {
            assert_eq!(glob(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn the_last_rule_that_speaks_decides() {
        let rule = |action: &str, conditions: Value, inverted| Rule {
            subject: SECRETS.to_owned(),
            actions: vec![action.to_owned()],
            conditions: Some(conditions),
            inverted,
        };
        let member = Member {
            role: Role::NoAccess,
            rules: vec![
                rule("read", json!({"environment": "dev"}), false),
                rule(READ_VALUE, json!({"secretName": {"$in": ["ROOT"]}}), true),
            ],
        };
        let target = |environment, key| Target { environment, path: "/", key: Some(key) };
        assert!(member.may(SECRETS, DESCRIBE, &target("dev", "ROOT")));
        assert!(member.may(SECRETS, READ_VALUE, &target("dev", "A")));
        assert!(!member.may(SECRETS, READ_VALUE, &target("dev", "ROOT")));
        assert!(!member.may(SECRETS, DESCRIBE, &target("prod", "A")));
        assert!(!member.may(SECRETS, "create", &target("dev", "A")));
    }
}
