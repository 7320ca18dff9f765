//! Any text as a `config.pbtxt`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use prost_reflect::{DescriptorPool, MessageDescriptor};

static CONFIG: LazyLock<MessageDescriptor> = LazyLock::new(|| {
    let bytes: &[u8] = include_bytes!("../../crates/serving/src/config/model_config.bin");
    let pool = DescriptorPool::decode(bytes).expect("the committed descriptor decodes");
    pool.get_message_by_name("inference.ModelConfig").expect("it has ModelConfig")
});

fuzz_target!(|text: &str| {
    let _ = galatea_formats::prototext::parse(text, &CONFIG);
});
