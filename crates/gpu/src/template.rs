//! WGSL from templates.
//!
//! A kernel's `.wgsl` file is a Jinja template: sizes of tiles and types of elements are filled in, loops
//! over registers are written out, and forms that a device lacks are left out. What remains is plain
//! WGSL, the same for Metal and Vulkan.

use std::sync::OnceLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

/// Extensions that WGSL requires a shader to declare first, by a word that such a shader contains.
const EXTENSIONS: &[(&str, &str)] = &[("f16", "f16"), ("coop_mat", "wgpu_cooperative_matrix")];

/// Parts that several kernels include: `{% include "NAME" %}`.
const PARTS: &[(&str, &str)] = &[
    ("attention/blocks_params", include_str!("attention/blocks_params.wgsl")),
    ("attention/blocks_tile", include_str!("attention/blocks_tile.wgsl")),
    ("attention/loads", include_str!("attention/loads.wgsl")),
    ("attention/params", include_str!("attention/params.wgsl")),
    ("blocks/codes", include_str!("blocks/codes.wgsl")),
    ("blocks/entries", include_str!("blocks/entries.wgsl")),
    ("blocks/gate", include_str!("blocks/gate_part.wgsl")),
    ("blocks/params", include_str!("blocks/params.wgsl")),
    ("blocks/quad", include_str!("blocks/quad.wgsl")),
    ("blocks/store", include_str!("blocks/store.wgsl")),
    ("conv/added", include_str!("conv/added.wgsl")),
    ("conv/lengths", include_str!("conv/lengths.wgsl")),
    ("conv/gemm_params", include_str!("conv/gemm_params.wgsl")),
    ("conv/result", include_str!("conv/result.wgsl")),
    ("conv/winograd_params", include_str!("conv/winograd_params.wgsl")),
    ("matmul/activation", include_str!("matmul/activation.wgsl")),
    ("matmul/bindings", include_str!("matmul/bindings.wgsl")),
    ("matmul/operands", include_str!("matmul/operands.wgsl")),
    ("matmul/result", include_str!("matmul/result.wgsl")),
    ("matmul/work", include_str!("matmul/work.wgsl")),
];

fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        match SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
            Ok(syntax) => environment.set_syntax(syntax),
            Err(error) => tracing::error!(%error, "kernels keep blank lines"),
        }
        for (name, text) in PARTS {
            if let Err(error) = environment.add_template(name, text) {
                tracing::error!(name, %error, "a part of kernels does not parse");
            }
        }
        environment
    })
}

/// The WGSL of a template.
///
/// # Errors
/// Fails when the template is wrong or asks for a value that `context` lacks.
pub fn render(template: &str, context: Value) -> Result<String, String> {
    let body = environment().render_str(template, context);
    let body = body.map_err(|error| format!("{error:#}"))?;
    let mut text = String::with_capacity(body.len() + 64);
    for (word, extension) in EXTENSIONS {
        if body.contains(word) {
            text.push_str("enable ");
            text.push_str(extension);
            text.push_str(";\n");
        }
    }
    text.push_str(&body);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[test]
    fn loops_are_written_out_and_extensions_announced() {
        let text = render(
            "{% for i in range(2) %}\nx{{ i }}: {{ t }};\n{% endfor %}\n",
            context!(t => "f16"),
        );
        assert_eq!(text.unwrap(), "enable f16;\nx0: f16;\nx1: f16;\n");
    }

    #[test]
    fn a_value_that_is_not_given_is_an_error() {
        assert!(render("{{ nothing }}", context!()).is_err());
    }
}
