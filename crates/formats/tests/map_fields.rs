//! Messages with ordered maps beside prost's own.

use std::collections::BTreeMap;

use galatea_tensor::OrderedMap;
use proptest::prelude::*;
use prost::Message as _;

#[derive(Clone, Debug, PartialEq, prost::Message)]
#[prost(skip_debug)]
#[prost(prost_path = "galatea_formats::map_fields")]
struct OrderedFields {
    #[prost(btree_map = "string, int64", tag = "3")]
    counts: OrderedMap<String, i64>,
    #[prost(btree_map = "uint64, message", tag = "9")]
    nested: OrderedMap<u64, OrderedFields>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct StandardFields {
    #[prost(btree_map = "string, int64", tag = "3")]
    counts: BTreeMap<String, i64>,
    #[prost(btree_map = "uint64, message", tag = "9")]
    nested: BTreeMap<u64, StandardFields>,
}

impl StandardFields {
    fn ordered(&self) -> OrderedFields {
        let nested = self.nested.iter().map(|(key, value)| (*key, value.ordered()));
        OrderedFields {
            counts: self.counts.clone().into_iter().collect(),
            nested: nested.collect(),
        }
    }
}

fn fields() -> impl Strategy<Value = StandardFields> {
    let counts = || proptest::collection::btree_map("[a-b]{0,2}", -2..300_i64, 0..5);
    let leaf = counts().prop_map(|counts| StandardFields { counts, nested: BTreeMap::new() });
    leaf.prop_recursive(3, 12, 3, move |inner| {
        (counts(), proptest::collection::btree_map(0..400_u64, inner, 0..3))
            .prop_map(|(counts, nested)| StandardFields { counts, nested })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn bytes_are_those_of_prost(standard in fields()) {
        let ordered = standard.ordered();
        let bytes = standard.encode_to_vec();
        prop_assert_eq!(ordered.encoded_len(), bytes.len());
        prop_assert_eq!(&ordered.encode_to_vec(), &bytes);
        prop_assert_eq!(OrderedFields::decode(&bytes[..]).unwrap(), ordered);
    }

    #[test]
    fn wrong_bytes_are_refused_as_prost_refuses_them(
        standard in fields(),
        cut in any::<proptest::sample::Index>(),
        changed in any::<u8>(),
    ) {
        let mut bytes = standard.encode_to_vec();
        bytes.push(0);
        let at = cut.index(bytes.len());
        let ours = OrderedFields::decode(&bytes[..at]).ok();
        let prosts = StandardFields::decode(&bytes[..at]).ok();
        prop_assert_eq!(ours, prosts.map(|found| found.ordered()));
        bytes[at] = changed;
        let ours = OrderedFields::decode(&bytes[..]).ok();
        let prosts = StandardFields::decode(&bytes[..]).ok();
        prop_assert_eq!(ours, prosts.map(|found| found.ordered()));
    }
}

#[test]
fn the_last_of_equal_keys_is_kept() {
    let pair = |value| [0x1a, 5, 0x0a, 1, b'k', 0x10, value];
    let bytes = [pair(1), pair(2)].concat();
    let found = OrderedFields::decode(&bytes[..]).unwrap();
    assert_eq!(found.counts, OrderedMap::from([("k".to_owned(), 2)]));
}

#[test]
fn messages_that_lie_too_deep_are_refused() {
    let mut deep = OrderedFields::default();
    for _ in 0..200 {
        deep = OrderedFields { nested: OrderedMap::from([(1, deep)]), ..OrderedFields::default() };
    }
    let bytes = deep.encode_to_vec();
    assert!(OrderedFields::decode(&bytes[..]).unwrap_err().to_string().contains("recursion limit"));
}
