//! Every ONNX backend node case on the reference evaluation of the operators.

use galatea_graph::evaluate;
use galatea_testkit::conformance::{TestedProvider, run};
use galatea_testkit::expectations::REFERENCE;

fn main() {
    let reference = TestedProvider {
        name: "reference",
        expectations: REFERENCE,
        run: Box::new(|graph, inputs| {
            evaluate::run_values(graph, inputs).map_err(|error| error.to_string())
        }),
        claims: None,
    };
    run(vec![reference]).exit();
}
