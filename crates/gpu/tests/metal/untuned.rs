//! Rows whose kernels leave nothing to a tuner, and why.

use std::collections::HashSet;

use galatea_gpu::KERNELS;

use crate::RowKey;

const QUADS: &str = "a thread a quad of the result, and quads share nothing";
const PAIRS: &str = "a thread a pair of elements, and pairs share nothing";

/// Names of rows, and reasons.
const UNTUNED: &[(&str, &str)] = &[
    ("block_gather", "a thread a block of a row that is copied"),
    ("elementwise", QUADS),
    ("move", QUADS),
    ("concat", QUADS),
    ("gather", QUADS),
    ("triangle", QUADS),
    ("one-hot", QUADS),
    ("pad", QUADS),
    ("scatter", QUADS),
    ("resize", QUADS),
    ("pool", QUADS),
    ("lrn", QUADS),
    ("known", "copies what was computed beforehand"),
    ("matmul-i8-tiled", "there is one tile"),
    ("conv-i8-tiled", "there is one tile"),
    ("dynamic-quantise", "rows of one length, of which each finds its range"),
    ("look-up", QUADS),
    ("scan", "a thread a lane, in order"),
    ("top-k", "rounds over pieces of one length, which fit into memory of a workgroup"),
    ("rotary", PAIRS),
    ("rotary_embedding", PAIRS),
    ("rotary_pair", PAIRS),
    ("rotary_embedding-contrib", PAIRS),
];

/// Returns violations of the rule: every row asks a tuner or is listed with a reason, and a listed row does not
/// ask.
pub(crate) fn wrong(asking: &HashSet<RowKey>) -> Vec<String> {
    let reason = |name: &str| UNTUNED.iter().find(|(own, _)| *own == name);
    let mut wrong = Vec::new();
    for row in KERNELS.rows() {
        let asks = asking.contains(&(row.name, row.domain, row.ops));
        match (asks, reason(row.name)) {
            (true, Some(_)) => wrong.push(format!("{} asks, and is listed as untuned", row.name)),
            (false, None) => wrong.push(format!("{} of {:?} does not ask", row.name, row.ops)),
            _ => {}
        }
    }
    let known = |name: &str| KERNELS.rows().any(|row| row.name == name);
    let gone = UNTUNED.iter().filter(|(name, _)| !known(name));
    wrong.extend(gone.map(|(name, _)| format!("there is no {name}")));
    wrong
}
