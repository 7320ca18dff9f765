//! Ordered maps and sets beside those of the standard library.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use galatea_tensor::{OrderedEntry, OrderedMap, OrderedSet};
use proptest::collection::vec;
use proptest::prelude::*;

/// One change of a map.
#[derive(Clone, Debug)]
enum MapChange {
    Insert(u16, u32),
    Remove(u16),
    EntryOrInsert(u16, u32),
    EntryModify(u16),
    EntryRemove(u16),
    GetMut(u16),
    PopFirst,
    PopLast,
    RetainBelow(u16),
    SplitAndAppend(u16),
    Clear,
}

fn map_change(keys: u16) -> impl Strategy<Value = MapChange> {
    prop_oneof![
        40 => (0..keys, any::<u32>()).prop_map(|(key, value)| MapChange::Insert(key, value)),
        12 => (0..keys).prop_map(MapChange::Remove),
        10 => (0..keys, any::<u32>()).prop_map(|(key, value)| MapChange::EntryOrInsert(key, value)),
        5 => (0..keys).prop_map(MapChange::EntryModify),
        5 => (0..keys).prop_map(MapChange::EntryRemove),
        5 => (0..keys).prop_map(MapChange::GetMut),
        4 => Just(MapChange::PopFirst),
        4 => Just(MapChange::PopLast),
        1 => (0..keys).prop_map(MapChange::RetainBelow),
        1 => (0..keys).prop_map(MapChange::SplitAndAppend),
        1 => Just(MapChange::Clear),
    ]
}

/// Makes one change of both maps and compares what it returns.
fn change_both(ours: &mut OrderedMap<u16, u32>, std: &mut BTreeMap<u16, u32>, change: &MapChange) {
    match *change {
        MapChange::Insert(key, value) => {
            assert_eq!(ours.insert(key, value), std.insert(key, value));
        }
        MapChange::Remove(key) => assert_eq!(ours.remove(&key), std.remove(&key)),
        MapChange::EntryOrInsert(key, value) => {
            assert_eq!(ours.entry(key).or_insert(value), std.entry(key).or_insert(value));
        }
        MapChange::EntryModify(key) => {
            let more = |value: &mut u32| *value = value.wrapping_add(1);
            let [a, b] = [
                ours.entry(key).and_modify(more).or_default(),
                std.entry(key).and_modify(more).or_default(),
            ];
            assert_eq!(a, b);
        }
        MapChange::EntryRemove(key) => {
            let removed = match ours.entry(key) {
                OrderedEntry::Occupied(held) => Some(held.remove()),
                OrderedEntry::Vacant(missing) => {
                    assert_eq!(*missing.key(), key);
                    None
                }
            };
            assert_eq!(removed, std.remove(&key));
        }
        MapChange::GetMut(key) => {
            for value in [ours.get_mut(&key), std.get_mut(&key)].into_iter().flatten() {
                *value ^= 1;
            }
        }
        MapChange::PopFirst => assert_eq!(ours.pop_first(), std.pop_first()),
        MapChange::PopLast => assert_eq!(ours.pop_last(), std.pop_last()),
        MapChange::RetainBelow(limit) => {
            ours.retain(|key, value| *key < limit || value.is_multiple_of(2));
            std.retain(|key, value| *key < limit || value.is_multiple_of(2));
        }
        MapChange::SplitAndAppend(key) => {
            let [mut behind, mut std_behind] = [ours.split_off(&key), OrderedMap::new()];
            std_behind.extend(std.split_off(&key));
            assert_eq!(behind, std_behind);
            std.extend(std_behind);
            ours.append(&mut behind);
            assert!(behind.is_empty());
        }
        MapChange::Clear => {
            ours.clear();
            std.clear();
        }
    }
}

/// Compares everything that can be read of two maps.
fn assert_same(ours: &OrderedMap<u16, u32>, std: &BTreeMap<u16, u32>) {
    assert_eq!(ours.len(), std.len());
    assert_eq!(ours.is_empty(), std.is_empty());
    assert!(ours.iter().eq(std.iter()), "{ours:?} and {std:?}");
    assert!(ours.iter().rev().eq(std.iter().rev()));
    assert!(ours.keys().eq(std.keys()));
    assert!(ours.values().rev().eq(std.values().rev()));
    assert_eq!(ours.first_key_value(), std.first_key_value());
    assert_eq!(ours.last_key_value(), std.last_key_value());
    assert_eq!(format!("{ours:?}"), format!("{std:?}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_map_holds_what_the_standard_map_holds_after_any_changes(
        changes in vec(map_change(600), 0..1500),
        asked in vec(0..620_u16, 20),
    ) {
        let (mut ours, mut std) = (OrderedMap::new(), BTreeMap::new());
        for change in &changes {
            change_both(&mut ours, &mut std, change);
        }
        assert_same(&ours, &std);
        for key in &asked {
            prop_assert_eq!(ours.get(key), std.get(key));
            prop_assert_eq!(ours.contains_key(key), std.contains_key(key));
            prop_assert_eq!(ours.get_key_value(key), std.get_key_value(key));
        }
        prop_assert!(ours.clone().into_iter().eq(std.clone()));
        prop_assert!(ours.clone().into_iter().rev().eq(std.clone().into_iter().rev()));
        prop_assert!(ours.clone().into_keys().eq(std.clone().into_keys()));
        ours.iter_mut().for_each(|(key, value)| *value = u32::from(*key));
        std.iter_mut().for_each(|(key, value)| *value = u32::from(*key));
        ours.values_mut().rev().take(3).for_each(|value| *value += 1);
        std.values_mut().rev().take(3).for_each(|value| *value += 1);
        assert_same(&ours, &std);
    }

    #[test]
    fn iterators_from_both_ends_meet(len in 0..300_u16, from_back in vec(any::<bool>(), 310)) {
        let ours: OrderedMap<u16, u16> = (0..len).map(|key| (key, key)).collect();
        let std: BTreeMap<u16, u16> = (0..len).map(|key| (key, key)).collect();
        let (mut a, mut b) = (ours.iter(), std.iter());
        let (mut owned_a, mut owned_b) = (ours.clone().into_iter(), std.clone().into_iter());
        for back in from_back {
            prop_assert_eq!(a.len(), b.len());
            prop_assert_eq!(owned_a.size_hint(), owned_b.size_hint());
            if back {
                prop_assert_eq!(a.next_back(), b.next_back());
                prop_assert_eq!(owned_a.next_back(), owned_b.next_back());
            } else {
                prop_assert_eq!(a.next(), b.next());
                prop_assert_eq!(owned_a.next(), owned_b.next());
            }
        }
    }

    #[test]
    fn ranges_hold_the_keys_of_the_standard_ranges(
        keys in vec(0..400_u16, 0..300),
        bounds in vec(0..400_u16, 2),
    ) {
        let ours: OrderedMap<u16, ()> = keys.iter().map(|key| (*key, ())).collect();
        let std: BTreeMap<u16, ()> = keys.iter().map(|key| (*key, ())).collect();
        let (low, high) = (bounds[0].min(bounds[1]), bounds[0].max(bounds[1]));
        prop_assert!(ours.range(low..high).eq(std.range(low..high)));
        prop_assert!(ours.range(low..=high).rev().eq(std.range(low..=high).rev()));
        prop_assert!(ours.range(..low).eq(std.range(..low)));
        prop_assert!(ours.range(high..).eq(std.range(high..)));
        if low < high {
            let bounds = (Bound::Excluded(low), Bound::Excluded(high));
            prop_assert!(ours.range(bounds).eq(std.range(bounds)));
        }
    }

    #[test]
    fn a_set_holds_what_the_standard_set_holds(
        items in vec("[a-c]{0,3}", 0..120),
        others in vec("[a-c]{0,3}", 0..60),
    ) {
        let mut ours: OrderedSet<String> = items.iter().cloned().collect();
        let mut std: BTreeSet<String> = items.iter().cloned().collect();
        let other: OrderedSet<String> = others.iter().cloned().collect();
        let std_other: BTreeSet<String> = others.iter().cloned().collect();
        prop_assert!(ours.difference(&other).eq(std.difference(&std_other)));
        prop_assert!(ours.intersection(&other).eq(std.intersection(&std_other)));
        prop_assert_eq!(ours.is_subset(&other), std.is_subset(&std_other));
        prop_assert_eq!(ours.is_disjoint(&other), std.is_disjoint(&std_other));
        prop_assert_eq!(ours.cmp(&other), std.cmp(&std_other));
        for item in &others {
            prop_assert_eq!(ours.contains(item.as_str()), std.contains(item.as_str()));
            prop_assert_eq!(ours.remove(item), std.remove(item));
            prop_assert_eq!(ours.insert(item.repeat(2)), std.insert(item.repeat(2)));
            prop_assert_eq!(ours.get(item), std.get(item));
        }
        ours.retain(|item| item.len() > 1);
        std.retain(|item| item.len() > 1);
        prop_assert_eq!([ours.first(), ours.last()], [std.first(), std.last()]);
        prop_assert!(ours.range("b".to_owned()..).eq(std.range("b".to_owned()..)));
        prop_assert_eq!([ours.pop_first(), ours.pop_last()], [std.pop_first(), std.pop_last()]);
        prop_assert_eq!(format!("{ours:?}"), format!("{std:?}"));
        prop_assert!(ours.into_iter().eq(std));
    }

    #[test]
    fn equal_maps_are_equal_however_they_were_made(keys in vec(any::<u16>(), 0..400)) {
        let rising: OrderedMap<u16, ()> =
            keys.iter().collect::<BTreeSet<_>>().into_iter().map(|key| (*key, ())).collect();
        let mixed: OrderedMap<u16, ()> = keys.iter().map(|key| (*key, ())).collect();
        prop_assert_eq!(&rising, &mixed);
        prop_assert_eq!(rising.partial_cmp(&mixed), Some(std::cmp::Ordering::Equal));
    }
}

#[test]
fn keys_that_rise_fill_every_chunk_and_leave_it_in_order() {
    let mut map = OrderedMap::new();
    for key in 0..60_000_u32 {
        map.insert(key, key);
    }
    for key in 0..60_000 {
        assert_eq!(map.pop_first(), Some((key, key)));
    }
    assert_eq!(map.pop_first(), None);
}

#[test]
fn a_map_is_indexed_by_its_keys() {
    let map = OrderedMap::from([("a", 1), ("b", 2), ("a", 3)]);
    assert_eq!((map["a"], map["b"], map.len()), (3, 2, 2));
}

#[test]
#[should_panic(expected = "the map holds the key")]
fn indexing_with_a_missing_key_panics() {
    let map: OrderedMap<String, u32> = OrderedMap::new();
    let _ = map["missing"];
}

#[test]
fn a_range_whose_end_is_before_its_begin_is_empty() {
    let map: OrderedMap<u32, ()> = (0..200).map(|key| (key, ())).collect();
    let bounds = (Bound::Included(150), Bound::Excluded(20));
    assert_eq!(map.range(bounds).len(), 0);
    assert_eq!(OrderedMap::<u32, ()>::new().range(3..).len(), 0);
}
