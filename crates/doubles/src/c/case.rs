//! Macs as text, as the environment names them.

use super::chip_file::ChipFile;
use super::played::{EnergyCounters, MacVersion, PlayedBattery, PlayedMac};

/// Form of the text.
const FORM: &str = "expected CHIP-NUMBERgb and then any of macos=MAJOR.MINOR, battery=PERCENT[-discharging], \
                    heat=0..3, low-power, counters=working|zeroed|absent|overlong, without=NAME, \
                    refused=FUNCTION and size=KEY:BYTES, with commas between them";

/// Macs that tests play.
pub const EXAMPLES: &[&str] = &[
    "m1-16gb",
    "m1-16gb,macos=13.0,battery=80",
    "m2-ultra-192gb,macos=13.3",
    "m4-pro-48gb,macos=26.0,battery=15-discharging,low-power,heat=1",
    "m5-max-128gb,macos=27.0,counters=zeroed",
    "m2-8gb,counters=absent",
];

impl PlayedMac {
    /// Reads a Mac from text: its chip and memory, then what is unusual about it, with commas between.
    ///
    /// ```text
    /// m5-max-128gb,macos=27.0,counters=zeroed,without=hw.pagesize
    /// ```
    ///
    /// | word | meaning |
    /// |---|---|
    /// | `m1-16gb` | the chip by the name of its file in `data/chips`, and its memory |
    /// | `macos=13.3` | version of macOS; 15.0 where it is not said |
    /// | `battery=15-discharging`, `battery=80` | battery with so many percent, used or not |
    /// | `heat=2` | thermal state, 0 to 3 |
    /// | `low-power` | the user asked to save power |
    /// | `counters=zeroed` | counters of energy: `working`, `zeroed`, `absent` or `overlong` |
    /// | `without=hw.memsize` | a value of sysctl or a function that is not there |
    /// | `refused=host_statistics64` | a function that fails |
    /// | `size=hw.memsize:2` | a value of sysctl that has so many bytes |
    ///
    /// # Errors
    /// Returns the word that is wrong, and the form that is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split(',');
        let wrong = |word: &str| format!("`{word}` found, {FORM}");
        let first = words.next().unwrap_or_default();
        let parts = first
            .rsplit_once('-')
            .and_then(|(chip, memory)| Some((chip, memory.strip_suffix("gb")?.parse().ok()?)));
        let (chip, memory_gib) = parts.ok_or_else(|| wrong(first))?;
        let mut mac = Self::of(ChipFile::find(chip)?, memory_gib);
        for word in words {
            mac.change(word).ok_or_else(|| wrong(word))?;
        }
        Ok(mac)
    }

    /// Applies one word.
    fn change(&mut self, word: &str) -> Option<()> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "macos" => {
                let (major, minor) = value.split_once('.')?;
                self.version =
                    MacVersion { major: major.parse().ok()?, minor: minor.parse().ok()? };
            }
            "battery" => {
                let discharging = value.ends_with("-discharging");
                let percent = value.trim_end_matches("-discharging").parse().ok()?;
                self.battery = Some(PlayedBattery { percent, discharging });
            }
            "heat" => self.heat = value.parse().ok()?,
            "low-power" if value.is_empty() => self.low_power = true,
            "counters" => {
                self.counters = match value {
                    "working" => EnergyCounters::Working,
                    "zeroed" => EnergyCounters::Zeroed,
                    "absent" => EnergyCounters::Absent,
                    "overlong" => EnergyCounters::Overlong,
                    _ => return None,
                };
            }
            "without" if !value.is_empty() => drop(self.missing.insert(value.to_owned())),
            "refused" if !value.is_empty() => drop(self.refused.insert(value.to_owned())),
            "size" => {
                let (key, bytes) = value.split_once(':')?;
                self.sizes.insert(key.to_owned(), bytes.parse().ok()?);
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_is_what_its_text_says() {
        let text = "m5-max-128gb,macos=27.0,battery=15-discharging,heat=2,low-power,counters=zeroed,\
                    without=hw.memsize,refused=host_statistics,size=hw.pagesize:2";
        let mac = PlayedMac::parse(text).unwrap();
        assert_eq!((mac.chip.name.as_str(), mac.memory_gib, mac.heat), ("Apple M5 Max", 128, 2));
        assert_eq!(mac.version, MacVersion { major: 27, minor: 0 });
        assert_eq!(mac.battery, Some(PlayedBattery { percent: 15, discharging: true }));
        assert!(mac.low_power && mac.counters == EnergyCounters::Zeroed);
        assert!(mac.lacks("hw.memsize") && mac.refuses("host_statistics"));
        assert_eq!(mac.sizes["hw.pagesize"], 2);
        for text in EXAMPLES {
            PlayedMac::parse(text).unwrap();
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        for text in ["", "m1", "m1-16", "m1-16gb,heat=hot", "m1-16gb,macos=13", "m1-16gb,odd"] {
            let wrong = text.rsplit(',').next().unwrap();
            assert!(PlayedMac::parse(text).unwrap_err().contains(&format!("`{wrong}` found")));
        }
        assert!(PlayedMac::parse("z80-64gb").unwrap_err().contains("z80"));
    }
}
