//! Health, metadata, configuration and statistics.

use galatea_serving::config;
use galatea_serving::statistics::{DurationStatistic, ModelStatistics};
use galatea_tensor::DataType;

use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};
use crate::json;

fn json_reply(body: Vec<u8>) -> EndpointReply {
    EndpointReply::Ready(HttpResponse::ok(ContentType::Json, body))
}

fn text_status(ok: bool) -> EndpointReply {
    let empty = HttpResponse::empty(ContentType::Text);
    EndpointReply::Ready(HttpResponse { status: if ok { 200 } else { 400 }, ..empty })
}

/// Answers whether the process is live.
pub(super) fn live(call: &CallContext<'_>) -> EndpointReply {
    text_status(call.app.core().is_live())
}

/// Answers whether every model that should serve is ready.
pub(super) fn ready(call: &CallContext<'_>) -> EndpointReply {
    text_status(call.app.core().is_ready())
}

/// The page of metrics, at a front end that has it beside other endpoints.
pub(super) fn metrics(call: &CallContext<'_>) -> EndpointReply {
    EndpointReply::Ready(HttpResponse::ok(ContentType::Metrics, call.app.metrics_page()))
}

/// Answers whether a model version is ready.
pub(super) fn model_ready(call: &CallContext<'_>) -> EndpointReply {
    EndpointReply::Ready(match call.app.core().model_ready(call.model, call.version) {
        Ok(true) => HttpResponse::empty(ContentType::Text),
        Ok(false) => HttpResponse::error(400, ContentType::Text, "Model version not ready"),
        Err(error) => HttpResponse::failure(ContentType::Text, &error),
    })
}

/// Name, version and extensions of the server.
pub(super) fn server_metadata(call: &CallContext<'_>) -> EndpointReply {
    let metadata = call.app.core().metadata();
    let mut out = b"{\"name\":".to_vec();
    json::write_str(&mut out, metadata.name.as_bytes());
    out.extend_from_slice(b",\"version\":");
    json::write_str(&mut out, metadata.version.as_bytes());
    out.extend_from_slice(b",\"extensions\":");
    json::write_array(&mut out, &metadata.extensions, |out, name| {
        json::write_str(out, name.as_bytes())
    });
    out.push(b'}');
    json_reply(out)
}

/// Versions, platform and tensors of a model.
pub(super) fn model_metadata(call: &CallContext<'_>) -> EndpointReply {
    let metadata = match call.app.core().resolve(call.model, call.version) {
        Ok(model) => model.metadata(),
        Err(error) => {
            return EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error));
        }
    };
    let mut out = b"{\"name\":".to_vec();
    json::write_str(&mut out, metadata.name.as_bytes());
    out.extend_from_slice(b",\"versions\":");
    json::write_array(&mut out, &metadata.versions, |out, name| {
        json::write_str(out, name.as_bytes())
    });
    out.extend_from_slice(b",\"platform\":");
    json::write_str(&mut out, metadata.platform.as_bytes());
    for (key, tensors) in [("inputs", &metadata.inputs), ("outputs", &metadata.outputs)] {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        json::write_array(&mut out, tensors, |out, tensor| {
            tensor_metadata(out, &tensor.name, tensor.datatype, &tensor.shape);
        });
    }
    out.push(b'}');
    json_reply(out)
}

fn tensor_metadata(out: &mut Vec<u8>, name: &str, datatype: DataType, shape: &[i64]) {
    out.extend_from_slice(b"{\"name\":");
    json::write_str(out, name.as_bytes());
    out.extend_from_slice(b",\"datatype\":\"");
    out.extend_from_slice(datatype.wire_name().as_bytes());
    out.extend_from_slice(b"\",\"shape\":");
    json::write_array(out, shape, |out, dim| json::write_i64(out, *dim));
    out.push(b'}');
}

/// The completed configuration of a model.
pub(super) fn model_config(call: &CallContext<'_>) -> EndpointReply {
    match call.app.core().resolve(call.model, call.version) {
        Ok(model) => json_reply(config::to_json(&model.config()).to_string().into_bytes()),
        Err(error) => EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error)),
    }
}

/// Counters of one model.
pub(super) fn model_statistics(call: &CallContext<'_>) -> EndpointReply {
    statistics(call, Some(call.model))
}

/// Counters of all models.
pub(super) fn all_statistics(call: &CallContext<'_>) -> EndpointReply {
    statistics(call, None)
}

fn statistics(call: &CallContext<'_>, model: Option<&str>) -> EndpointReply {
    match call.app.core().model_statistics(model, call.version) {
        Ok(models) => {
            let mut out = b"{\"model_stats\":".to_vec();
            json::write_array(&mut out, &models, write_statistics);
            out.push(b'}');
            json_reply(out)
        }
        Err(error) => EndpointReply::Ready(HttpResponse::failure(ContentType::Json, &error)),
    }
}

fn write_statistics(out: &mut Vec<u8>, stats: &ModelStatistics) {
    out.extend_from_slice(b"{\"name\":");
    json::write_str(out, stats.name.as_bytes());
    out.extend_from_slice(b",\"version\":");
    json::write_str(out, stats.version.as_bytes());
    for (key, value) in [
        ("last_inference", stats.last_inference_ms),
        ("inference_count", stats.inference_count),
        ("execution_count", stats.execution_count),
    ] {
        out.extend_from_slice(format!(",\"{key}\":{value}").as_bytes());
    }
    let infer = &stats.inference_stats;
    out.extend_from_slice(b",\"inference_stats\":");
    durations(
        out,
        &[
            ("success", infer.success),
            ("fail", infer.fail),
            ("queue", infer.queue),
            ("compute_input", infer.compute_input),
            ("compute_infer", infer.compute_infer),
            ("compute_output", infer.compute_output),
            ("cache_hit", infer.cache_hit),
            ("cache_miss", infer.cache_miss),
        ],
    );
    out.extend_from_slice(b"},\"response_stats\":{");
    for (position, (index, response)) in stats.response_stats.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        json::write_str(out, index.as_bytes());
        out.push(b':');
        durations(
            out,
            &[
                ("compute_infer", response.compute_infer),
                ("compute_output", response.compute_output),
                ("success", response.success),
                ("fail", response.fail),
                ("empty_response", response.empty_response),
                ("cancel", response.cancel),
            ],
        );
        out.push(b'}');
    }
    out.extend_from_slice(b"},\"batch_stats\":");
    json::write_array(out, &stats.batch_stats, |out, batch| {
        let first = [("compute_input", batch.compute_input)];
        let rest =
            [("compute_infer", batch.compute_infer), ("compute_output", batch.compute_output)];
        out.extend_from_slice(format!("{{\"batch_size\":{},", batch.batch_size).as_bytes());
        members(out, first.iter().chain(&rest));
        out.push(b'}');
    });
    out.extend_from_slice(b",\"memory_usage\":");
    json::write_array(out, &stats.memory_usage, |out, memory| {
        out.extend_from_slice(b"{\"type\":");
        json::write_str(out, memory.kind.as_bytes());
        out.extend_from_slice(
            format!(",\"id\":{},\"byte_size\":{}}}", memory.id, memory.byte_size).as_bytes(),
        );
    });
    out.push(b'}');
}

/// An object of durations, still open.
fn durations(out: &mut Vec<u8>, items: &[(&str, DurationStatistic)]) {
    out.push(b'{');
    members(out, items.iter());
}

fn members<'a>(out: &mut Vec<u8>, items: impl Iterator<Item = &'a (&'a str, DurationStatistic)>) {
    for (position, (key, duration)) in items.enumerate() {
        let comma = if position > 0 { "," } else { "" };
        let text =
            format!("{comma}\"{key}\":{{\"count\":{},\"ns\":{}}}", duration.count, duration.ns);
        out.extend_from_slice(text.as_bytes());
    }
}
