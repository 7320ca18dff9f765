//! `GRU` and `RNN` on their kernels, beside the reference.

use galatea_graph::AttributeValue;

use crate::support::{Maker, assert_kernel, floats};

/// A layer to be tried.
struct LayerCase<'a> {
    op: &'a str,
    gates: usize,
    attributes: &'a [(&'a str, AttributeValue)],
    directions: usize,
    has_bias: bool,
    has_state: bool,
}

fn check(case: &LayerCase<'_>, [steps, batch, input, hidden]: [usize; 4], kernel: &str) {
    let LayerCase { op, gates, attributes, directions, .. } = *case;
    let mut maker = Maker::new();
    let x = maker.input("x", floats(&[steps, batch, input], 1));
    let w = maker.constant(floats(&[directions, gates * hidden, input], 2));
    let r = maker.constant(floats(&[directions, gates * hidden, hidden], 3));
    let b = match case.has_bias {
        true => maker.constant(floats(&[directions, 2 * gates * hidden], 4)),
        false => None,
    };
    let h = match case.has_state {
        true => maker.input("h", floats(&[directions, batch, hidden], 5)),
        false => None,
    };
    let mut all = vec![("hidden_size", AttributeValue::Int(hidden as i64))];
    all.extend(attributes.iter().cloned());
    let outputs = maker.node(op, &all, &[x, w, r, b, None, h], 2);
    // The states of all steps carry the roundings of those before.
    let rows = maker.check_within(&outputs, 2e-5 * (steps * hidden) as f64);
    assert_kernel(&rows, kernel);
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::String(value.into())
}

const SIZES: &[[usize; 4]] = &[[5, 1, 3, 4], [4, 3, 7, 19], [3, 2, 16, 33]];

#[test]
fn gated_units_run_on_their_kernel() {
    for &sizes in SIZES {
        for (direction, directions) in [("forward", 1), ("reverse", 1), ("bidirectional", 2)] {
            for behind in [0, 1] {
                let attributes = [
                    ("direction", text(direction)),
                    ("linear_before_reset", AttributeValue::Int(behind)),
                ];
                for (has_bias, has_state) in [(true, false), (false, true), (true, true)] {
                    let attributes = &attributes;
                    let case = LayerCase {
                        op: "GRU",
                        gates: 3,
                        attributes,
                        directions,
                        has_bias,
                        has_state,
                    };
                    check(&case, sizes, "gru-f32-packed");
                }
            }
        }
    }
}

#[test]
fn simple_networks_run_on_their_kernel() {
    for &sizes in SIZES {
        for function in ["Tanh", "Relu"] {
            let functions = AttributeValue::Strings(vec![function.into(), function.into()]);
            let attributes = [("direction", text("bidirectional")), ("activations", functions)];
            for (has_bias, has_state) in [(true, false), (false, true)] {
                let (attributes, directions) = (&attributes[..], 2);
                let case =
                    LayerCase { op: "RNN", gates: 1, attributes, directions, has_bias, has_state };
                check(&case, sizes, "rnn-f32-packed");
            }
            let case = LayerCase {
                op: "RNN",
                gates: 1,
                attributes: &[],
                directions: 1,
                has_bias: true,
                has_state: true,
            };
            check(&case, sizes, "rnn-f32-packed");
        }
    }
}
