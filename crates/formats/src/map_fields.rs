//! prost, with ordered maps in messages.
//!
//! A message that says `prost_path = "crate::map_fields"` (`galatea_formats::map_fields` elsewhere)
//! holds an [`OrderedMap`](galatea_tensor::OrderedMap) for each field that it calls a `btree_map`.
//! It says `skip_debug` too, because prost's own `Debug` names the type of the field.

pub use prost::*;

pub mod encoding {
    //! How fields are written and read: prost's functions, with others for maps.

    pub use prost::encoding::*;

    pub mod btree_map {
        //! Fields that are maps. Each pair is a message of its key and its value.

        use galatea_tensor::OrderedMap;
        use prost::DecodeError;
        use prost::bytes::{Buf, BufMut};
        use prost::encoding::{
            DecodeContext, WireType, decode_key, encode_key, encode_varint, encoded_len_varint,
            key_len, merge_loop, skip_field,
        };

        /// Writes a map's pairs. Keys and values that are their type's default are left out.
        pub fn encode<K: Default + Ord, V: Default + PartialEq, B: BufMut>(
            key_encode: impl Fn(u32, &K, &mut B),
            key_encoded_len: impl Fn(u32, &K) -> usize,
            value_encode: impl Fn(u32, &V, &mut B),
            value_encoded_len: impl Fn(u32, &V) -> usize,
            tag: u32,
            values: &OrderedMap<K, V>,
            buf: &mut B,
        ) {
            for (key, value) in values {
                let (key_bytes, value_bytes) =
                    (len_of(key, &key_encoded_len, 1), len_of(value, &value_encoded_len, 2));
                encode_key(tag, WireType::LengthDelimited, buf);
                encode_varint((key_bytes + value_bytes) as u64, buf);
                if key_bytes > 0 {
                    key_encode(1, key, buf);
                }
                if value_bytes > 0 {
                    value_encode(2, value, buf);
                }
            }
        }

        /// Bytes that a field of a pair takes: none for the default.
        fn len_of<T: Default + PartialEq>(
            field: &T,
            encoded_len: impl Fn(u32, &T) -> usize,
            tag: u32,
        ) -> usize {
            if *field == T::default() { 0 } else { encoded_len(tag, field) }
        }

        /// Bytes that [`encode`] writes.
        pub fn encoded_len<K: Default + Ord, V: Default + PartialEq>(
            key_encoded_len: impl Fn(u32, &K) -> usize,
            value_encoded_len: impl Fn(u32, &V) -> usize,
            tag: u32,
            values: &OrderedMap<K, V>,
        ) -> usize {
            let pair = |(key, value): (&K, &V)| {
                let bytes = len_of(key, &key_encoded_len, 1) + len_of(value, &value_encoded_len, 2);
                encoded_len_varint(bytes as u64) + bytes
            };
            key_len(tag) * values.len() + values.iter().map(pair).sum::<usize>()
        }

        /// Reads a pair into a map. Of equal keys the last value is kept.
        ///
        /// # Errors
        ///
        /// Bytes that are not a pair.
        pub fn merge<K: Default + Ord, V: Default, B: Buf>(
            key_merge: impl Fn(WireType, &mut K, &mut B, DecodeContext) -> Result<(), DecodeError>,
            value_merge: impl Fn(WireType, &mut V, &mut B, DecodeContext) -> Result<(), DecodeError>,
            values: &mut OrderedMap<K, V>,
            buf: &mut B,
            ctx: DecodeContext,
        ) -> Result<(), DecodeError> {
            let mut pair = (K::default(), V::default());
            // A message that is a value counts its own depth.
            merge_loop(&mut pair, buf, ctx, |pair, buf, ctx| {
                let (tag, wire_type) = decode_key(buf)?;
                match tag {
                    1 => key_merge(wire_type, &mut pair.0, buf, ctx),
                    2 => value_merge(wire_type, &mut pair.1, buf, ctx),
                    _ => skip_field(wire_type, tag, buf, ctx),
                }
            })?;
            values.insert(pair.0, pair.1);
            Ok(())
        }
    }
}
