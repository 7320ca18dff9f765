//! Choices between kernels: the questions that kernels ask, and the answers.
//!
//! A kernel asks [`Step::choose`](crate::Step) while it is bound. Without records the answer is candidate 0,
//! which the kernel chooses by sizes and device.

use std::fmt::Debug;
use std::sync::Arc;

use galatea_runtime::tune::{ChoiceSource, ConfigAxis, ConfigSpace, bucket};

use crate::device::GpuCapabilities;

/// Kernels that have choices in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelFamily {
    name: &'static str,
    /// A number for the texts of the kernels: what was measured of others says nothing.
    version: u64,
}

impl KernelFamily {
    /// A family whose kernels are made of these texts.
    pub(crate) const fn new(name: &'static str, texts: &[&str]) -> Self {
        // FNV-1a. Source: G. Fowler, L. Noll, K. Vo, "The FNV Non-Cryptographic Hash Algorithm".
        let mut version = 0xcbf2_9ce4_8422_2325_u64;
        let mut text = 0;
        while text < texts.len() {
            let bytes = texts[text].as_bytes();
            let mut at = 0;
            while at < bytes.len() {
                version = (version ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
                at += 1;
            }
            text += 1;
        }
        Self { name, version }
    }

    /// Returns the key of a choice's record, apart from the lengths.
    fn key(&self, variant: &str) -> String {
        format!("gpu {} {variant} v{:08x}", self.name, self.version & 0xffff_ffff)
    }
}

/// Distances that results may have from correct ones, relative to the largest of them.
pub(crate) mod near {
    /// Sums of FP32 in another order.
    pub(crate) const SUMS: f32 = 1e-4;
    /// Operands or results of FP16.
    pub(crate) const HALVES: f32 = 5e-3;
    /// Operands that are rounded to bytes.
    pub(crate) const BYTES: f32 = 3e-2;
}

/// A choice that a kernel has.
#[derive(Clone, Debug)]
pub(crate) struct KernelQuestion {
    /// Types, and whatever else changes the text of a shader.
    pub(crate) variant: String,
    /// The lengths on which times depend.
    pub(crate) lengths: Vec<(&'static str, usize)>,
    /// The candidates; number 0 is what the kernel takes unasked.
    pub(crate) space: ConfigSpace,
    /// Distance that results of two candidates may have: see [`near`].
    pub(crate) tolerance: f32,
}

/// A question that was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct AskedQuestion {
    /// Key of the choice's record, apart from the lengths.
    pub(crate) family: String,
    /// Lengths, rounded.
    pub(crate) bucket: String,
    /// Candidates.
    pub(crate) space: ConfigSpace,
    /// Distance that results may have from correct ones, relative to the largest of them.
    pub(crate) tolerance: f32,
}

impl AskedQuestion {
    fn is(&self, other: &Self) -> bool {
        (&self.family, &self.bucket) == (&other.family, &other.bucket)
    }
}

/// Source of the answers to a step's questions.
#[derive(Clone, Debug, Default)]
pub(crate) struct TuningChoices {
    known: ChoiceSource,
    /// The device, as records name it.
    pub(crate) unit: Arc<str>,
    /// The answer to one question, whatever is known.
    forced: Option<(AskedQuestion, usize)>,
    /// Questions that were asked, where they are recorded.
    asked: Option<Vec<AskedQuestion>>,
}

impl TuningChoices {
    /// Creates the choices that are known for a device.
    pub(crate) fn known(known: &ChoiceSource, capabilities: &GpuCapabilities) -> Self {
        Self { known: known.clone(), unit: unit(capabilities).into(), forced: None, asked: None }
    }

    /// The same, and what is asked is noted.
    pub(crate) fn noting(&self) -> Self {
        Self { asked: Some(Vec::new()), ..self.clone() }
    }

    /// The same with one answer given.
    pub(crate) fn forcing(&self, asked: &AskedQuestion, candidate: usize) -> Self {
        Self { forced: Some((asked.clone(), candidate)), ..self.clone() }
    }

    /// Returns whether a tuner or a comparison is under way.
    pub(crate) fn is_measured(&self) -> bool {
        self.asked.is_some() || self.forced.is_some()
    }

    /// Takes the questions that were asked, where they were recorded.
    pub(crate) fn take_asked(&mut self) -> Vec<AskedQuestion> {
        self.asked.take().unwrap_or_default()
    }

    /// The candidate to take; number 0 where nothing is known.
    pub(crate) fn choose(
        &mut self,
        family: &KernelFamily,
        question: impl FnOnce() -> KernelQuestion,
    ) -> usize {
        if self.known.0.is_none() && self.forced.is_none() && self.asked.is_none() {
            return 0;
        }
        let KernelQuestion { variant, lengths, space, tolerance } = question();
        let bucket = bucket(&lengths);
        let own = AskedQuestion { family: family.key(&variant), bucket, space, tolerance };
        let forced = self.forced.as_ref().filter(|(asked, _)| asked.is(&own));
        let found = match forced {
            Some((_, candidate)) => Some(*candidate),
            None => self.known.0.as_ref().and_then(|known| {
                known.choose_on(&self.unit, &own.family, &own.bucket, &own.space)
            }),
        };
        let count = own.space.len();
        if let Some(asked) = &mut self.asked {
            asked.push(own);
        }
        found.filter(|&candidate| candidate < count).unwrap_or(0)
    }
}

/// A device as records name it: kernels are as fast as device, driver and interface let them.
fn unit(capabilities: &GpuCapabilities) -> String {
    let GpuCapabilities { name, driver, backend, .. } = capabilities;
    format!("{name}, {backend} {driver}").trim().to_owned()
}

/// Name of the choice by sizes and device.
pub(crate) const USUAL: &str = "usual";

/// An axis of the usual way and some others.
pub(crate) fn ways(name: &str, others: impl IntoIterator<Item = String>) -> ConfigAxis {
    let labels = std::iter::once(USUAL.to_owned()).chain(others).collect();
    ConfigAxis { name: name.to_owned(), labels, ordered: false }
}

/// Returns the name of a configuration: its fields and their values.
pub(crate) fn label(config: &impl Debug) -> String {
    let text = format!("{config:?}");
    let fields = match (text.find('{'), text.rfind('}')) {
        (Some(start), Some(end)) if start < end => &text[start + 1..end],
        _ => &text,
    };
    let mut found = Vec::new();
    let mut field = String::new();
    let mut depth = 0_usize;
    for char in fields.chars() {
        match char {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth > 0 => field.push('x'),
            ',' => found.push(std::mem::take(&mut field)),
            ' ' => {}
            other => field.push(other),
        }
    }
    found.push(field);
    let short = |field: String| match field.split_once(':') {
        Some((_, "false")) => None,
        Some((name, "true")) => Some(name.to_owned()),
        _ => Some(field).filter(|field| !field.is_empty()),
    };
    found.into_iter().filter_map(short).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn question(lens: usize) -> KernelQuestion {
        let space = ConfigSpace::new(vec![ways("threads", ["64".into(), "32".into()])]);
        KernelQuestion {
            variant: "fp32".into(),
            lengths: vec![("n", lens)],
            space,
            tolerance: 1e-4,
        }
    }

    #[test]
    fn names_of_configurations_tell_all_of_them_apart() {
        let all = crate::matmul::TileSizes::ALL.iter().map(label);
        let all = all.chain(crate::blocks::GEMV_CONFIGS.iter().map(label));
        let all: Vec<String> = all.collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
        let first = "rows:64,columns:64,deep:16,threads:8x8,patch:4x8,stages:2,unroll:8";
        assert_eq!(all[0], first);
    }

    #[test]
    fn nothing_is_made_for_questions_that_nobody_answers() {
        let family = KernelFamily::new("test", &["a"]);
        let mut plain = TuningChoices::default();
        assert_eq!(plain.choose(&family, || unreachable!("nobody is asked")), 0);
        let mut noting = plain.noting();
        assert_eq!(noting.choose(&family, || question(100)), 0);
        let asked = noting.asked.unwrap();
        let mut forcing = plain.forcing(&asked[0], 2);
        // Lengths of one bucket have one answer.
        assert_eq!(forcing.choose(&family, || question(120)), 2);
        assert_eq!(forcing.choose(&family, || question(10)), 0);
    }

    #[test]
    fn other_texts_of_kernels_are_other_records() {
        let [a, b] =
            [["x", "y"], ["x", "z"]].map(|texts| KernelFamily::new("test", &texts).key(""));
        assert_ne!(a, b);
    }
}
