//! Registration of shared memory.

use galatea_serving::ServingError;

use super::decode::json_document;
use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::json::{self, JsonKind, JsonValue};
use crate::shm;

const NO_STRING: &str = "attempt to access JSON non-string as string";
const NO_UNSIGNED: &str = "attempt to access JSON non-unsigned-integer as unsigned-integer";

fn done(result: Result<(), ServingError>) -> EndpointReply {
    EndpointReply::Ready(match result {
        Ok(()) => HttpResponse::empty(ContentType::Json),
        Err(error) => HttpResponse::failure(ContentType::Json, &error),
    })
}

fn named<'a>(call: &CallContext<'a>) -> Option<&'a str> {
    Some(call.model).filter(|name| !name.is_empty())
}

/// Regions by name.
pub(super) fn status(call: &CallContext<'_>) -> EndpointReply {
    let regions = match call.app.shared_memory().status(named(call)) {
        Ok(regions) => regions,
        Err(error) => {
            return EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error));
        }
    };
    let mut out = Vec::new();
    json::write_array(&mut out, &regions, |out, region| {
        out.extend_from_slice(b"{\"name\":");
        json::write_str(out, region.name.as_bytes());
        out.extend_from_slice(b",\"key\":");
        json::write_str(out, region.key.as_bytes());
        let offset = region.offset;
        let size = region.byte_size;
        out.extend_from_slice(format!(",\"offset\":{offset},\"byte_size\":{size}}}").as_bytes());
    });
    EndpointReply::Ready(HttpResponse::ok(ContentType::Json, out))
}

/// Makes a region known under a name.
pub(super) fn register(call: &CallContext<'_>) -> EndpointReply {
    done(read_registration(call).and_then(|(key, offset, byte_size)| {
        call.app.shared_memory().register(call.model, &key, offset, byte_size)
    }))
}

fn read_registration(call: &CallContext<'_>) -> Result<(String, u64, u64), ServingError> {
    if named(call).is_none() {
        return Err(ServingError::invalid_arg(
            "'region name' is necessary to register system shared memory region",
        ));
    }
    let document = json_document(&call.body, call.app.limits())?;
    let root = document.root();
    let missing = |field: &str| {
        ServingError::invalid_arg(format!("Shared memory register request has no '{field}' field"))
    };
    let key = root.member("key").ok_or_else(|| missing("key"))?;
    let JsonKind::String(key) = key.kind() else { return Err(ServingError::internal(NO_STRING)) };
    let offset = root.member("offset").map_or(Ok(0), natural)?;
    let byte_size = natural(root.member("byte_size").ok_or_else(|| missing("byte_size"))?)?;
    Ok((String::from_utf8_lossy(key).into_owned(), offset, byte_size))
}

fn natural(value: JsonValue<'_>) -> Result<u64, ServingError> {
    match value.kind() {
        JsonKind::Natural(value) => Ok(value),
        _ => Err(ServingError::internal(NO_UNSIGNED)),
    }
}

/// Forgets a region, or all of them.
pub(super) fn unregister(call: &CallContext<'_>) -> EndpointReply {
    done(call.app.shared_memory().unregister(named(call)))
}

/// There is no memory of CUDA devices.
pub(super) fn cuda_status(call: &CallContext<'_>) -> EndpointReply {
    match named(call) {
        None => EndpointReply::Ready(HttpResponse::ok(ContentType::Json, &b"[]"[..])),
        Some(name) => done(Err(shm::no_cuda_region(name))),
    }
}

/// There is no memory of CUDA devices.
pub(super) fn cuda_register(call: &CallContext<'_>) -> EndpointReply {
    done(Err(match named(call) {
        None => ServingError::invalid_arg(
            "'region name' is necessary to register cuda shared memory region",
        ),
        Some(name) => shm::no_cuda(name),
    }))
}

/// There is no memory of CUDA devices; nothing to forget.
pub(super) fn cuda_unregister(_: &CallContext<'_>) -> EndpointReply {
    done(Ok(()))
}
