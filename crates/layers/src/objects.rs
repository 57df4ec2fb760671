//! A few objects of our own making: how they stand, applied after the server has tried them out.

use castle_engine::{Context, Pace};
use castle_kubernetes::{KubeError, Kubernetes, Mark, Mode, Object, Survey};
use castle_model::{Change, Failure, Verdict};
use serde_json::{Value, json};

use crate::manifest::{change, refuse_foreign};

/// The objects with our mark.
pub(crate) fn marked(mark: &Mark, values: Vec<Value>) -> Result<Vec<Object>, Failure> {
    values
        .into_iter()
        .map(|value| {
            let mut object =
                Object::new(value).map_err(|why| Failure::bug("make an object", why))?;
            mark.put_on(&mut object);
            Ok(object)
        })
        .collect()
}

/// Applies what is missing or differs, each object only after a dry run of the very object was accepted: that goes
/// the whole way through the API server to its webhooks, which no look at pods or endpoints does.
pub(crate) async fn apply_tried(
    cx: &Context,
    client: &Kubernetes,
    mark: &Mark,
    wanted: &[Object],
) -> Result<Change, Failure> {
    let survey = client.survey(mark, wanted).await?;
    refuse_foreign(&survey)?;
    let lacking: Vec<&Object> = wanted.iter().filter(|o| is_lacking(&survey, o)).collect();
    for object in lacking {
        let what = format!("a dry run of {} to be accepted", object.id());
        cx.wait(Pace::GATE, &what, || async move {
            match client.apply(object, Mode::DryRun).await {
                Ok(_) => Ok(Verdict::Ready(())),
                Err(error @ KubeError::NoSuchKind { .. }) => {
                    Ok(Verdict::Waiting(error.to_string()))
                }
                Err(error) => Err(error.into()),
            }
        })
        .await?;
        client.apply(object, Mode::Real).await?;
    }
    Ok(change(&survey))
}

fn is_lacking(survey: &Survey, object: &Object) -> bool {
    survey.absent.iter().chain(&survey.differing).any(|id| *id == object.id())
}

/// A note in the cluster that a probe has gone through, so that it is not made again on a castle that stands.
pub(crate) fn proof(namespace: &str, name: &str, words: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("castle-proof-{name}"), "namespace": namespace},
        "data": {"proven": words},
    })
}
