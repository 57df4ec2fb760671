//! What stands for a secret source in a rehearsal: no real source is ever read there.

use async_trait::async_trait;
use castle_model::Failure;

use super::source::{Source, Values};

/// Invented values in the place of a source.
pub(crate) struct Invented {
    pub(crate) place: String,
    pub(crate) values: Values,
}

#[async_trait]
impl Source for Invented {
    fn place(&self) -> String {
        format!("{}, invented for the rehearsal", self.place)
    }

    async fn read(&self, _wanted: &[String]) -> Result<Values, Failure> {
        Ok(self.values.clone())
    }
}
