//! The index of the repositories, load and unload.

use galatea_serving::Error;
use galatea_serving::core::{Dependents, LoadOverrides};

use super::handlers::list;
use super::message::{ContentType, Response};
use super::rows::{Call, Reply};
use crate::json::{self, Document, Kind};

/// Models of the repositories with their states; the body may hold `{"ready": true}`.
pub(super) fn index(call: &Call<'_>) -> Reply {
    let ready = match wants_ready(&call.body) {
        Ok(ready) => ready,
        Err(error) => return Reply::Now(Response::failure(ContentType::Json, &error)),
    };
    let models = call.app.core().repository_index(ready);
    let mut out = Vec::new();
    list(&mut out, &models, |out, model| {
        out.extend_from_slice(b"{\"name\":");
        json::write_str(out, model.name.as_bytes());
        let state = model.state.map(|state| state.name().to_owned());
        let rest = [
            (&b",\"version\":"[..], &model.version),
            (b",\"state\":", &state),
            (b",\"reason\":", &model.reason),
        ];
        for (key, value) in rest {
            if let Some(value) = value {
                out.extend_from_slice(key);
                json::write_str(out, value.as_bytes());
            }
        }
        out.push(b'}');
    });
    Reply::Now(Response::ok(ContentType::Json, out))
}

fn wants_ready(body: &[u8]) -> Result<bool, Error> {
    if body.is_empty() {
        return Ok(false);
    }
    let document = Document::parse(body).map_err(super::decode::json_error)?;
    match document.root().member("ready").map(json::Value::kind) {
        None => Ok(false),
        Some(Kind::Bool(ready)) => Ok(ready),
        Some(_) => Err(Error::invalid_arg("Invalid value for 'ready': expected a boolean")),
    }
}

/// Loads a model, or loads it anew.
pub(super) fn load(call: &Call<'_>) -> Reply {
    change(call, |call| call.app.core().load_model(call.model, LoadOverrides::default()))
}

/// Takes a model out of service.
pub(super) fn unload(call: &Call<'_>) -> Reply {
    change(call, |call| call.app.core().unload_model(call.model, Dependents::Keep))
}

fn change(call: &Call<'_>, act: impl Fn(&Call<'_>) -> Result<(), Error>) -> Reply {
    let done = if call.in_repository {
        Err(Error::unsupported("'repository_name' specification is not supported"))
    } else if call.body.is_empty() {
        act(call)
    } else {
        Document::parse(&call.body).map_err(super::decode::json_error).and_then(|_| act(call))
    };
    Reply::Now(match done {
        Ok(()) => Response::empty(ContentType::Json),
        Err(error) => Response::failure(ContentType::Json, &error),
    })
}
