//! The environment as a secret source: a key's variable, with a prefix before its name.

use async_trait::async_trait;
use castle_model::Failure;
use castle_model::spec::EnvSpec;

use super::source::{Source, Values};

/// The environment that castle was started in.
pub(crate) struct Environment {
    prefix: String,
    variables: Values,
}

impl Environment {
    pub(crate) fn new(spec: &EnvSpec, variables: &Values) -> Self {
        Self { prefix: spec.prefix.clone(), variables: variables.clone() }
    }
}

#[async_trait]
impl Source for Environment {
    fn place(&self) -> String {
        "the environment".to_owned()
    }

    fn place_of(&self, key: &str) -> String {
        format!("the variable {}{key} of the environment", self.prefix)
    }

    async fn read(&self, wanted: &[String]) -> Result<Values, Failure> {
        let variable = |key: &String| {
            let value = self.variables.get(&format!("{}{key}", self.prefix))?;
            Some((key.clone(), value.clone()))
        };
        Ok(wanted.iter().filter_map(variable).collect())
    }
}
