//! Suggestions of a similar operator for one that does not exist.

use strsim::levenshtein;

use super::all;
use crate::operator::OpDef;
use crate::{GALATEA_DOMAIN, ONNX_DOMAIN};

/// Longer names than any operator's are not compared.
const MAX_NAME: usize = 64;

/// Says what was not found and what comes near: the same name in a later version or in another
/// domain, the name in other letters, or a name with a typing error.
pub(super) fn unknown(domain: &str, name: &str, opset: Option<i64>) -> String {
    let version = opset.map_or_else(String::new, |version| format!(" version {version}"));
    let mut text =
        format!("operator '{name}' of domain '{}'{version} is not supported", shown(domain));
    let since = all().filter(|def| def.domain == domain && def.name == name).map(|def| def.since);
    if let Some(first) = since.min() {
        text.push_str(&format!("; it exists from version {first} on"));
    } else if let Some(near) = nearest(domain, name) {
        text.push_str(&format!(
            "; did you mean '{}' of domain '{}'?",
            near.name,
            shown(near.domain)
        ));
    }
    text
}

fn shown(domain: &str) -> &str {
    if domain == ONNX_DOMAIN { "ai.onnx" } else { domain }
}

/// The operator whose name is nearest, of the same domain where several are equally near.
fn nearest(domain: &str, name: &str) -> Option<&'static OpDef> {
    if name.len() > MAX_NAME {
        return None;
    }
    // A third of the letters may be wrong, in names of any length at most three.
    let most = (name.len() / 3).min(3);
    let lower = name.to_lowercase();
    let rank = |def: &&OpDef| {
        let wrong =
            if def.name == name { 0 } else { 1 + levenshtein(&def.name.to_lowercase(), &lower) };
        (wrong, def.domain != domain)
    };
    let near = all().filter(|def| def.domain != GALATEA_DOMAIN).min_by_key(rank)?;
    (rank(&near).0 <= 1 + most).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_domain_version_letters_and_typing_are_told_apart() {
        for (domain, name, opset, part) in [
            ("", "relu", Some(18), "did you mean 'Relu' of domain 'ai.onnx'?"),
            ("", "Sofmax", Some(18), "did you mean 'Softmax' of domain 'ai.onnx'?"),
            ("", "FastGelu", Some(18), "did you mean 'FastGelu' of domain 'com.microsoft'?"),
            (
                "com.microsfot",
                "FastGelu",
                None,
                "did you mean 'FastGelu' of domain 'com.microsoft'?",
            ),
            ("ai.onnx.ml", "Conv", Some(1), "did you mean 'Conv' of domain 'ai.onnx'?"),
            ("", "batchnormalisation", Some(18), "did you mean 'BatchNormalization'"),
            ("", "Gelu", Some(13), "it exists from version 20 on"),
        ] {
            let text = unknown(domain, name, opset);
            assert!(text.contains(part) && text.contains(name), "{text}");
        }
    }

    #[test]
    fn nothing_is_suggested_where_nothing_is_near() {
        for name in ["Frobnicate", "", "X", &"Conv".repeat(40)] {
            let text = unknown("com.acme", name, None);
            assert!(text.ends_with("is not supported"), "{text}");
        }
    }
}
