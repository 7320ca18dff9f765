//! Front ends of the server, so that programs find its metrics by its HTTP front end. The run of the program is named on both.

use serde_json::json;

use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::app::MetricsPlace;

/// Tells where the page of metrics is; null where there is none.
pub(super) fn show(call: &CallContext<'_>) -> EndpointReply {
    let metrics = call.app.metrics_place().map(|place| match place {
        MetricsPlace::Port { address, tls } => {
            json!({"address": address.ip().to_string(), "port": address.port(), "tls": tls})
        }
        MetricsPlace::Socket { path, tls } => json!({"socket": path, "tls": tls}),
    });
    let body =
        json!({ "instance": call.app.instance(), "metrics": metrics }).to_string().into_bytes();
    EndpointReply::Ready(HttpResponse::ok(ContentType::Json, body))
}
