//! The small types against a table of every conversion that `ml_dtypes` makes.

use galatea_tensor::{NarrowingRule, OverflowRule, SmallType};

/// Written by `python/small_float_table.py`.
const TABLE: &str = include_str!("data/small_floats.txt");

/// The lines of a kind: a type, and what is said of it.
fn lines(kind: &str) -> Vec<(SmallType, Vec<&'static str>)> {
    let of = |line: &'static str| {
        let mut words = line.split(' ');
        let wanted = words.next() == Some(kind);
        let name = words.next()?;
        let dtype = SmallType::ALL.into_iter().find(|dtype| dtype.name() == name)?;
        wanted.then(|| (dtype, words.collect()))
    };
    TABLE.lines().filter_map(of).collect()
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text, 16).unwrap()
}

#[test]
fn every_code_has_the_value_of_the_table() {
    let all = lines("decode");
    assert_eq!(all.len(), 6);
    for (dtype, values) in all {
        assert_eq!(values.len(), usize::from(dtype.mask()) + 1);
        for (code, bits) in values.iter().enumerate() {
            let expected = f32::from_bits(hex(bits));
            let found = dtype.value(code as u8);
            if expected.is_nan() {
                assert!(found.is_nan(), "{dtype} {code:#x}");
            } else {
                assert_eq!(found.to_bits(), f64::from(expected).to_bits(), "{dtype} {code:#x}");
            }
        }
    }
}

/// Both ends of each run of patterns with one code: between them the conversion is monotonic.
#[test]
fn single_precision_rounds_as_in_the_table() {
    let strict = NarrowingRule { overflow: OverflowRule::Special, ..NarrowingRule::default() };
    let all = lines("encode");
    assert_eq!(all.len(), 5);
    for (dtype, runs) in all {
        let runs: Vec<(u32, u32)> = runs
            .iter()
            .map(|run| run.split_once(':').unwrap())
            .map(|(first, code)| (hex(first), hex(code)))
            .collect();
        // Of the NaNs of a type only some are made.
        assert!(runs.len() + 8 > usize::from(dtype.mask()), "{dtype} has {} runs", runs.len());
        for (at, &(first, code)) in runs.iter().enumerate() {
            let last = runs.get(at + 1).map_or(u32::MAX, |next| next.0 - 1);
            for bits in [first, first + (last - first) / 2, last] {
                let value = f32::from_bits(bits);
                let found = dtype.encode(value.into(), strict);
                assert_eq!(u32::from(found), code, "{dtype} {value} ({bits:#x})");
            }
        }
    }
}
