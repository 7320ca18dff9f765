//! Every text of a refused ensemble, and what a good one says.

use super::*;

struct Models(Vec<(&'static str, String)>);

impl Models {
    fn plan(&self, ensemble: &str) -> Result<EnsemblePlan, String> {
        let text = format!("name: \"e\" platform: \"ensemble\" {ensemble}");
        let ensemble = config::from_text(&text).unwrap();
        let find = |id: &ModelId, _version: i64| {
            let (name, text) = self.0.iter().find(|(known, _)| *known == id.name)?;
            let text = format!("name: \"{name}\" backend: \"b\" {text}");
            Some(Arc::new(config::from_text(&text).unwrap()))
        };
        EnsemblePlan::new(&ensemble, &find).map_err(|error| error.message)
    }
}

fn io(kind: &str, name: &str, data_type: &str, dims: &str) -> String {
    format!("{kind} {{ name: \"{name}\" data_type: TYPE_{data_type} dims: [{dims}] }} ")
}

fn step(model: &str, inputs: &[(&str, &str)], outputs: &[(&str, &str)]) -> String {
    let map = |kind: &str, pairs: &[(&str, &str)]| -> String {
        let entry = |(key, value): &(&str, &str)| {
            format!("{kind} {{ key: \"{key}\" value: \"{value}\" }} ")
        };
        pairs.iter().map(entry).collect()
    };
    let maps = map("input_map", inputs) + &map("output_map", outputs);
    format!("step {{ model_name: \"{model}\" model_version: -1 {maps} }} ")
}

fn ensemble(extra: &str, dims: &str, steps: &[String]) -> String {
    let ends = io("input", "A", "FP32", dims) + &io("output", "Z", "FP32", dims);
    format!("{extra} {ends} ensemble_scheduling {{ {} }}", steps.concat())
}

fn models() -> Models {
    let one = |dims: &str, extra: &str| {
        io("input", "IN", "FP32", dims) + &io("output", "OUT", "FP32", dims) + extra
    };
    let two = io("input", "IN", "FP32", "16") + &io("input", "MORE", "FP32", "16");
    let decoupled = "model_transaction_policy { decoupled: true }";
    Models(vec![
        ("m", one("16", "max_batch_size: 4")),
        ("plain", one("-1, 16", "")),
        ("wide", one("8, 8", "max_batch_size: 8")),
        ("two", two.clone() + &io("output", "OUT", "FP32", "16")),
        (
            "lax",
            two.replacen(
                "dims: [16] } input { name: \"MORE\"",
                "dims: [16] } input { optional: true name: \"MORE\"",
                1,
            ) + &io("output", "OUT", "FP32", "16"),
        ),
        ("whole", io("input", "IN", "FP32", "16") + &io("output", "OUT", "INT32", "16")),
        ("many", one("16", decoupled)),
    ])
}

#[test]
fn models_that_do_not_fit_are_refused_in_the_words_of_triton() {
    let chain = |model: &str| [step(model, &[("IN", "A")], &[("OUT", "Z")])];
    let cases: Vec<(String, &str)> = vec![
        (
            ensemble("", "16", &chain("none")),
            "ensemble e contains models that are not available or ambiguous: none",
        ),
        (
            ensemble("max_batch_size: 5", "16", &chain("m")),
            "ensemble e allows maximum batch size 5, but it contains model m which only allows maximum batch size to \
             be 4",
        ),
        (
            ensemble("", "16", &[step("m", &[("IN", "A"), ("NO", "A")], &[("OUT", "Z")])]),
            "in ensemble e, ensemble tensor A is mapping to non-existing input NO in model m",
        ),
        (
            ensemble("", "16", &chain("two")),
            "in ensemble e, input MORE in model two is not mapped to any ensemble tensors",
        ),
        (
            ensemble("", "16", &[step("m", &[("IN", "A")], &[("NO", "Z")])]),
            "in ensemble e, ensemble tensor Z is mapped from non-existing output NO in model m",
        ),
        (
            ensemble("", "16", &chain("whole")),
            "in ensemble e, ensemble tensor Z: inconsistent data type: TYPE_FP32 is inferred from model e while \
             TYPE_INT32 is inferred from model whole",
        ),
        (
            ensemble("max_batch_size: 2", "16", &chain("wide")),
            "in ensemble e, ensemble tensor A: inconsistent shape: [-1,16] is inferred from model e while [-1,8,8] is \
             inferred from model wide",
        ),
        (
            ensemble(
                "",
                "16",
                &[
                    step("many", &[("IN", "A")], &[("OUT", "B")]),
                    step("two", &[("IN", "A"), ("MORE", "B")], &[("OUT", "Z")]),
                ],
            ),
            "in ensemble e, step of model 'e' receives inputs originated from different decoupled models",
        ),
        (
            ensemble(
                "",
                "16",
                &[
                    step("many", &[("IN", "A")], &[("OUT", "B")]),
                    step("many", &[("IN", "A")], &[("OUT", "C")]),
                    step("two", &[("IN", "B"), ("MORE", "C")], &[("OUT", "D")]),
                    step("m", &[("IN", "D")], &[("OUT", "Z")]),
                ],
            ),
            "in ensemble e, step of model 'two' receives inputs originated from different decoupled models",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(models().plan(&text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn batching_and_plain_models_may_be_mixed() {
    let steps = [
        step("m", &[("IN", "A")], &[("OUT", "B")]),
        step("plain", &[("IN", "B")], &[("OUT", "Z")]),
    ];
    let plan = models().plan(&ensemble("max_batch_size: 4", "16", &steps)).unwrap();
    assert!(!plan.is_decoupled());
    let producer = plan.producer("Z").unwrap();
    assert_eq!((&*producer.model.name, producer.version, producer.output), ("plain", -1, "OUT"));
    assert!(plan.producer("B").is_none());
}

#[test]
fn optional_inputs_need_no_tensor_and_one_decoupled_model_makes_the_ensemble_decoupled() {
    let steps = [
        step("many", &[("IN", "A")], &[("OUT", "B")]),
        step("lax", &[("IN", "B")], &[("OUT", "Z")]),
    ];
    assert!(models().plan(&ensemble("", "16", &steps)).unwrap().is_decoupled());
}
