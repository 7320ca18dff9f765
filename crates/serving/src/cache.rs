//! The response cache: what a model has answered to equal requests, bounded by bytes, least recently used first out.

use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea_tensor::{ByteString, DataType, Tensor};
use lru::LruCache;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::error::ServingError;
use crate::request::{InferenceRequest, InputData, OutputTensor, ParameterValue};

/// Bytes that an entry takes beside its tensors' elements and names: key, links and the tensors themselves.
const ENTRY_BYTES: usize = 256;

/// Digest that tells requests apart: a keyed 128-bit digest of the loaded version and everything of the request that
/// its answer may depend on. Triton's own key leaves out shapes, types and the wanted outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestDigest(u64, u64);

struct CachedResponse {
    outputs: Arc<Vec<OutputTensor>>,
    bytes: usize,
}

struct ResponseCacheState {
    entries: LruCache<RequestDigest, CachedResponse>,
    bytes: usize,
    hits: u64,
    misses: u64,
    evictions: u64,
    lookup: Duration,
    insertion: Duration,
}

/// Contents and counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Bytes that it may hold.
    pub capacity: usize,
    /// Bytes that it holds.
    pub bytes: usize,
    /// Answers that it holds.
    pub entries: usize,
    /// Look-ups that found an answer.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Answers that made room for others.
    pub evictions: u64,
    /// Time of all look-ups.
    pub lookup: Duration,
    /// Time of all insertions.
    pub insertion: Duration,
}

/// A cache that all models of a server share.
pub struct ResponseCache {
    capacity: usize,
    secret: (u64, u64),
    state: Mutex<ResponseCacheState>,
}

impl std::fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseCache").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl ResponseCache {
    /// An empty cache of this many bytes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        // The standard library's hasher is keyed at random; its first digests make a key of their own.
        let random = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
        Self {
            capacity,
            secret: (random(), random()),
            state: Mutex::new(ResponseCacheState {
                entries: LruCache::unbounded(),
                bytes: 0,
                hits: 0,
                misses: 0,
                evictions: 0,
                lookup: Duration::ZERO,
                insertion: Duration::ZERO,
            }),
        }
    }

    /// The key of a checked request to a model version, which stands for the loads that its answers come from: what
    /// was answered before a model was loaded anew is never found again.
    pub(crate) fn key(&self, loads: &[u64], request: &InferenceRequest) -> RequestDigest {
        let mut digest = ResponseDigest(SipHasher13::new_with_keys(self.secret.0, self.secret.1));
        digest.number(loads.len());
        loads.iter().for_each(|&load| digest.0.write_u64(load));
        let mut inputs: Vec<_> = request.inputs.iter().collect();
        inputs.sort_by(|a, b| a.name.cmp(&b.name));
        digest.number(inputs.len());
        for input in inputs {
            digest.text(&input.name);
            digest.text(input.datatype.wire_name());
            digest.number(input.shape.len());
            input.shape.iter().for_each(|dim| digest.0.write_i64(*dim));
            digest.data(&input.data);
        }
        let mut outputs: Vec<&String> = request.requested_outputs.iter().collect();
        outputs.sort();
        digest.number(outputs.len());
        outputs.into_iter().for_each(|output| digest.text(output));
        let mut parameters: Vec<_> = request.parameters.iter().collect();
        parameters.sort_by(|a, b| a.0.cmp(&b.0));
        digest.number(parameters.len());
        for (name, value) in parameters {
            digest.text(name);
            digest.parameter(value);
        }
        let digest = digest.0.finish128();
        RequestDigest(digest.h1, digest.h2)
    }

    /// The outputs that were answered to an equal request.
    pub(crate) fn get(&self, key: RequestDigest) -> Option<Arc<Vec<OutputTensor>>> {
        let start = Instant::now();
        let mut state = self.state();
        let found = state.entries.get(&key).map(|entry| Arc::clone(&entry.outputs));
        let count = if found.is_some() { &mut state.hits } else { &mut state.misses };
        *count += 1;
        state.lookup += start.elapsed();
        found
    }

    /// Contents and counters of the cache.
    #[must_use]
    pub fn usage(&self) -> CacheUse {
        let state = self.state();
        CacheUse {
            capacity: self.capacity,
            bytes: state.bytes,
            entries: state.entries.len(),
            hits: state.hits,
            misses: state.misses,
            evictions: state.evictions,
            lookup: state.lookup,
            insertion: state.insertion,
        }
    }

    /// Keeps the outputs of an answer, which may drive others out.
    ///
    /// # Errors
    /// When they are larger than the whole cache.
    pub(crate) fn insert(
        &self,
        key: RequestDigest,
        outputs: &[OutputTensor],
    ) -> Result<(), ServingError> {
        let start = Instant::now();
        let bytes = outputs.iter().map(size).sum::<usize>() + ENTRY_BYTES;
        if bytes > self.capacity {
            return Err(ServingError::internal(format!(
                "Failed to insert key into response cache: the entry has {bytes} bytes, the cache {}",
                self.capacity
            )));
        }
        // Outputs may be windows on those of a whole batch, which an entry must not keep.
        let outputs: Result<Vec<OutputTensor>, ServingError> = outputs.iter().map(copied).collect();
        let entry = CachedResponse { outputs: Arc::new(outputs?), bytes };
        let mut state = self.state();
        if let Some(before) = state.entries.put(key, entry) {
            state.bytes -= before.bytes;
        }
        state.bytes += bytes;
        while state.bytes > self.capacity {
            let Some((_, oldest)) = state.entries.pop_lru() else { break };
            state.bytes -= oldest.bytes;
            state.evictions += 1;
        }
        state.insertion += start.elapsed();
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, ResponseCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ResponseDigest(SipHasher13);

impl ResponseDigest {
    fn number(&mut self, number: usize) {
        self.0.write_u64(number as u64);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.write(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn data(&mut self, data: &InputData) {
        match data {
            InputData::Raw(raw) => self.bytes(raw),
            InputData::Tensor(tensor) => match tensor.to_vec::<ByteString>() {
                Ok(strings) if tensor.dtype() == DataType::Bytes => {
                    // As on the wire, where each string follows its length.
                    let bytes: usize = strings.iter().map(|text| text.as_bytes().len() + 4).sum();
                    self.number(bytes);
                    for text in strings {
                        let length = u32::try_from(text.as_bytes().len()).unwrap_or(u32::MAX);
                        self.0.write(&length.to_le_bytes());
                        self.0.write(text.as_bytes());
                    }
                }
                _ => match tensor.contiguous() {
                    Ok(tensor) => self.bytes(tensor.as_bytes().unwrap_or_default()),
                    Err(_) => self.bytes(&[]),
                },
            },
        }
    }

    fn parameter(&mut self, value: &ParameterValue) {
        match value {
            ParameterValue::Bool(value) => self.0.write_u16(u16::from(*value)),
            ParameterValue::Int(value) => self.text(&format!("i{value}")),
            ParameterValue::Uint(value) => self.text(&format!("u{value}")),
            ParameterValue::Double(value) => self.text(&format!("d{}", value.to_bits())),
            ParameterValue::String(value) => self.text(&format!("s{value}")),
        }
    }
}

fn size(output: &OutputTensor) -> usize {
    let tensor = &output.tensor;
    let elements = match tensor.dtype().size_bytes() {
        Some(size) => tensor.elements().saturating_mul(size),
        None => tensor.to_vec::<ByteString>().map_or(usize::MAX / 4, |strings| {
            strings.iter().map(|text| text.as_bytes().len() + size_of::<ByteString>()).sum()
        }),
    };
    elements.saturating_add(output.name.len()).saturating_add(ENTRY_BYTES)
}

fn copied(output: &OutputTensor) -> Result<OutputTensor, ServingError> {
    let tensor = &output.tensor;
    let name = output.name.clone();
    let tensor = if tensor.dtype() == DataType::Bytes {
        Tensor::from_vec(tensor.shape(), tensor.to_vec::<ByteString>()?)?
    } else {
        Tensor::from_bytes(tensor.dtype(), tensor.shape(), tensor.contiguous()?.as_bytes()?)?
    };
    Ok(OutputTensor { name, tensor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::InputTensor;

    fn request(values: &[f32], shape: &[i64]) -> InferenceRequest {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let input = InputTensor {
            name: "I".to_owned(),
            datatype: DataType::Fp32,
            shape: shape.to_vec(),
            data: InputData::Raw(raw.into()),
        };
        InferenceRequest { inputs: vec![input], ..InferenceRequest::default() }
    }

    fn output(elements: usize) -> Vec<OutputTensor> {
        let tensor = Tensor::from_vec(&[elements], vec![1.0_f32; elements]).unwrap();
        vec![OutputTensor { name: "O".to_owned(), tensor }]
    }

    #[test]
    fn look_ups_and_evictions_are_counted() {
        let entry = ENTRY_BYTES + output(10).iter().map(size).sum::<usize>();
        let cache = ResponseCache::new(2 * entry);
        let keys = [1, 2, 3].map(|number| RequestDigest(number, 0));
        for key in keys {
            assert!(cache.get(key).is_none());
            cache.insert(key, &output(10)).unwrap();
        }
        assert!(cache.get(keys[2]).is_some());
        let usage = cache.usage();
        assert_eq!((usage.hits, usage.misses, usage.evictions, usage.entries), (1, 3, 1, 2));
        assert_eq!((usage.bytes, usage.capacity), (2 * entry, 2 * entry));
        assert!(!usage.insertion.is_zero());
    }

    #[test]
    fn keys_tell_apart_all_that_an_answer_may_depend_on() {
        let cache = ResponseCache::new(1 << 20);
        let plain = request(&[1.0, 2.0], &[1, 2]);
        let key = |request: &InferenceRequest| cache.key(&[1], request);
        assert_eq!(key(&plain), key(&InferenceRequest { id: "x".to_owned(), ..plain.clone() }));
        let outputs = InferenceRequest { requested_outputs: vec!["O".to_owned()], ..plain.clone() };
        let parameter = ("p".to_owned(), ParameterValue::Int(1));
        let parameters = InferenceRequest { parameters: vec![parameter], ..plain.clone() };
        let mut renamed = plain.clone();
        renamed.inputs[0].name = "J".to_owned();
        let others = [
            request(&[1.0, 3.0], &[1, 2]),
            request(&[1.0, 2.0], &[2, 1]),
            outputs,
            parameters,
            renamed,
        ];
        for other in &others {
            assert_ne!(key(&plain), key(other), "{other:?}");
        }
        assert_ne!(key(&plain), cache.key(&[2], &plain));
        assert_ne!(key(&plain), cache.key(&[1, 2], &plain));
    }

    #[test]
    fn a_tensor_and_the_same_bytes_have_one_key() {
        let cache = ResponseCache::new(1 << 20);
        let raw = request(&[1.0, 2.0], &[1, 2]);
        let mut tensor = raw.clone();
        let values = Tensor::from_vec(&[1, 2], vec![1.0_f32, 2.0]).unwrap();
        tensor.inputs[0].data = InputData::Tensor(values);
        assert_eq!(cache.key(&[1], &raw), cache.key(&[1], &tensor));
    }

    #[test]
    fn the_least_recently_used_leaves_when_the_bytes_are_used_up() {
        let one = output(1000).iter().map(size).sum::<usize>() + ENTRY_BYTES;
        let cache = ResponseCache::new(2 * one);
        let keys: Vec<RequestDigest> = (0..3).map(|n| RequestDigest(n, 0)).collect();
        cache.insert(keys[0], &output(1000)).unwrap();
        cache.insert(keys[1], &output(1000)).unwrap();
        assert!(cache.get(keys[0]).is_some());
        cache.insert(keys[2], &output(1000)).unwrap();
        let there: Vec<bool> = keys.iter().map(|&key| cache.get(key).is_some()).collect();
        assert_eq!(there, [true, false, true]);
        cache.insert(keys[2], &output(1000)).unwrap();
        assert!(cache.state().bytes <= 2 * one);
        assert!(cache.insert(keys[1], &output(10_000)).is_err());
        assert!(cache.get(keys[0]).is_some());
    }
}
