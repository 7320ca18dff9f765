//! Any text as a `config.pbtxt`.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, MessageDescriptor};

static CONFIG: LazyLock<MessageDescriptor> = LazyLock::new(|| {
    let bytes: &[u8] = include_bytes!("../../../serving/src/config/model_config.bin");
    let pool = DescriptorPool::decode(bytes).expect("the committed descriptor decodes");
    pool.get_message_by_name("inference.ModelConfig").expect("it has ModelConfig")
});

/// Runs the fuzz target of this name on an input, and panics on a finding.
pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = galatea_formats::prototext::parse(text, &CONFIG);
}
