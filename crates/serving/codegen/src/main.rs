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
    Ok(())
}
