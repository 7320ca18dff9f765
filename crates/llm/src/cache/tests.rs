use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;

const SIZE: usize = 4;

fn cache(count: usize) -> BlockCache {
    BlockCache::new(count, NonZeroUsize::new(SIZE).unwrap())
}

fn tokens(count: u32) -> Vec<u32> {
    (0..count).collect()
}

/// Opens a sequence and computes all its tokens.
fn computed(cache: &mut BlockCache, tokens: &[u32]) -> Option<BlockTable> {
    let mut table = cache.open(tokens, 0);
    if !cache.extend(&mut table, tokens.len()) {
        cache.close(table);
        return None;
    }
    cache.computed(&mut table, tokens);
    Some(table)
}

#[test]
fn whole_blocks_of_the_same_beginning_are_shared_but_never_the_last_token() {
    let mut cache = cache(8);
    let first = computed(&mut cache, &tokens(10)).unwrap();
    let second = cache.open(&tokens(9), 0);
    assert_eq!((second.blocks(), second.computed()), (&first.blocks()[..2], 8));
    // Its last token has to be computed, though the block is there.
    let third = cache.open(&tokens(8), 0);
    assert_eq!(third.blocks(), &first.blocks()[..1]);
    assert!(cache.open(&tokens(10), 7).blocks().is_empty());
    let other = [0, 1, 2, 3, 9, 9, 9, 9, 9];
    assert_eq!(cache.open(&other, 0).blocks(), &first.blocks()[..1]);
    assert_eq!(cache.statistics().active, 3);
    for table in [first, second, third] {
        cache.close(table);
    }
}

#[test]
fn contents_stay_until_room_is_needed_and_the_end_goes_first() {
    let mut cache = cache(4);
    let first = computed(&mut cache, &tokens(12)).unwrap();
    let blocks = first.blocks().to_vec();
    cache.close(first);
    assert_eq!(
        cache.statistics(),
        CacheStatistics { cached: 3, free: 1, looked_up: 12, ..Default::default() }
    );
    // Two new blocks: the free one, and that of the last positions.
    let other = computed(&mut cache, &[9; 8]).unwrap();
    assert!(other.blocks().contains(&blocks[2]));
    let again = cache.open(&tokens(12), 0);
    assert_eq!(again.blocks(), &blocks[..2]);
    assert_eq!(cache.statistics().found, 8);
    cache.close(again);
    cache.close(other);
    cache.clear();
    assert_eq!(cache.statistics().free, 4);
}

#[test]
fn a_table_that_cannot_grow_stays_as_it_is() {
    let mut cache = cache(3);
    let held = computed(&mut cache, &tokens(5)).unwrap();
    let mut table = cache.open(&[7; 9], 0);
    assert_eq!(cache.lacking(&table, 9), 3);
    assert!(!cache.extend(&mut table, 9));
    assert_eq!((table.blocks().len(), cache.available()), (0, 1));
    cache.close(held);
    assert!(cache.extend(&mut table, 9));
    cache.close(table);
}

#[test]
fn a_fork_shares_whole_blocks_and_copies_the_one_that_is_written() {
    let mut cache = cache(4);
    let first = computed(&mut cache, &tokens(6)).unwrap();
    let (second, copy) = cache.fork(&first).unwrap();
    let copy = copy.unwrap();
    assert_eq!(copy.from, first.blocks()[1]);
    assert_eq!(second.blocks(), [first.blocks()[0], copy.to]);
    assert_eq!(second.computed(), 6);
    let third = cache.fork(&first).unwrap().0;
    assert!(cache.fork(&first).is_none());
    for table in [first, second, third] {
        cache.close(table);
    }
    assert_eq!(cache.available(), 4);
}

#[test]
fn refused_drafts_are_forgotten_but_not_what_others_know() {
    let mut cache = cache(4);
    let mut table = computed(&mut cache, &tokens(11)).unwrap();
    cache.truncate(&mut table, 9);
    assert_eq!((table.blocks().len(), table.computed()), (3, 9));
    cache.truncate(&mut table, 2);
    assert_eq!((table.blocks().len(), table.computed()), (2, 8));
    cache.close(table);
}

#[derive(Clone, Debug)]
enum Act {
    Open(Vec<u32>),
    Grow(prop::sample::Index, u32),
    Fork(prop::sample::Index),
    Truncate(prop::sample::Index, usize),
    Close(prop::sample::Index),
}

fn act() -> impl Strategy<Value = Act> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        // Few different tokens, so that beginnings are often the same.
        prop::collection::vec(0..2_u32, 1..20).prop_map(Act::Open),
        (index(), 0..2_u32).prop_map(|(at, token)| Act::Grow(at, token)),
        index().prop_map(Act::Fork),
        (index(), 0..24_usize).prop_map(|(at, to)| Act::Truncate(at, to)),
        index().prop_map(Act::Close),
    ]
}

/// Content that a block was last written with: the tokens up to its end.
type Contents = Vec<Option<Vec<u32>>>;

fn check(cache: &BlockCache, held: &[(BlockTable, Vec<u32>)], contents: &Contents) {
    let mut holders = vec![0; contents.len()];
    for (table, tokens) in held {
        for (at, &block) in table.blocks().iter().enumerate() {
            holders[block] += 1;
            let end = ((at + 1) * SIZE).min(table.computed());
            if at * SIZE < end {
                let found = contents[block].as_ref().unwrap();
                assert!(found.starts_with(&tokens[..end]), "{found:?} for {tokens:?}");
            }
        }
        assert!(table.blocks().len() * SIZE >= table.computed());
    }
    let found: Vec<usize> = cache.blocks.iter().map(|block| block.holders).collect();
    assert_eq!(found, holders);
    let statistics = cache.statistics();
    assert_eq!(statistics.active, holders.iter().filter(|&&holders| holders > 0).count());
    assert_eq!(statistics.active + statistics.cached + statistics.free, contents.len());
}

/// Writes the positions that are computed now.
fn write(contents: &mut Contents, table: &BlockTable, from: usize, tokens: &[u32]) {
    for position in from..table.computed() {
        contents[table.blocks()[position / SIZE]] = Some(tokens[..=position].to_vec());
    }
}

proptest! {
    #[test]
    fn every_table_sees_what_it_wrote(acts in prop::collection::vec(act(), 1..80)) {
        let mut cache = cache(10);
        let mut contents: Contents = vec![None; 10];
        let mut held: Vec<(BlockTable, Vec<u32>)> = Vec::new();
        for act in acts {
            match act {
                Act::Open(tokens) => {
                    let mut table = cache.open(&tokens, 0);
                    let before = table.computed();
                    if cache.extend(&mut table, tokens.len()) {
                        cache.computed(&mut table, &tokens);
                        write(&mut contents, &table, before, &tokens);
                        held.push((table, tokens));
                    } else {
                        cache.close(table);
                    }
                }
                Act::Grow(at, token) if !held.is_empty() => {
                    let at = at.index(held.len());
                    let (table, tokens) = &mut held[at];
                    tokens.truncate(table.computed());
                    let before = table.computed();
                    if cache.extend(table, before + 1) {
                        tokens.push(token);
                        cache.computed(table, tokens);
                        write(&mut contents, table, before, tokens);
                    }
                }
                Act::Fork(at) if !held.is_empty() => {
                    let (table, tokens) = &held[at.index(held.len())];
                    if let Some((fork, copy)) = cache.fork(table) {
                        if let Some(copy) = copy {
                            contents[copy.to] = contents[copy.from].clone();
                        }
                        let tokens = tokens.clone();
                        held.push((fork, tokens));
                    }
                }
                Act::Truncate(at, to) if !held.is_empty() => {
                    let at = at.index(held.len());
                    cache.truncate(&mut held[at].0, to);
                }
                Act::Close(at) if !held.is_empty() => {
                    let at = at.index(held.len());
                    cache.close(held.swap_remove(at).0);
                }
                _ => {}
            }
            check(&cache, &held, &contents);
        }
    }
}
