//! Small models as PyTorch's exporters write them: rewriting changes how something is computed,
//! never what, and leaves as few nodes as it should. `python/export_models.py --tiny` makes them.

use galatea_graph::evaluate;
use galatea_graph::rewrite::{RewriteLevel, optimise};
use galatea_providers::by_name;
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::exported::{file, inputs};

/// A model, how many nodes rewriting leaves at most, and how many of some operators exactly.
struct Export {
    name: &'static str,
    nodes: usize,
    operators: &'static [(&'static str, usize)],
}

const EXPORTS: &[Export] = &[
    Export {
        name: "bert-base",
        nodes: 58,
        operators: &[
            ("Attention", 2),
            ("LayerNormalization", 5),
            ("FusedMatMul", 12),
            ("Softmax", 0),
        ],
    },
    Export {
        name: "bert-base.dynamo",
        nodes: 56,
        operators: &[
            ("Attention", 2),
            ("LayerNormalization", 5),
            ("FusedMatMul", 12),
            ("Softmax", 0),
        ],
    },
    Export {
        name: "vit",
        nodes: 40,
        operators: &[
            ("Attention", 2),
            ("LayerNormalization", 5),
            ("FusedMatMul", 13),
            ("Softmax", 0),
        ],
    },
    Export {
        name: "vit.dynamo",
        nodes: 40,
        operators: &[
            ("Attention", 2),
            ("LayerNormalization", 5),
            ("FusedMatMul", 13),
            ("Softmax", 0),
        ],
    },
    Export {
        name: "t5-encoder",
        nodes: 75,
        operators: &[("Attention", 2), ("RMSNormalization", 5), ("FusedMatMul", 14), ("Mul", 2)],
    },
    Export {
        name: "t5-decoder",
        nodes: 107,
        operators: &[("Attention", 4), ("RMSNormalization", 7), ("FusedMatMul", 23)],
    },
    Export {
        name: "gpt2",
        nodes: 70,
        operators: &[
            ("Attention", 2),
            ("LayerNormalization", 5),
            ("FusedMatMul", 9),
            ("Softmax", 0),
        ],
    },
    Export {
        name: "gpt2.dynamo",
        nodes: 70,
        operators: &[
            ("Attention", 2),
            ("LayerNormalization", 5),
            ("FusedMatMul", 9),
            ("Softmax", 0),
        ],
    },
    Export {
        name: "llama",
        nodes: 82,
        operators: &[
            ("Attention", 2),
            ("Rotary", 4),
            ("RMSNormalization", 5),
            ("FusedMatMul", 15),
            ("Expand", 0),
        ],
    },
    Export {
        name: "llama.dynamo",
        nodes: 78,
        operators: &[
            ("Attention", 2),
            ("Rotary", 4),
            ("RMSNormalization", 5),
            ("FusedMatMul", 15),
            ("Expand", 2),
        ],
    },
    Export {
        name: "conformer",
        nodes: 96,
        operators: &[("Attention", 2), ("Rotary", 2), ("LayerNormalization", 12)],
    },
    Export {
        name: "conformer.dynamo",
        nodes: 134,
        operators: &[("Attention", 2), ("Rotary", 0), ("LayerNormalization", 12)],
    },
    Export { name: "yolo", nodes: 112, operators: &[("FusedConv", 26)] },
    Export { name: "yolo.dynamo", nodes: 114, operators: &[("FusedConv", 26)] },
    Export { name: "boosted-trees", nodes: 3, operators: &[("TreeEnsembleClassifier", 1)] },
];

/// Numbers are close against the largest one of the result; anything else is equal.
fn assert_close(found: &[Tensor], expected: &[Tensor], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.shape(), expected.shape(), "{what}: output {at}");
        if expected.dtype() != DataType::Fp32 {
            assert_eq!(found, expected, "{what}: output {at}");
            continue;
        }
        let (found, expected) = (found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
        let largest = expected.iter().fold(1e-20_f32, |most, x| most.max(x.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            let distance = (found - expected).abs() / largest;
            assert!(distance < 2e-5, "{what}: output {at} has {found}, expected {expected}");
        }
    }
}

#[test]
fn exports_are_rewritten_and_compute_the_same() {
    let mut wrong = Vec::new();
    for export in EXPORTS {
        let mut graph = galatea_formats::onnx::load(&file(export.name)).unwrap();
        graph.sort().unwrap();
        let inputs = inputs(&graph);
        let expected = evaluate::run(&graph, &inputs).unwrap();
        for level in [RewriteLevel::O1, RewriteLevel::O2, RewriteLevel::O3] {
            let mut rewritten = graph.clone();
            optimise(&mut rewritten, level).unwrap();
            rewritten.sort().unwrap();
            let found = evaluate::run(&rewritten, &inputs).unwrap();
            assert_close(&found, &expected, &format!("{} at {level}", export.name));
            if level == RewriteLevel::O3 {
                let count = |op: &str| rewritten.nodes.iter().filter(|n| n.op_type == op).count();
                let operators: Vec<_> =
                    export.operators.iter().map(|&(op, _)| (op, count(op))).collect();
                let nodes = rewritten.nodes.len();
                if nodes > export.nodes || operators != export.operators {
                    wrong.push(format!("{}: {nodes} nodes, {operators:?}", export.name));
                }
            }
        }
        let names = graph.inputs.iter().map(|&id| graph.value(id).name.clone());
        let named: Vec<(String, Tensor)> = names.zip(inputs).collect();
        let named: Vec<(&str, Tensor)> =
            named.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let options = SessionOptions { threads: 2, ..SessionOptions::default() };
        let session = Session::new(graph, &[by_name("cpu").unwrap()], &options).unwrap();
        let found = session.run_tensors(Run::named(&named)).unwrap();
        assert_close(&found, &expected, &format!("{} on the CPU", export.name));
    }
    assert!(wrong.is_empty(), "rewriting left other nodes:\n{}", wrong.join("\n"));
}
