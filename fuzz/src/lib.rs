//! What the fuzz targets of models share: memory that is counted, and mutations that know what a
//! model is.

pub mod memory;

use bytes::Bytes;
use galatea_formats::onnx::proto::ModelProto;
use galatea_testkit::model_mutation;
use galatea_testkit::noise::NoiseGenerator;
use libfuzzer_sys::fuzzer_mutate;
use prost::Message;

/// Changes a model in `data[..size]`: as a message, or now and then as bytes.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut noise = NoiseGenerator::new(seed.into());
    let model = ModelProto::decode(Bytes::copy_from_slice(&data[..size]));
    let Some(mut model) = model.ok().filter(|_| !noise.once_in(8)) else {
        return fuzzer_mutate(data, size, max_size);
    };
    model_mutation::mutate(&mut model, &mut noise);
    put(&model, data, max_size).unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
}

/// Joins two models; 0 where that is impossible.
pub fn cross(first: &[u8], second: &[u8], out: &mut [u8], seed: u32) -> usize {
    let mut noise = NoiseGenerator::new(seed.into());
    let decode = |bytes| ModelProto::decode(Bytes::copy_from_slice(bytes)).ok();
    let (Some(mut model), Some(other)) = (decode(first), decode(second)) else { return 0 };
    model_mutation::join(&mut model, &other, &mut noise);
    let room = out.len();
    put(&model, out, room).unwrap_or(0)
}

fn put(model: &ModelProto, out: &mut [u8], room: usize) -> Option<usize> {
    let bytes = model.encode_to_vec();
    if bytes.is_empty() || bytes.len() > room {
        return None;
    }
    out[..bytes.len()].copy_from_slice(&bytes);
    Some(bytes.len())
}
