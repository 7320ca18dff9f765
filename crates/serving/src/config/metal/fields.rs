//! The fields of `metal_config`, and what their values must be.

use serde_json::Value;

use super::latency::{MAX_MS, of_ms};

/// Form of a value.
#[derive(Clone, Copy, Debug)]
enum MetalFieldKind {
    /// One of some words.
    Words(&'static [&'static str]),
    /// true or false.
    Switch,
    /// A whole number from one to another.
    Whole(u64, u64),
    /// Watts above 0.
    Watts,
    /// Milliseconds above 0.
    Millis,
    /// Whole numbers.
    Numbers,
}

/// A field.
#[derive(Debug)]
pub(super) struct MetalField {
    pub(super) name: &'static str,
    kind: MetalFieldKind,
}

/// The most watts that are taken for a target: more than any Mac draws.
const MAX_WATTS: f64 = 1000.0;
/// The most numbers in a list: more than a pool has sizes.
const MAX_NUMBERS: usize = 64;

macro_rules! fields {
    ($($name:literal $kind:expr;)*) => { &[$(MetalField { name: $name, kind: $kind }),*] };
}

/// All fields.
pub(super) const FIELDS: &[MetalField] = fields![
    "precision" MetalFieldKind::Words(&["fp32", "fp16", "bf16", "int8", "int4", "mixed"]);
    "batch_size" MetalFieldKind::Whole(1, 2_147_483_647);
    "latency_goal_ms" MetalFieldKind::Millis;
    "enable_auto_tuning" MetalFieldKind::Switch;
    "auto_tuning_seconds" MetalFieldKind::Whole(1, 86_400);
    "kernel_fusion" MetalFieldKind::Switch;
    "prefetch_policy" MetalFieldKind::Words(&["none", "conservative", "aggressive", "adaptive"]);
    "persistent_kernels" MetalFieldKind::Switch;
    "minimize_launches" MetalFieldKind::Switch;
    "memory_pool_sizes" MetalFieldKind::Numbers;
    "initial_pool_sizes" MetalFieldKind::Numbers;
    "max_pool_sizes" MetalFieldKind::Numbers;
    "use_unified_memory" MetalFieldKind::Switch;
    "unified_memory_threshold" MetalFieldKind::Whole(0, u64::MAX);
    "gpu_memory_limit" MetalFieldKind::Whole(1, u64::MAX);
    "gpu_submission_ms" MetalFieldKind::Whole(1, 600_000);
    "power_policy" MetalFieldKind::Words(&["high_performance", "balanced", "low_power"]);
    "power_target_watts" MetalFieldKind::Watts;
    "enable_thermal_protection" MetalFieldKind::Switch;
    "adaptive_frequency" MetalFieldKind::Switch;
    "efficiency_core_offload" MetalFieldKind::Switch;
];

/// The field that stands for several others.
pub(super) const PRESET: &str = "preset";

/// Fields of a preset, as texts.
type PresetTexts = &'static [(&'static str, &'static str)];

/// The presets.
const PRESETS: &[(&str, PresetTexts)] = &[
    (
        "high_throughput",
        &[
            ("precision", "fp16"),
            ("batch_size", "32"),
            ("enable_auto_tuning", "true"),
            ("prefetch_policy", "aggressive"),
            ("memory_pool_sizes", "256, 128, 64, 32"),
            ("kernel_fusion", "true"),
        ],
    ),
    (
        "low_latency",
        &[
            ("precision", "fp32"),
            ("batch_size", "1"),
            ("enable_auto_tuning", "true"),
            ("prefetch_policy", "conservative"),
            ("persistent_kernels", "true"),
            ("minimize_launches", "true"),
        ],
    ),
    (
        "power_efficient",
        &[
            ("precision", "int8"),
            ("power_target_watts", "10"),
            ("enable_thermal_protection", "true"),
            ("adaptive_frequency", "true"),
            ("efficiency_core_offload", "true"),
        ],
    ),
];

/// Names under which textures are asked for, and why there are none.
const TEXTURE_FIELDS: &[&str] =
    &["memory_kind", "texture_memory", "use_texture_memory", "use_textures"];
const NO_TEXTURES: &str = "kernels read images from buffers: on an H100 pixels of textures took 0.9 to 1.5 times \
                           as long, and filling a texture took 3 to 12 times as long as the kernel";

/// The field of that name.
///
/// # Errors
/// Lists those that there are, or says why there is none for textures.
pub(super) fn find(name: &str) -> Result<&'static MetalField, String> {
    if TEXTURE_FIELDS.contains(&name) {
        return Err(format!("'{name}' found, but {NO_TEXTURES}"));
    }
    FIELDS.iter().find(|field| field.name == name).ok_or_else(|| {
        let known: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        format!("'{name}' found, expected one of {PRESET}, {}", known.join(", "))
    })
}

/// Returns the fields of the preset of that name.
///
/// # Errors
/// Lists those that there are.
pub(super) fn preset(name: &str) -> Result<PresetTexts, String> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, says)| *says).ok_or_else(|| {
        let known: Vec<&str> = PRESETS.iter().map(|(known, _)| *known).collect();
        format!("{PRESET}: '{name}' found, expected {}", known.join(" or "))
    })
}

impl MetalField {
    /// Form of a value, in words.
    fn expected(&self) -> String {
        match self.kind {
            MetalFieldKind::Words(words) => words.join(" or "),
            MetalFieldKind::Switch => "true or false".to_owned(),
            MetalFieldKind::Whole(least, u64::MAX) => format!("a whole number from {least} on"),
            MetalFieldKind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            MetalFieldKind::Millis => format!("milliseconds above 0 and up to {MAX_MS}"),
            MetalFieldKind::Watts => format!("watts above 0 and up to {MAX_WATTS}"),
            MetalFieldKind::Numbers => format!("a list of at most {MAX_NUMBERS} whole numbers"),
        }
    }

    fn wrong(&self, found: &str) -> String {
        format!("{}: {found} found, expected {}", self.name, self.expected())
    }

    /// The text of a value in JSON.
    ///
    /// # Errors
    /// Names the field, what was found and what was expected.
    pub(super) fn of_json(&self, value: &Value) -> Result<String, String> {
        let text = match (self.kind, value) {
            (MetalFieldKind::Words(_), Value::String(word)) => Some(word.clone()),
            (MetalFieldKind::Switch, Value::Bool(_))
            | (
                MetalFieldKind::Whole(..) | MetalFieldKind::Watts | MetalFieldKind::Millis,
                Value::Number(_),
            ) => Some(value.to_string()),
            (MetalFieldKind::Numbers, Value::Array(list)) => {
                let whole = list.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>();
                whole.map(|list| listed(&list))
            }
            _ => None,
        };
        let text = text.and_then(|text| self.taken(&text));
        text.ok_or_else(|| self.wrong(&value.to_string()))
    }

    /// The text of a value that a parameter holds, in the form that all texts of it have.
    ///
    /// # Errors
    /// Fails like [`MetalField::of_json`].
    pub(super) fn of_text(&self, text: &str) -> Result<String, String> {
        self.taken(text.trim()).ok_or_else(|| self.wrong(&format!("'{text}'")))
    }

    /// The usual text of a value, if it is one.
    fn taken(&self, text: &str) -> Option<String> {
        match self.kind {
            MetalFieldKind::Words(words) => {
                let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
                found.map(|word| (*word).to_owned())
            }
            MetalFieldKind::Switch => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "on" | "yes" => Some("true".to_owned()),
                "false" | "0" | "off" | "no" => Some("false".to_owned()),
                _ => None,
            },
            MetalFieldKind::Whole(least, most) => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                number.map(|number: u64| number.to_string())
            }
            MetalFieldKind::Millis => {
                let ms = text.parse().ok().filter(|&ms| of_ms(ms).is_some());
                ms.map(|ms: f64| ms.to_string())
            }
            MetalFieldKind::Watts => {
                let watts = text.parse().ok().filter(|&watts| watts > 0.0 && watts <= MAX_WATTS);
                watts.map(|watts: f64| watts.to_string())
            }
            MetalFieldKind::Numbers => {
                let inside = text.trim_start_matches('[').trim_end_matches(']');
                let words = inside.split([',', ' ']).filter(|word| !word.is_empty());
                let list = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
                (!list.is_empty() && list.len() <= MAX_NUMBERS).then(|| listed(&list))
            }
        }
    }
}

/// A list of numbers as a text.
fn listed(list: &[u64]) -> String {
    let words: Vec<String> = list.iter().map(u64::to_string).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn presets_say_what_their_fields_take() {
        for (name, says) in PRESETS {
            for (field, text) in *says {
                let taken = find(field).and_then(|field| field.of_text(text));
                assert_eq!(taken.as_deref(), Ok(*text), "{name}");
            }
        }
    }

    #[test]
    fn fields_for_textures_are_refused_with_the_reason() {
        for name in TEXTURE_FIELDS {
            let error = find(name).unwrap_err();
            assert!(error.starts_with(&format!("'{name}' found")), "{error}");
            assert!(error.contains("filling a texture"), "{error}");
        }
    }

    #[test]
    fn values_of_json_have_the_type_of_their_field() {
        let of = |name: &str, value: Value| find(name).and_then(|field| field.of_json(&value));
        assert_eq!(of("batch_size", json!(32)).as_deref(), Ok("32"));
        assert_eq!(of("power_target_watts", json!(7.5)).as_deref(), Ok("7.5"));
        assert_eq!(of("max_pool_sizes", json!([4, 2])).as_deref(), Ok("4, 2"));
        for (name, value, found) in [
            ("batch_size", json!("32"), "\"32\" found"),
            ("batch_size", json!(0), "0 found, expected a whole number from 1"),
            ("batch_size", json!(1.5), "1.5 found"),
            ("latency_goal_ms", json!(-2), "-2 found, expected milliseconds above 0"),
            ("kernel_fusion", json!(1), "1 found, expected true or false"),
            ("kernel_fusion", json!("true"), "\"true\" found"),
            ("precision", json!("fp8"), "\"fp8\" found, expected fp32 or fp16"),
            ("precision", json!(null), "null found"),
            ("power_target_watts", json!(-1), "-1 found, expected watts above 0"),
            ("power_target_watts", json!(1e300), "expected watts above 0 and up to 1000"),
            ("memory_pool_sizes", json!([]), "[] found, expected a list"),
            ("memory_pool_sizes", json!([1, -2]), "[1,-2] found, expected a list"),
            ("memory_pool_sizes", json!({}), "{} found, expected a list"),
        ] {
            let error = of(name, value).unwrap_err();
            assert!(error.starts_with(name) && error.contains(found), "{error}");
        }
    }
}
