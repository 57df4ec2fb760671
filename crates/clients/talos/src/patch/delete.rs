//! `$patch: delete`: found in a patch and taken out of it, then applied to the documents.

use serde_json::Value;

use super::{Identity, PatchError, rules, shown};

/// What a document of a patch deletes.
pub(super) struct Deletions {
    pub(super) list: Vec<Deletion>,
    /// Whether it does nothing besides.
    pub(super) nothing_else: bool,
}

/// One thing to be deleted: a whole document, a field, or an element of a list.
pub(super) struct Deletion {
    path: Vec<String>,
    /// The key and the text that tell which element; then the path ends at the list.
    element: Option<(String, String)>,
}

impl Deletion {
    fn words(&self) -> String {
        let path = shown(&self.path);
        self.element.as_ref().map_or(path.clone(), |(key, text)| format!("{path}[{key}: {text}]"))
    }
}

/// Takes all deletions out of a document of a patch.
pub(super) fn take(part: &mut Value, identity: &Identity) -> Result<Deletions, PatchError> {
    let mut search = Search { identity, found: Vec::new() };
    let all = search.walk(part, &mut Vec::new(), false)?;
    let list = search.found;
    if identity.is_main() && list.iter().any(|deletion| deletion.path.is_empty()) {
        return Err(search_error(
            identity,
            &["$patch".to_owned()],
            "the main document can not be deleted",
        ));
    }
    let only_names = part.as_object().is_some_and(|map| {
        map.iter().all(|(key, value)| {
            ["version", "kind", "name"].contains(&key.as_str()) && !value.is_object()
        })
    });
    Ok(Deletions { nothing_else: all || (only_names && !list.is_empty()), list })
}

struct Search<'a> {
    identity: &'a Identity,
    found: Vec<Deletion>,
}

impl Search<'_> {
    /// Whether nothing is left of the value.
    fn walk(
        &mut self,
        value: &mut Value,
        path: &mut Vec<String>,
        in_list: bool,
    ) -> Result<bool, PatchError> {
        match value {
            Value::Object(map) => {
                if let Some(directive) = map.get("$patch") {
                    let is_deletion = directive == "delete";
                    let first = map.iter().find(|(key, _)| *key != "$patch");
                    let deletion = self.deletion(path, in_list, is_deletion, first)?;
                    self.found.push(deletion);
                    return Ok(true);
                }
                let mut removed = false;
                for key in map.keys().cloned().collect::<Vec<_>>() {
                    path.push(key.clone());
                    if self.walk(&mut map[&key], path, false)? {
                        map.shift_remove(&key);
                        removed = true;
                    }
                    path.pop();
                }
                Ok(removed && map.is_empty())
            }
            Value::Array(list) => {
                let before = list.len();
                let mut kept = Vec::with_capacity(before);
                for (index, mut element) in std::mem::take(list).into_iter().enumerate() {
                    path.push(format!("[{index}]"));
                    if !self.walk(&mut element, path, true)? {
                        kept.push(element);
                    }
                    path.pop();
                }
                *list = kept;
                Ok(list.is_empty() && before > 0)
            }
            _ => Ok(false),
        }
    }

    fn deletion(
        &self,
        path: &[String],
        in_list: bool,
        is_deletion: bool,
        first: Option<(&String, &Value)>,
    ) -> Result<Deletion, PatchError> {
        let wrong = |problem| Err(search_error(self.identity, path, problem));
        if !is_deletion {
            return wrong("the `$patch` there is not `delete`");
        }
        if !in_list {
            if path.iter().any(|step| step.starts_with('[')) {
                return wrong("a field within a list's element can not be deleted");
            }
            return Ok(Deletion { path: path.to_vec(), element: None });
        }
        let text = first.and_then(|(key, value)| match value {
            Value::String(text) => Some((key.clone(), text.clone())),
            Value::Number(number) => Some((key.clone(), number.to_string())),
            _ => None,
        });
        let Some(element) = text else {
            return wrong("no key tells which element is to be deleted");
        };
        let path = path[..path.len() - 1].to_vec();
        Ok(Deletion { path, element: Some(element) })
    }
}

fn search_error(identity: &Identity, path: &[String], problem: &'static str) -> PatchError {
    PatchError::Directive { document: identity.to_string(), path: shown(path), problem }
}

/// Deletes one thing. A document that is not there is passed over, as Talos does; anything else that is not there is
/// an error.
pub(super) fn apply(
    documents: &mut Vec<Value>,
    identity: &Identity,
    deletion: &Deletion,
) -> Result<(), PatchError> {
    let Some(index) = documents.iter().position(|document| Identity::of(document) == *identity)
    else {
        return Ok(());
    };
    if deletion.path.is_empty() && deletion.element.is_none() {
        documents.remove(index);
        return Ok(());
    }
    let missing = || PatchError::Missing { document: identity.to_string(), path: deletion.words() };
    let mut place = &mut documents[index];
    let depth = deletion.path.len() - usize::from(deletion.element.is_none());
    for step in &deletion.path[..depth] {
        place = place.get_mut(step).filter(|next| !next.is_null()).ok_or_else(missing)?;
    }
    let parent = &deletion.path[..depth];
    match &deletion.element {
        None => {
            let gone =
                place.as_object_mut().ok_or_else(missing)?.shift_remove(&deletion.path[depth]);
            // A field that Talos knows may be deleted though it is not set; a key of a map may not.
            if gone.is_none() && rules::is_map(&identity.kind, parent) {
                return Err(missing());
            }
            Ok(())
        }
        Some((key, text)) => {
            let list = place.as_array_mut().ok_or_else(missing)?;
            let found = list.iter().position(|element| element[key] == text.as_str());
            let typed = !rules::is_unstructured(&identity.kind, parent);
            list.remove(found.filter(|_| typed).ok_or_else(missing)?);
            Ok(())
        }
    }
}
