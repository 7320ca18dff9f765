//! Forms of an inference at the endpoints: the length of a body's JSON part, and whether bodies are
//! compressed.

use galatea_serving::ServingError;

use super::message::{ContentType, HttpHead, HttpResponse};

/// Mark before the length of the JSON part in the content types of the clouds.
pub(super) const LENGTH_MARK: &str = ";json-header-size=";

const SAGEMAKER: &str = "application/vnd.sagemaker-triton.binary+json;json-header-size=";
const VERTEX_AI: &str = "application/vnd.vertex-ai-triton.binary+json;json-header-size=";

/// Form of inferences at an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InferDialect {
    /// KServe v2: a header gives the length of the JSON part.
    #[default]
    Kserve,
    /// The content type gives the length, of requests and answers. Nothing is compressed.
    SageMaker,
    /// The content type of requests gives the length, a header that of answers. Nothing is compressed.
    VertexAi,
}

impl InferDialect {
    /// Returns whether bodies may be compressed.
    pub(super) fn compresses(self) -> bool {
        self == Self::Kserve
    }

    /// Returns the length of a request's JSON part.
    ///
    /// # Errors
    /// Fails when the header gives a length beyond that of the body.
    pub(super) fn json_length(
        self,
        head: &HttpHead,
        body_bytes: usize,
    ) -> Result<usize, ServingError> {
        let prefix = match self {
            Self::Kserve => {
                let header = head.header("inference-header-content-length");
                return header_length(header, body_bytes);
            }
            Self::SageMaker => SAGEMAKER,
            Self::VertexAi => VERTEX_AI,
        };
        match head.header("content-type") {
            Some(text) => length_in(text, prefix, body_bytes),
            None => Ok(body_bytes),
        }
    }

    /// Says in an answer where its JSON ends, as the clients of this front end expect it.
    pub(super) fn apply_headers(self, mut response: HttpResponse) -> HttpResponse {
        if self == Self::SageMaker && response.content_type == ContentType::Binary {
            let json_bytes = response.body.first().map_or(0, bytes::Bytes::len);
            response.content_type = ContentType::Sized(SAGEMAKER, json_bytes);
            response.headers.clear();
        }
        response
    }
}

/// Returns the length of a body's JSON part: the whole body if no header gives it.
///
/// A header without digits gives 0, which makes the body one raw tensor.
///
/// # Errors
/// Fails when the length exceeds that of the body, or is negative.
fn header_length(header: Option<&str>, body_bytes: usize) -> Result<usize, ServingError> {
    match header {
        Some(text) => c_length(text, body_bytes),
        None => Ok(body_bytes),
    }
}

/// Reads a length as C does: what follows the digits is ignored, and no digits are 0.
fn c_length(text: &str, body_bytes: usize) -> Result<usize, ServingError> {
    let trimmed = text.trim_start();
    let (negative, rest) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let end = rest.bytes().take_while(u8::is_ascii_digit).count();
    let digits = rest.get(..end).unwrap_or("");
    let length = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(usize::MAX) };
    if length > body_bytes || (negative && length > 0) {
        return Err(ServingError::invalid_arg(format!(
            "inference header size should be in range (0, {body_bytes}), got: {text}"
        )));
    }
    Ok(length)
}

/// The length behind the prefix of a content type; another content type is that of a body of JSON alone.
fn length_in(text: &str, prefix: &str, body_bytes: usize) -> Result<usize, ServingError> {
    let rest = match text.find(prefix) {
        None => return Ok(body_bytes),
        Some(0) => text.get(prefix.len()..).unwrap_or(""),
        Some(_) => {
            return Err(ServingError::invalid_arg(format!(
                "expect MIME type for binary data starts with '{prefix}', got: {text}"
            )));
        }
    };
    c_length(rest, body_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_header_is_read_as_c_reads_numbers() {
        assert_eq!(header_length(None, 7).unwrap(), 7);
        assert_eq!(header_length(Some("12abc"), 20).unwrap(), 12);
        assert_eq!(header_length(Some("1.5"), 20).unwrap(), 1);
        for without_digits in ["0", "-0", "abc", "", " ", "+", "x12"] {
            assert_eq!(header_length(Some(without_digits), 20).unwrap(), 0, "{without_digits:?}");
        }
        for text in ["-1", "21", "99999999999999999999", "-99999999999999999999 "] {
            let message = format!("inference header size should be in range (0, 20), got: {text}");
            assert_eq!(header_length(Some(text), 20).unwrap_err().message, message);
        }
    }

    #[test]
    fn the_content_type_says_where_the_json_ends() {
        let length = |text: &str| length_in(text, SAGEMAKER, 100).map_err(|error| error.message);
        assert_eq!(length("application/json"), Ok(100));
        assert_eq!(length(&format!("{SAGEMAKER}42")), Ok(42));
        assert_eq!(length(&format!("{SAGEMAKER} 42; more")), Ok(42));
        assert_eq!(length(SAGEMAKER), Ok(0));
        assert_eq!(length(&format!("{VERTEX_AI}42")), Ok(100));
        let outside = "inference header size should be in range (0, 100), got: ";
        for wrong in ["101", "-1", "99999999999999999999999"] {
            assert_eq!(length(&format!("{SAGEMAKER}{wrong}")), Err(format!("{outside}{wrong}")));
        }
        let late = length(&format!("text/plain, {SAGEMAKER}1")).unwrap_err();
        assert!(late.starts_with("expect MIME type for binary data starts with"), "{late}");
    }

    #[test]
    fn only_binary_answers_to_sagemaker_have_the_length_in_their_content_type() {
        let answer = || {
            let mut answer = HttpResponse::ok(ContentType::Binary, &b"{}"[..]);
            answer.body.push(bytes::Bytes::from_static(b"1234"));
            answer.with_header("Inference-Header-Content-Length", "2")
        };
        let dressed = InferDialect::SageMaker.apply_headers(answer());
        let mut name = Vec::new();
        dressed.content_type.write(&mut name);
        assert_eq!(name, format!("{SAGEMAKER}2").as_bytes());
        assert!(dressed.headers.is_empty());
        for other in [InferDialect::Kserve, InferDialect::VertexAi] {
            let dressed = other.apply_headers(answer());
            assert_eq!((dressed.content_type, dressed.headers.len()), (ContentType::Binary, 1));
        }
        let text =
            InferDialect::SageMaker.apply_headers(HttpResponse::ok(ContentType::Json, &b"{}"[..]));
        assert_eq!(text.content_type, ContentType::Json);
    }
}
