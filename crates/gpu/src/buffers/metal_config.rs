//! The fields of Triton's Metal backend that say how a device keeps memory, and how long it is kept busy at once.

use std::time::Duration;

use super::PoolConfig;

/// Their names.
const FIELDS: [&str; 6] = [
    "memory_pool_sizes",
    "initial_pool_sizes",
    "max_pool_sizes",
    "unified_memory_threshold",
    "gpu_memory_limit",
    "gpu_submission_ms",
];

/// The number in a text.
fn number<T: std::str::FromStr>(field: &str, text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{field}: '{text}' found, expected {what}"))
}

/// The numbers in a text, with commas or spaces between them, in brackets or not.
fn numbers<T: std::str::FromStr>(field: &str, text: &str, what: &str) -> Result<Vec<T>, String> {
    let inside = text.trim().trim_start_matches('[').trim_end_matches(']');
    let words = inside.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(|word| number(field, word, what)).collect()
}

/// A number from 1 on.
fn limited(field: &str, text: &str, what: &str) -> Result<u64, String> {
    match number(field, text, what)? {
        0 => Err(format!("{field}: '0' found, expected {what}")),
        found => Ok(found),
    }
}

impl PoolConfig {
    /// From the fields of `metal_config`, by name: `memory_pool_sizes`, `initial_pool_sizes` and
    /// `max_pool_sizes` are lists of sizes that grow and of counts for each of them. `memory_pool_sizes` that fall are
    /// counts too, of buffers that are kept at most. Counts without sizes are for the usual sizes, the smallest first.
    /// Buffers of at most `unified_memory_threshold` bytes are in memory that the
    /// processor shares, and all together take at most `gpu_memory_limit` bytes. A submission
    /// is predicted to take at most `gpu_submission_ms`. Without lists there are the usual
    /// classes.
    ///
    /// # Errors
    /// Names the field, what was found and what was expected.
    pub fn from_fields<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut sizes = Vec::new();
        let mut initial = Vec::new();
        let mut most = Vec::new();
        let mut threshold = None;
        let mut limit = None;
        let mut submission = None;
        for (field, text) in fields {
            match field {
                "memory_pool_sizes" => sizes = numbers(field, text, "a number of bytes")?,
                "initial_pool_sizes" => initial = numbers(field, text, "a number of buffers")?,
                "max_pool_sizes" => most = numbers(field, text, "a number of buffers")?,
                "unified_memory_threshold" => {
                    threshold = Some(number(field, text.trim(), "a number of bytes")?);
                }
                "gpu_memory_limit" => {
                    limit = Some(limited(field, text.trim(), "a number of bytes from 1 on")?);
                }
                "gpu_submission_ms" => {
                    let ms = limited(field, text.trim(), "milliseconds from 1 on")?;
                    submission = Some(Duration::from_millis(ms));
                }
                other => {
                    let known = FIELDS.join(", ");
                    return Err(format!("'{other}' found, expected one of {known}"));
                }
            }
        }
        let falls = sizes.len() > 1 && sizes.is_sorted_by(|one, next| one >= next);
        if falls && !most.is_empty() {
            return Err(format!("max_pool_sizes {most:?} found, but memory_pool_sizes are counts"));
        }
        if falls {
            let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            most = sizes.drain(..).map(count).collect();
        }
        let config = match sizes.is_empty() {
            true => Self::counted(&initial, &most)?,
            false => Self::new(&sizes, &initial, &most)?,
        };
        let config = match threshold {
            Some(bytes) => config.unified_up_to(bytes),
            None => config,
        };
        let config = match limit {
            Some(bytes) => config.within(bytes),
            None => config,
        };
        Ok(match submission {
            Some(bound) => config.submitting(bound),
            None => config,
        })
    }
}

impl PoolConfig {
    /// The usual sizes, the smallest ones with other counts of buffers that are made at once and kept at most.
    ///
    /// # Errors
    /// Fails when there are more counts than sizes.
    fn counted(initial: &[usize], most: &[usize]) -> Result<Self, String> {
        let usual = Self::default();
        let there = usual.sizes().len();
        for (name, list) in [("initial_pool_sizes", initial), ("max_pool_sizes", most)] {
            if list.len() > there {
                let found = list.len();
                return Err(format!(
                    "{name} has {found} counts, expected at most one for each of {there} sizes"
                ));
            }
        }
        let sizes = usual.sizes();
        let at = |list: &[usize], at: usize| list.get(at).copied();
        let first: Vec<usize> = (0..there).map(|size| at(initial, size).unwrap_or(0)).collect();
        let kept = (0..there).zip(&first);
        let kept = kept.map(|(size, &first)| at(most, size).unwrap_or(first.max(Self::USUAL_MOST)));
        Self::new(&sizes, &first, &kept.collect::<Vec<usize>>())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn fields_are_lists_in_any_dress() {
        let fields = [
            ("memory_pool_sizes", "[ 512, 4096 ]"),
            ("initial_pool_sizes", "1 0"),
            ("max_pool_sizes", "2,3"),
            ("unified_memory_threshold", " 100 "),
            ("gpu_memory_limit", "9000"),
            ("gpu_submission_ms", "20"),
        ];
        let expected = PoolConfig::new(&[512, 4096], &[1, 0], &[2, 3]).unwrap().unified_up_to(100);
        let expected = expected.within(9000).submitting(Duration::from_millis(20));
        assert_eq!(PoolConfig::from_fields(fields).unwrap(), expected);
        assert_eq!(PoolConfig::from_fields([]).unwrap(), PoolConfig::default());
    }

    #[test]
    fn counts_without_sizes_are_for_the_usual_ones() {
        let most = PoolConfig::from_fields([("max_pool_sizes", "256 128")]).unwrap();
        let fallen = PoolConfig::from_fields([("memory_pool_sizes", "[256, 128]")]).unwrap();
        assert_eq!(most, fallen);
        let counts = |config: &PoolConfig| config.counts();
        assert_eq!(&counts(&most)[..3], &[(0, 256), (0, 128), (0, 8)]);
        let first = PoolConfig::from_fields([("initial_pool_sizes", "64, 2")]).unwrap();
        assert_eq!(&counts(&first)[..3], &[(64, 64), (2, 8), (0, 8)]);
        let error = PoolConfig::from_fields([("max_pool_sizes", "1 ".repeat(16).as_str())]);
        assert!(error.unwrap_err().contains("has 16 counts, expected at most one for each of 15"));
        let both = [("memory_pool_sizes", "8, 4"), ("max_pool_sizes", "1, 1")];
        assert!(
            PoolConfig::from_fields(both).unwrap_err().contains("memory_pool_sizes are counts")
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_field() {
        let error = |field, text| PoolConfig::from_fields([(field, text)]).unwrap_err();
        assert!(error("memory_pool_sizes", "1,x").starts_with("memory_pool_sizes: 'x' found"));
        assert!(error("max_pool_sizes", "-1").contains("'-1' found, expected a number of buffers"));
        assert!(error("unified_memory_threshold", "").contains("'' found"));
        assert!(
            error("gpu_memory_limit", "0").contains("'0' found, expected a number of bytes from 1")
        );
        let none = error("gpu_submission_ms", "0");
        assert!(none.contains("'0' found, expected milliseconds from 1"), "{none}");
        assert!(error("pools", "1").contains("expected one of memory_pool_sizes"));
    }
}
