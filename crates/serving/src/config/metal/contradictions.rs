//! Fields that contradict each other: which one holds, and what is said of the other.

use super::{MetalConfig, MetalSetting, MetalSource};

/// Two settings that cannot both hold.
struct FieldContradiction<'m> {
    settings: [&'m MetalSetting; 2],
    why: String,
}

/// Weight of a setting beside one that contradicts it: the nearer to the model the more, and in one place a field more
/// than a preset.
fn weight(setting: &MetalSetting) -> (MetalSource, bool) {
    (setting.place, !setting.preset)
}

impl MetalConfig {
    /// Leaves out what is contradicted by a setting nearer to the model, or by a field beside a preset. Returns a line
    /// for each setting that is left out.
    ///
    /// # Errors
    /// Names both fields where one place states both.
    pub(super) fn settle(&mut self) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        loop {
            let Some(FieldContradiction { settings: [one, other], why }) = self.contradiction()
            else {
                return Ok(lines);
            };
            let (holds, left) = match weight(one).cmp(&weight(other)) {
                std::cmp::Ordering::Less => (other, one),
                std::cmp::Ordering::Greater => (one, other),
                std::cmp::Ordering::Equal => return Err(other.refused(&why)),
            };
            let MetalSetting { field, text, place, .. } = holds;
            lines.push(left.refused(&format!("{why}; {field} {text} of {place} holds")));
            let gone = left.field;
            self.settings.retain(|setting| setting.field != gone);
        }
    }

    /// The first contradiction between two settings.
    fn contradiction(&self) -> Option<FieldContradiction<'_>> {
        let pair = |one: &str, other: &str| Some([self.find(one)?, self.find(other)?]);
        let of = |settings, why: &str| FieldContradiction { settings, why: why.to_owned() };
        if let Some(settings) = pair("use_unified_memory", "unified_memory_threshold") {
            let [unified, threshold] = settings;
            match (unified.text.as_str(), threshold.text.as_str()) {
                ("false", "0") => {}
                ("false", _) => {
                    return Some(of(settings, "expected none where use_unified_memory is false"));
                }
                (_, "0") => {
                    return Some(of(
                        settings,
                        "expected more than 0 where use_unified_memory is true",
                    ));
                }
                _ => {}
            }
        }
        if let Some(settings) = pair("enable_auto_tuning", "auto_tuning_seconds") {
            let [enabled, _] = settings;
            if enabled.text == "false" {
                return Some(of(settings, "expected none where enable_auto_tuning is false"));
            }
        }
        self.pool_contradiction()
    }

    /// The first contradiction between the lists of a GPU's buffers.
    fn pool_contradiction(&self) -> Option<FieldContradiction<'_>> {
        let list = |field: &str| {
            let setting = self.find(field)?;
            let numbers = setting.text.split(", ").filter_map(|word| word.parse().ok());
            Some((setting, numbers.collect::<Vec<u64>>()))
        };
        let sizes = list("memory_pool_sizes");
        let initial = list("initial_pool_sizes");
        let most = list("max_pool_sizes");
        let falls = |sizes: &[u64]| {
            sizes.len() > 1 && sizes.iter().zip(sizes.iter().skip(1)).all(|(one, next)| one >= next)
        };
        if let (Some((setting, numbers)), Some((kept, _))) = (&sizes, &most)
            && falls(numbers)
        {
            let why =
                "expected none where memory_pool_sizes fall, which are the numbers that are kept";
            return Some(FieldContradiction { settings: [setting, kept], why: why.to_owned() });
        }
        if let Some((setting, numbers)) = sizes.as_ref().filter(|(_, numbers)| !falls(numbers)) {
            for (counts, list) in [&initial, &most].into_iter().flatten() {
                if list.len() != numbers.len() {
                    let count = numbers.len();
                    let why = format!("expected a number for each of {count} memory_pool_sizes");
                    return Some(FieldContradiction { settings: [setting, counts], why });
                }
            }
        }
        let kept = match &sizes {
            Some(sizes) if falls(&sizes.1) => sizes,
            _ => most.as_ref()?,
        };
        let (first, counts) = initial.as_ref()?;
        let mut pairs = counts.iter().zip(&kept.1);
        pairs.any(|(first, kept)| first > kept).then(|| FieldContradiction {
            settings: [kept.0, first],
            why: format!("expected at most the numbers that are kept, {}", kept.0.text),
        })
    }
}

#[cfg(test)]
#[path = "contradictions_tests.rs"]
mod tests;
