//! The API of older days, v3 for secrets and v1 for folders, in the words of today's: replies are the same.

use super::Infisical;
use super::reply::Refusal;
use super::request::{Body, Query};
use crate::turn::HttpCall;

impl Infisical {
    /// A call of an older API as today's; none if it is not one.
    pub(super) fn modern(&self, call: &HttpCall) -> Option<Result<HttpCall, Refusal>> {
        let path = if call.path == "/api/v3/secrets/batch/raw" {
            "/api/v4/secrets/batch".to_owned()
        } else if let Some(name) = call.path.strip_prefix("/api/v3/secrets/raw") {
            format!("/api/v4/secrets{name}")
        } else if call.path == "/api/v1/folders" {
            "/api/v2/folders".to_owned()
        } else {
            return None;
        };
        Some(self.translated(call, path))
    }

    fn translated(&self, call: &HttpCall, path: String) -> Result<HttpCall, Refusal> {
        let id_of = |slug: &str| self.projects.get(slug).map(|project| project.id.clone());
        let mut modern = HttpCall { path, ..call.clone() };
        if call.method != "GET" {
            modern.body = Body::read(call)?.renamed(id_of).bytes();
            return Ok(modern);
        }
        let mut query = Query::read(call);
        let slug = query.get("workspaceSlug").and_then(id_of);
        let Some(project) = query.get("workspaceId").map(str::to_owned).or(slug) else {
            return Err(Refusal::bad_request("You must provide projectSlug or workspaceId"));
        };
        query.otherwise("projectId", &project);
        // The one default that is another today.
        query.otherwise("expandSecretReferences", "false");
        let imports = query.get("include_imports").unwrap_or("false").to_owned();
        query.otherwise("includeImports", &imports);
        modern.query = query.text();
        Ok(modern)
    }
}
