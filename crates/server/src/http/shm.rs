//! Registration of shared memory.

use galatea_serving::Error;

use super::decode::json_error;
use super::handlers::list;
use super::message::{ContentType, Response};
use super::rows::{Call, Reply};
use crate::json::{self, Document, Kind, Value};
use crate::shm;

const NO_STRING: &str = "attempt to access JSON non-string as string";
const NO_UNSIGNED: &str = "attempt to access JSON non-unsigned-integer as unsigned-integer";

fn done(result: Result<(), Error>) -> Reply {
    Reply::Now(match result {
        Ok(()) => Response::empty(ContentType::Json),
        Err(error) => Response::failure(ContentType::Json, &error),
    })
}

fn named<'a>(call: &Call<'a>) -> Option<&'a str> {
    Some(call.model).filter(|name| !name.is_empty())
}

/// Regions by name.
pub(super) fn status(call: &Call<'_>) -> Reply {
    let regions = match call.app.shared_memory().status(named(call)) {
        Ok(regions) => regions,
        Err(error) => return Reply::Now(Response::failure(ContentType::Json, &error)),
    };
    let mut out = Vec::new();
    list(&mut out, &regions, |out, region| {
        out.extend_from_slice(b"{\"name\":");
        json::write_str(out, region.name.as_bytes());
        out.extend_from_slice(b",\"key\":");
        json::write_str(out, region.key.as_bytes());
        let (offset, size) = (region.offset, region.byte_size);
        out.extend_from_slice(format!(",\"offset\":{offset},\"byte_size\":{size}}}").as_bytes());
    });
    Reply::Now(Response::ok(ContentType::Json, out))
}

/// Makes a region known under a name.
pub(super) fn register(call: &Call<'_>) -> Reply {
    done(read_registration(call).and_then(|(key, offset, byte_size)| {
        call.app.shared_memory().register(call.model, &key, offset, byte_size)
    }))
}

fn read_registration(call: &Call<'_>) -> Result<(String, u64, u64), Error> {
    if named(call).is_none() {
        return Err(Error::invalid_arg(
            "'region name' is necessary to register system shared memory region",
        ));
    }
    let document = Document::parse(&call.body).map_err(json_error)?;
    let root = document.root();
    let missing = |field: &str| {
        Error::invalid_arg(format!("Shared memory register request has no '{field}' field"))
    };
    let key = root.member("key").ok_or_else(|| missing("key"))?;
    let Kind::String(key) = key.kind() else { return Err(Error::internal(NO_STRING)) };
    let offset = root.member("offset").map_or(Ok(0), natural)?;
    let byte_size = natural(root.member("byte_size").ok_or_else(|| missing("byte_size"))?)?;
    Ok((String::from_utf8_lossy(key).into_owned(), offset, byte_size))
}

fn natural(value: Value<'_>) -> Result<u64, Error> {
    match value.kind() {
        Kind::Natural(value) => Ok(value),
        _ => Err(Error::internal(NO_UNSIGNED)),
    }
}

/// Forgets a region, or all of them.
pub(super) fn unregister(call: &Call<'_>) -> Reply {
    done(call.app.shared_memory().unregister(named(call)))
}

/// There is no memory of CUDA devices.
pub(super) fn cuda_status(call: &Call<'_>) -> Reply {
    match named(call) {
        None => Reply::Now(Response::ok(ContentType::Json, &b"[]"[..])),
        Some(name) => done(Err(shm::no_cuda_region(name))),
    }
}

/// There is no memory of CUDA devices.
pub(super) fn cuda_register(call: &Call<'_>) -> Reply {
    done(Err(match named(call) {
        None => {
            Error::invalid_arg("'region name' is necessary to register cuda shared memory region")
        }
        Some(name) => shm::no_cuda(name),
    }))
}

/// There is no memory of CUDA devices; nothing to forget.
pub(super) fn cuda_unregister(_: &Call<'_>) -> Reply {
    done(Ok(()))
}
