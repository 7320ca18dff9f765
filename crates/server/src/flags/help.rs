//! The list of flags for people.

use std::fmt::Write as _;

use super::{FLAGS, FlagSupport};

/// The list of flags, by group.
#[must_use]
pub fn help() -> String {
    let mut text = String::new();
    let mut group = "";
    for flag in FLAGS {
        if flag.group != group {
            group = flag.group;
            // Writing to a string cannot fail.
            writeln!(text, "\n{group}").ok();
        }
        let default =
            if flag.default.is_empty() { String::new() } else { format!(" [{}]", flag.default) };
        write!(text, "  --{} <{}>{default}\n      {}", flag.name, flag.kind, flag.sentence).ok();
        if let FlagSupport::Ignored(why) = flag.support {
            write!(text, " (accepted without effect: {why})").ok();
        }
        text.push('\n');
    }
    text
}
