//! Inputs for a model that nobody gave inputs for.

use clap::Args;
use galatea_graph::Dim;
use galatea_runtime::{IoInfo, Session};
use galatea_serving::made_values::{MadeNoise, values};
use galatea_tensor::{OrderedMap, OrderedSet, Tensor};

/// Length of an axis along a sequence where nothing says it.
const SEQUENCE: usize = 128;
/// Words that name an axis along a sequence.
const SEQUENCE_WORDS: &[&str] = &["seq", "len", "token", "time", "word", "position", "frame"];
/// The word that names the batch axis.
const BATCH_WORD: &str = "batch";

/// The option for shapes of inputs.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ShapeChoices {
    #[arg(
        long,
        value_name = "NAME=D,D…",
        value_parser = parse_shape,
        help = "shape of an input; repeatable"
    )]
    shape: Vec<GivenShape>,
}

/// A shape that is given for an input.
#[derive(Debug, Clone)]
struct GivenShape {
    input: String,
    shape: Vec<usize>,
}

impl ShapeChoices {
    /// Returns the shapes by the names of their inputs.
    pub(super) fn by_input(&self) -> OrderedMap<String, Vec<usize>> {
        self.shape.iter().map(|one| (one.input.clone(), one.shape.clone())).collect()
    }
}

fn parse_shape(text: &str) -> Result<GivenShape, String> {
    let wrong = || format!("expects NAME=D,D…, got '{text}'");
    let (name, dims) = text.rsplit_once('=').ok_or_else(wrong)?;
    let dims: Result<Vec<usize>, _> =
        dims.split(',').filter(|dim| !dim.is_empty()).map(|dim| dim.trim().parse()).collect();
    Ok(GivenShape { input: name.to_owned(), shape: dims.map_err(|_| wrong())? })
}

/// Lengths of axes that have none of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FreeLengths {
    /// Length of the batch axis.
    pub(super) batch: usize,
    /// Length of axes along a sequence; a likely one if not given.
    pub(super) sequence: Option<usize>,
}

/// Inputs that were made.
#[derive(Debug)]
pub(super) struct MadeInputs {
    /// By name.
    pub(super) inputs: Vec<(String, Tensor)>,
    /// True if an axis got [`FreeLengths::batch`].
    pub(super) by_batch: bool,
}

/// Kind of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AxisMeaning {
    Batch,
    Sequence,
}

/// Makes an input for everything that a run must be given.
///
/// # Errors
/// Fails when an axis has no length and none can be guessed, or a shape names no input. Also fails when a
/// sequence length was given and no axis is along a sequence.
/// of sequences was given and there is no axis for it.
pub(super) fn inputs(
    session: &Session,
    lengths: FreeLengths,
    shapes: &OrderedMap<String, Vec<usize>>,
) -> Result<MadeInputs, String> {
    seeded_inputs(session.inputs(), lengths, shapes, 0)
}

/// Makes inputs like [`inputs`] for the given ports of a model; each seed gives other values.
///
/// # Errors
/// Fails as [`inputs`] does.
pub(super) fn seeded_inputs(
    wanted: &[IoInfo],
    lengths: FreeLengths,
    shapes: &OrderedMap<String, Vec<usize>>,
    seed: u64,
) -> Result<MadeInputs, String> {
    if let Some(name) = shapes.keys().find(|name| wanted.iter().all(|input| input.name != **name)) {
        let names: Vec<&str> = wanted.iter().map(|input| input.name.as_str()).collect();
        return Err(format!("the model has no input '{name}'; it has {}", names.join(", ")));
    }
    let mut symbols = given_symbols(wanted, shapes);
    let mut random = MadeNoise::new(seed);
    let mut tensors = Vec::new();
    let mut used = OrderedSet::new();
    for input in wanted {
        let shape = match shapes.get(&input.name) {
            Some(shape) => shape.clone(),
            None => shape_of(input, lengths, &mut symbols, &mut used)?,
        };
        let tensor = values(input, &shape, &mut random).map_err(|error| error.to_string())?;
        tensors.push((input.name.clone(), tensor));
    }
    if lengths.sequence.is_some() && !used.contains(&AxisMeaning::Sequence) {
        return Err(
            "no input has an axis along a sequence whose length the model or --shape leaves \
                    open"
                .to_owned(),
        );
    }
    Ok(MadeInputs { inputs: tensors, by_batch: used.contains(&AxisMeaning::Batch) })
}

/// Lengths of symbols that the given shapes settle.
fn given_symbols(
    wanted: &[IoInfo],
    shapes: &OrderedMap<String, Vec<usize>>,
) -> OrderedMap<String, usize> {
    let mut symbols = OrderedMap::new();
    for input in wanted {
        let shape = shapes.get(&input.name).map_or(&[][..], Vec::as_slice);
        for (dim, &length) in input.dims.iter().zip(shape) {
            if let Dim::Symbol(name) = dim {
                symbols.insert(name.to_string(), length);
            }
        }
    }
    symbols
}

fn shape_of(
    input: &IoInfo,
    lengths: FreeLengths,
    symbols: &mut OrderedMap<String, usize>,
    used: &mut OrderedSet<AxisMeaning>,
) -> Result<Vec<usize>, String> {
    let ask =
        |what: &str| format!("input '{}' has {what}; give --shape {}=D,D…", input.name, input.name);
    if !input.ranked {
        return Err(ask("any number of axes"));
    }
    let mut length_of = |axis: usize, symbol: &str| {
        let along = guess(input, axis, symbol)?;
        used.insert(along);
        Some(match along {
            AxisMeaning::Batch => lengths.batch,
            AxisMeaning::Sequence => lengths.sequence.unwrap_or(SEQUENCE),
        })
    };
    let mut shape = Vec::new();
    for (axis, dim) in input.dims.iter().enumerate() {
        let length = match dim {
            Dim::Known(length) => *length,
            Dim::Symbol(name) => match dim.evaluate(&|name| symbols.get(name).copied()) {
                Some(length) => length,
                None => {
                    let length = length_of(axis, name)
                        .ok_or_else(|| ask(&format!("an axis {axis} ('{name}') of no length")))?;
                    symbols.insert(name.to_string(), length);
                    length
                }
            },
            Dim::Unknown => {
                length_of(axis, "").ok_or_else(|| ask(&format!("an axis {axis} of no length")))?
            }
        };
        shape.push(length);
    }
    Ok(shape)
}

/// Guesses the kind of an axis from its name, its position and the contents of the input.
fn guess(input: &IoInfo, axis: usize, symbol: &str) -> Option<AxisMeaning> {
    let symbol = symbol.to_ascii_lowercase();
    let named = |words: &[&str]| words.iter().any(|word| symbol.contains(word));
    if named(SEQUENCE_WORDS) {
        return Some(AxisMeaning::Sequence);
    }
    if axis == 0 || symbol == "n" || symbol.contains(BATCH_WORD) {
        return Some(AxisMeaning::Batch);
    }
    // The second of two axes is a row of anything; of three, the steps of a sequence.
    let row_or_steps = axis == 1 && matches!(input.dims.len(), 2 | 3);
    row_or_steps.then_some(AxisMeaning::Sequence)
}

#[cfg(test)]
mod tests {
    use galatea_tensor::DataType;

    use super::*;

    fn input(name: &str, dtype: DataType, dims: &[Dim]) -> IoInfo {
        let kind = galatea_graph::FactKind::Tensor;
        IoInfo { name: name.to_owned(), kind, dtype, dims: dims.to_vec(), ranked: true }
    }

    #[test]
    fn axes_without_a_length_get_likely_ones_and_symbols_agree() {
        let mut symbols = OrderedMap::new();
        let dims = [Dim::Symbol("batch".into()), Dim::Symbol("sequence_length".into())];
        let ids = input("input_ids", DataType::Int64, &dims);
        let lengths = FreeLengths { batch: 4, sequence: None };
        let mut used = OrderedSet::new();
        assert_eq!(shape_of(&ids, lengths, &mut symbols, &mut used).unwrap(), [4, 128]);
        assert_eq!(symbols.get("sequence_length"), Some(&128));
        assert_eq!(used.len(), 2);
        let longer = FreeLengths { batch: 2, sequence: Some(32) };
        let shape = shape_of(&ids, longer, &mut OrderedMap::new(), &mut used).unwrap();
        assert_eq!(shape, [2, 32]);
        let image = input("x", DataType::Fp32, &[Dim::Unknown, Dim::Known(3), Dim::Unknown]);
        let error = shape_of(&image, lengths, &mut symbols, &mut used).unwrap_err();
        assert!(error.contains("axis 2") && error.contains("--shape x="), "{error}");
    }

    #[test]
    fn shapes_are_read() {
        let shape = ["a=1,2", "b="].map(|text| parse_shape(text).unwrap()).to_vec();
        let shapes = ShapeChoices { shape }.by_input();
        assert_eq!(shapes.get("a").unwrap(), &[1, 2]);
        assert!(shapes.get("b").unwrap().is_empty());
        assert!(parse_shape("a").is_err());
    }
}
