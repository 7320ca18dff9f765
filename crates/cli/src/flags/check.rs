//! Check that one value fits its flag.

use super::{FlagKind, ServerFlag, ports, truth};

impl ServerFlag {
    /// # Errors
    /// Returns a sentence that names the flag, the value and what is allowed.
    pub(super) fn check(&self, value: &str) -> Result<(), String> {
        let name = self.name;
        if let FlagKind::Form(form, marks) = self.kind
            && !has_in_order(value, marks)
        {
            return Err(format!("--{name} option format is {form}. Got {value}"));
        }
        let too_small = value.parse::<i128>().is_ok_and(|number| number <= 0);
        if self.kind == FlagKind::Positive && too_small {
            return Err(format!("--{name} must be greater than 0, got '{value}'"));
        }
        if !self.kind.allows(value) {
            return Err(format!("--{name} expects {}, got '{value}'", self.kind));
        }
        Ok(())
    }
}

impl FlagKind {
    fn allows(self, value: &str) -> bool {
        match self {
            Self::Switch | Self::Bool => truth(value).is_some(),
            Self::Number => value.parse::<u64>().is_ok(),
            Self::Positive => value.parse::<u64>().is_ok_and(|number| number > 0),
            Self::DeviceShare => value.split_once(':').is_some_and(|(device, share)| {
                let share: Option<f64> = share.parse().ok();
                device.parse::<u32>().is_ok()
                    && share.is_some_and(|share| share.is_finite() && share >= 0.0)
            }),
            Self::Range(least, most) => {
                value.parse::<u64>().is_ok_and(|number| (least..=most).contains(&number))
            }
            Self::Count => value == "-1" || value.parse::<u32>().is_ok(),
            Self::Port => value.parse::<u16>().is_ok(),
            Self::Ports => ports(value).is_some(),
            Self::Level => truth(value).is_some() || value.parse::<u64>().is_ok(),
            Self::Text | Self::Texts | Self::Form(..) => true,
            Self::Choice(names) => names.iter().any(|name| name.eq_ignore_ascii_case(value)),
        }
    }
}

fn has_in_order(value: &str, marks: &str) -> bool {
    let mut rest = value.chars();
    marks.chars().all(|mark| rest.any(|letter| letter == mark))
}
