//! Generates the message structs and the descriptor set of `model_config.proto`, without protoc.
//!
//! Run from anywhere: `cargo run --manifest-path crates/serving/codegen/Cargo.toml`.

use std::error::Error;
use std::fs;
use std::path::Path;

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let serving = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the generator lies in crates/serving/codegen")?;
    let proto = serving.join("proto");
    let out = serving.join("src/config");
    let set = protox::compile(["model_config.proto"], [&proto])?;
    // Source positions and comments would double the size of what every program carries.
    let mut bare = set.clone();
    for file in &mut bare.file {
        file.source_code_info = None;
    }
    fs::write(out.join("model_config.bin"), bare.encode_to_vec())?;
    let mut config = prost_build::Config::new();
    config.out_dir(&out).btree_map(["."]).format(true);
    config.compile_fds(set)?;
    let made = out.join("inference.rs");
    fs::write(&made, with_ordered_maps(&fs::read_to_string(&made)?))?;
    Ok(())
}

/// What prost writes before a message.
const DERIVED: &str = "#[derive(Clone, PartialEq, ::prost::Message)]";
/// What stands before a message that has maps.
const WITH_MAPS: &str = "#[derive(Clone, Debug, PartialEq, ::prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = \"::galatea_formats::map_fields\")]";

/// Puts ordered maps in the place of the standard library's, which take long to compile.
fn with_ordered_maps(code: &str) -> String {
    let mut pieces = code.split(DERIVED);
    let mut all = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let indent: String = all.chars().rev().take_while(|c| *c == ' ').collect();
        let fields = piece.split_once(&format!("\n{indent}}}")).map_or(piece, |(fields, _)| fields);
        match fields.contains("btree_map = ") {
            true => all += &WITH_MAPS.replace('\n', &format!("\n{indent}")),
            false => all += DERIVED,
        }
        all += piece;
    }
    all.replace("::prost::alloc::collections::BTreeMap", "::galatea_tensor::OrderedMap")
}
