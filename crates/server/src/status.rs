//! The one place where codes of the core become statuses of the wire.

use galatea_serving::{ErrorCode, ServingError, text_beginning};

/// Longest message of a gRPC status, in bytes.
const MAX_MESSAGE_BYTES: usize = 2048;

/// Text of the status of a gRPC call that a stop of the server ends or refuses.
pub(crate) const SHUTTING_DOWN: &str =
    "GRPC server is shutting down and has stopped accepting new requests.";

/// HTTP status of a code.
#[must_use]
pub fn http(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::Unknown
        | ErrorCode::InvalidArg
        | ErrorCode::AlreadyExists
        | ErrorCode::Cancelled => 400,
        ErrorCode::Internal => 500,
        ErrorCode::NotFound => 404,
        ErrorCode::Unavailable => 503,
        ErrorCode::Unsupported => 501,
    }
}

/// gRPC code of a code.
#[must_use]
pub fn grpc(code: ErrorCode) -> tonic::Code {
    match code {
        ErrorCode::Unknown => tonic::Code::Unknown,
        ErrorCode::Internal => tonic::Code::Internal,
        ErrorCode::NotFound => tonic::Code::NotFound,
        ErrorCode::InvalidArg => tonic::Code::InvalidArgument,
        ErrorCode::Unavailable => tonic::Code::Unavailable,
        ErrorCode::Unsupported => tonic::Code::Unimplemented,
        ErrorCode::AlreadyExists => tonic::Code::AlreadyExists,
        ErrorCode::Cancelled => tonic::Code::Cancelled,
    }
}

/// gRPC status of an error.
#[must_use]
pub fn grpc_status(error: &ServingError) -> tonic::Status {
    tonic::Status::new(grpc(error.code), shortened(&error.message))
}

/// The beginning of a text, with as many bytes as a header may have that clients take: they refuse heads of more than
/// 8 KiB, and a letter may be written by three times its bytes.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_MESSAGE_BYTES {
        return text.to_owned();
    }
    format!("{}…", text_beginning(text, MAX_MESSAGE_BYTES))
}

/// The words after an HTTP status code; 405 has Triton's, not the standard's.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Not Allowed",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_statuses_fit_the_heads_that_clients_take() {
        let text = "\u{20ac}".repeat(3000);
        let status = grpc_status(&ServingError::invalid_arg(text));
        assert!(status.message().ends_with('…') && status.message().len() < 2060);
        assert_eq!(grpc_status(&ServingError::invalid_arg("short")).message(), "short");
    }

    #[test]
    fn codes_map_as_tritons_clients_expect() {
        for (code, status, name) in [
            (ErrorCode::Unknown, 400, tonic::Code::Unknown),
            (ErrorCode::Internal, 500, tonic::Code::Internal),
            (ErrorCode::NotFound, 404, tonic::Code::NotFound),
            (ErrorCode::InvalidArg, 400, tonic::Code::InvalidArgument),
            (ErrorCode::Unavailable, 503, tonic::Code::Unavailable),
            (ErrorCode::Unsupported, 501, tonic::Code::Unimplemented),
            (ErrorCode::AlreadyExists, 400, tonic::Code::AlreadyExists),
            (ErrorCode::Cancelled, 400, tonic::Code::Cancelled),
        ] {
            assert_eq!((http(code), grpc(code)), (status, name));
        }
    }
}
