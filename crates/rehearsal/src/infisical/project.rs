//! The calls on projects: finding one, making one, and letting identities in.

use serde_json::{Value, json};

use super::permission::{Member, Role, Rule};
use super::reply::{Answer, Refusal};
use super::request::{Body, decoded};
use super::vault::{Project, outsider, stamp};
use super::{Infisical, Turn};
use crate::turn::HttpCall;

impl Infisical {
    /// Everything under `/api/v1/projects`.
    pub(super) fn route_projects(
        &mut self,
        turn: &Turn<'_>,
        (call, caller): (&HttpCall, &str),
        rest: &[&str],
    ) -> Option<Result<Answer, Refusal>> {
        Some(match (call.method.as_str(), rest) {
            ("GET", []) => {
                let own = self.projects.iter().filter(|(_, p)| p.members.contains_key(caller));
                let listed: Vec<Value> = own.map(|(slug, project)| project.shown(slug)).collect();
                Ok(Answer::read(json!({"projects": listed})))
            }
            ("POST", []) => self.create_project(turn, call, caller),
            ("GET", ["slug", slug]) => self.project_by_slug(caller, &decoded(slug)),
            ("GET", [id]) => self.project(id, caller).map(|(project, _)| {
                let found = self.projects.iter().find(|(_, other)| other.id == project.id);
                let slug = found.map_or("", |(slug, _)| slug.as_str());
                Answer::read(json!({"project": project.shown(slug)}))
            }),
            ("GET", [id, "environments", "slug", slug]) => {
                self.environment_by_slug(caller, id, slug)
            }
            ("POST", [id, "memberships", "identities", identity]) => {
                self.let_in(turn, (call, caller), id, identity)
            }
            _ => return None,
        })
    }

    fn create_project(
        &mut self,
        turn: &Turn<'_>,
        call: &HttpCall,
        caller: &str,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["projectName"])?;
        let name = body.text("projectName");
        let slug = body.get("slug").and_then(Value::as_str).unwrap_or(name).to_owned();
        if self.projects.contains_key(&slug) {
            return Err(Refusal::bad_request(format!("Project with slug '{slug}' already exists")));
        }
        let mut project = Project::new(&slug, &self.organization_id(), turn.now);
        name.clone_into(&mut project.name);
        project.members.insert(caller.to_owned(), Member { role: Role::Admin, rules: Vec::new() });
        let shown = project.shown(&slug);
        self.projects.insert(slug, project);
        Ok(Answer::changed(json!({"project": shown})))
    }

    fn project_by_slug(&self, caller: &str, slug: &str) -> Result<Answer, Refusal> {
        let project = self
            .projects
            .get(slug)
            .ok_or_else(|| Refusal::not_found(format!("Project with slug '{slug}' not found")))?;
        if !project.members.contains_key(caller) {
            return Err(outsider(&project.id));
        }
        Ok(Answer::read(project.shown(slug)))
    }

    fn environment_by_slug(&self, caller: &str, id: &str, slug: &str) -> Result<Answer, Refusal> {
        let (project, _) = self.project(id, caller)?;
        let Some(environment) = project.environments.get(slug) else {
            let message =
                format!("Environment with slug '{slug}' in project with ID '{id}' not found");
            return Err(Refusal::not_found(message));
        };
        Ok(Answer::read(json!({"environment": {
            "id": environment.id,
            "name": environment.name,
            "slug": slug,
            "position": environment.position,
            "projectId": id,
            "createdAt": stamp(project.made),
            "updatedAt": stamp(project.made),
            "deleteAfter": null,
            "softDeletedAt": null,
            "deletedByUserId": null,
            "deletedByIdentityId": null,
        }})))
    }

    /// `POST …/memberships/identities/{id}`.
    fn let_in(
        &mut self,
        turn: &Turn<'_>,
        (call, caller): (&HttpCall, &str),
        id: &str,
        identity: &str,
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        let named = body.get("roles").and_then(|roles| roles[0]["role"].as_str());
        let role = named.and_then(Role::named).ok_or_else(|| {
            Refusal::bad_request("Failed to create identity project membership: unknown role")
        })?;
        let own = self.fresh_id("membership");
        let project = self.project_of_admin(id, caller, "create", "identity")?;
        project.members.insert(identity.to_owned(), Member { role, rules: Vec::new() });
        self.made += 1;
        Ok(Answer::changed(json!({"identityMembership": {
            "id": own,
            "projectId": id,
            "identityId": identity,
            "createdAt": stamp(turn.now),
            "updatedAt": stamp(turn.now),
        }})))
    }

    /// `POST /api/v2/identity-project-additional-privilege`: rules for one identity.
    pub(super) fn give_privilege(
        &mut self,
        turn: &Turn<'_>,
        (call, caller): (&HttpCall, &str),
    ) -> Result<Answer, Refusal> {
        let body = Body::read(call)?;
        body.need(&["identityId", "projectId"])?;
        let given = body.get("permissions").cloned().unwrap_or_default();
        let rules: Vec<Rule> = serde_json::from_value(given)
            .map_err(|_| Refusal::bad_request("Invalid permissions"))?;
        let own = self.fresh_id("privilege");
        let project = self.project_of_admin(body.text("projectId"), caller, "edit", "identity")?;
        let member = project
            .members
            .get_mut(body.text("identityId"))
            .ok_or_else(|| Refusal::not_found("Failed to find identity in the project"))?;
        let shown = json!(rules);
        member.rules.extend(rules);
        self.made += 1;
        Ok(Answer::changed(json!({"privilege": {
            "id": own,
            "slug": body.text("slug"),
            "isTemporary": false,
            "temporaryMode": null,
            "temporaryRange": null,
            "temporaryAccessStartTime": null,
            "temporaryAccessEndTime": null,
            "permissions": shown,
            "createdAt": stamp(turn.now),
            "updatedAt": stamp(turn.now),
        }})))
    }

    fn project_of_admin(
        &mut self,
        id: &str,
        caller: &str,
        action: &str,
        subject: &str,
    ) -> Result<&mut Project, Refusal> {
        if self.project(id, caller)?.1.role != Role::Admin {
            return Err(Refusal::denied(action, subject, json!([])));
        }
        let mut projects = self.projects.values_mut();
        projects.find(|project| project.id == id).ok_or_else(|| outsider(id))
    }
}
