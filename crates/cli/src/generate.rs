//! Inputs for a model that nobody gave inputs for.

use clap::Args;
use galatea_graph::Dim;
use galatea_runtime::{IoInfo, Session};
use galatea_tensor::{ByteString, DataType, OrderedMap, OrderedSet, Tensor, bf16, f16};

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
    let mut random = InputNoise(0x2545_F491_4F6C_DD1D ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
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

fn values(
    input: &IoInfo,
    shape: &[usize],
    random: &mut InputNoise,
) -> Result<Tensor, galatea_tensor::TensorError> {
    let count = galatea_tensor::checked_elements(shape)?;
    let name = input.name.to_ascii_lowercase();
    // Masks let everything through, types and segments are the first, everything else is a small token.
    let integer = |random: &mut InputNoise| -> u8 {
        if name.contains("mask") {
            1
        } else if name.contains("type") || name.contains("segment") {
            0
        } else {
            u8::try_from(random.next() % 100).unwrap_or(0)
        }
    };
    macro_rules! filled {
        ($type:ty, $make:expr) => {{
            let make: fn(&mut InputNoise) -> $type = $make;
            Tensor::from_vec(shape, (0..count).map(|_| make(random)).collect())
        }};
        (integers $type:ty) => {
            Tensor::from_vec(
                shape,
                (0..count).map(|_| <$type>::try_from(integer(random)).unwrap_or(0)).collect(),
            )
        };
    }
    match input.dtype {
        DataType::Bool => filled!(bool, |_| true),
        DataType::Uint8 => filled!(integers u8),
        DataType::Uint16 => filled!(integers u16),
        DataType::Uint32 => filled!(integers u32),
        DataType::Uint64 => filled!(integers u64),
        DataType::Int8 => filled!(integers i8),
        DataType::Int16 => filled!(integers i16),
        DataType::Int32 => filled!(integers i32),
        DataType::Int64 => filled!(integers i64),
        DataType::Fp16 => filled!(f16, |random| f16::from_f64(random.normal())),
        DataType::Bf16 => filled!(bf16, |random| bf16::from_f64(random.normal())),
        #[allow(clippy::cast_possible_truncation, reason = "a random number may lose digits")]
        DataType::Fp32 => filled!(f32, |random| random.normal() as f32),
        DataType::Fp64 => filled!(f64, InputNoise::normal),
        DataType::Bytes => filled!(ByteString, |_| ByteString::from("1")),
        small @ DataType::Small(_) => Tensor::zeros(small, shape),
    }
}

/// Repeatable random numbers: Marsaglia's xorshift, and Box and Muller's normal distribution.
struct InputNoise(u64);

impl InputNoise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
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
    fn masks_are_ones_and_normals_are_normal() {
        let mut random = InputNoise(1);
        let mask = input("attention_mask", DataType::Int64, &[]);
        let ones = values(&mask, &[3], &mut random).unwrap();
        assert_eq!(ones.to_vec::<i64>().unwrap(), [1, 1, 1]);
        let count = 20_000;
        let sum: f64 = (0..count).map(|_| random.normal()).sum();
        let squares: f64 = (0..count).map(|_| random.normal().powi(2)).sum();
        assert!((sum / f64::from(count)).abs() < 0.03);
        assert!((squares / f64::from(count) - 1.0).abs() < 0.05);
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
