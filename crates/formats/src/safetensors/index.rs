//! The index of a sharded checkpoint: which file has which tensor.

use std::fmt;
use std::path::{Component, Path};

use galatea_tensor::{OrderedMap, OrderedSet};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::checkpoint::{CheckpointError, FileSource};

/// Most bytes of an index; those of the largest checkpoints have a few million.
const MAX_INDEX: usize = 100_000_000;

/// Tensors by name, with the files they are in.
#[derive(Debug, Default)]
pub(super) struct ShardIndex {
    pub(super) shards: OrderedMap<String, OrderedSet<String>>,
}

impl ShardIndex {
    /// Reads an index file.
    pub(super) fn open(path: &Path) -> Result<Self, CheckpointError> {
        let source = FileSource::open(path)?;
        Self::parse(&source.bytes).map_err(|error| source.blame(error))
    }

    /// Reads the bytes of an index file.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, CheckpointError> {
        if bytes.len() > MAX_INDEX {
            let text = format!("an index of {} bytes, at most {MAX_INDEX} are read", bytes.len());
            return Err(CheckpointError::invalid(text));
        }
        let file: IndexFile = serde_json::from_slice(bytes)
            .map_err(|error| CheckpointError::invalid(format!("the index is damaged: {error}")))?;
        let mut shards: OrderedMap<String, OrderedSet<String>> = OrderedMap::new();
        for (name, shard) in file.weight_map.0 {
            if !is_file_name(&shard) {
                let text = format!("shard '{shard}' is not the name of a file beside the index");
                return Err(CheckpointError::invalid(text).at(format_args!("tensor '{name}'")));
            }
            shards.entry(shard).or_default().insert(name);
        }
        Ok(Self { shards })
    }
}

/// Returns whether a name stays in its folder. Links are followed: whoever owns the folder made them,
/// and the cache of Hugging Face's client consists of them.
fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
        && !name.contains('\\')
}

#[derive(Deserialize)]
struct IndexFile {
    weight_map: WeightMap,
    #[serde(rename = "metadata")]
    _metadata: Option<IgnoredAny>,
}

struct WeightMap(OrderedMap<String, String>);

impl<'de> Deserialize<'de> for WeightMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(WeightMapVisitor)
    }
}

struct WeightMapVisitor;

impl<'de> Visitor<'de> for WeightMapVisitor {
    type Value = WeightMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of file names by tensor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WeightMap, A::Error> {
        let mut all = OrderedMap::new();
        while let Some((name, shard)) = map.next_entry::<String, String>()? {
            if all.contains_key(&name) {
                return Err(A::Error::custom(format!("tensor '{name}' is given twice")));
            }
            all.insert(name, shard);
        }
        Ok(WeightMap(all))
    }
}
