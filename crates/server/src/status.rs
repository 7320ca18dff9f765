//! The one place where codes of the core become statuses of the wire.

use galatea_serving::{Code, Error};

/// HTTP status of a code.
#[must_use]
pub fn http(code: Code) -> u16 {
    match code {
        Code::Unknown | Code::InvalidArg | Code::AlreadyExists | Code::Cancelled => 400,
        Code::Internal => 500,
        Code::NotFound => 404,
        Code::Unavailable => 503,
        Code::Unsupported => 501,
    }
}

/// gRPC code of a code.
#[must_use]
pub fn grpc(code: Code) -> tonic::Code {
    match code {
        Code::Unknown => tonic::Code::Unknown,
        Code::Internal => tonic::Code::Internal,
        Code::NotFound => tonic::Code::NotFound,
        Code::InvalidArg => tonic::Code::InvalidArgument,
        Code::Unavailable => tonic::Code::Unavailable,
        Code::Unsupported => tonic::Code::Unimplemented,
        Code::AlreadyExists => tonic::Code::AlreadyExists,
        Code::Cancelled => tonic::Code::Cancelled,
    }
}

/// gRPC status of an error.
#[must_use]
pub fn grpc_status(error: &Error) -> tonic::Status {
    tonic::Status::new(grpc(error.code), error.message.clone())
}

/// The words after an HTTP status code; 405 has Triton's, not the standard's.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Not Allowed",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_map_as_tritons_clients_expect() {
        for (code, status, name) in [
            (Code::Unknown, 400, tonic::Code::Unknown),
            (Code::Internal, 500, tonic::Code::Internal),
            (Code::NotFound, 404, tonic::Code::NotFound),
            (Code::InvalidArg, 400, tonic::Code::InvalidArgument),
            (Code::Unavailable, 503, tonic::Code::Unavailable),
            (Code::Unsupported, 501, tonic::Code::Unimplemented),
            (Code::AlreadyExists, 400, tonic::Code::AlreadyExists),
            (Code::Cancelled, 400, tonic::Code::Cancelled),
        ] {
            assert_eq!((http(code), grpc(code)), (status, name));
        }
    }
}
