//! Generates messages and clients of the gRPC front ends, without protoc.
//!
//! Run from anywhere: `cargo run --manifest-path crates/server/codegen/Cargo.toml`.

use std::error::Error;
use std::fs;
use std::path::Path;

use protox::prost::Message as _;

/// The messages of this file belong to the serving crate; the generated code refers to them there.
const SHARED: &str = "model_config.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let server = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("the generator lies in crates/server/codegen")?;
    let shared = server.with_file_name("serving").join("proto");
    let proto = server.join("proto");
    let out = server.join("src/grpc/proto");
    fs::create_dir_all(&out)?;
    let set = protox::compile(["grpc_service.proto", "health.proto"], [&proto, &shared])?;
    fs::write(out.join("descriptors.bin"), set.encode_to_vec())?;
    let mut builder = tonic_prost_build::configure()
        .out_dir(&out)
        .codec_path("crate::grpc::codec::ProstCodec")
        .build_transport(false)
        .build_server(false)
        .bytes(".");
    let names = set.file.iter().filter(|file| file.name() == SHARED).flat_map(|file| {
        let messages = file.message_type.iter().map(|message| message.name());
        messages.chain(file.enum_type.iter().map(|item| item.name()))
    });
    for name in names {
        builder = builder.extern_path(
            format!(".inference.{name}"),
            format!("::galatea_serving::config::inference::{name}"),
        );
    }
    builder.compile_fds(set)?;
    Ok(())
}
