use std::collections::HashSet;
use std::num::NonZeroUsize;

use galatea_tensor::OrderedMap;
use proptest::prelude::*;

use super::*;

fn scheduler(blocks: usize, size: usize, max_sequences: usize, tokens: usize) -> SequenceScheduler {
    swapping(blocks, size, max_sequences, tokens, SwapLimits::default())
}

/// A scheduler that keeps blocks of preempted sequences.
fn swapping(
    blocks: usize,
    size: usize,
    max_sequences: usize,
    max_batched_tokens: usize,
    swap: SwapLimits,
) -> SequenceScheduler {
    let limits = StepLimits { max_sequences, max_batched_tokens, prefix_caching: true, swap };
    SequenceScheduler::new(limits, BlockCache::new(blocks, NonZeroUsize::new(size).unwrap()))
}

/// Arrivals at some step.
#[derive(Clone, Debug)]
struct Visit {
    step: usize,
    prompt: Vec<u32>,
    generate: usize,
    client: u64,
    priority: i32,
    salt: u64,
    every_row: bool,
    forks: usize,
    /// The step at which it goes away.
    leaves: Option<usize>,
}

fn visit() -> impl Strategy<Value = Visit> {
    // Few different tokens, so that prompts often begin alike.
    let prompt = prop::collection::vec(0..2_u32, 1..24);
    let owner = (0..3_u64, 0..3_i32, 0..2_u64);
    let more = (prop::bool::weighted(0.1), 0..3_usize, prop::option::weighted(0.2, 0..60_usize));
    (0..40_usize, prompt, 1..12_usize, owner, more).prop_map(
        |(step, prompt, generate, (client, priority, salt), (every_row, forks, leaves))| Visit {
            step,
            prompt,
            generate,
            client,
            priority,
            salt,
            every_row,
            forks,
            leaves,
        },
    )
}

/// A sequence as the driver sees it.
#[derive(Debug)]
struct Guest {
    visit: usize,
    tokens: Vec<u32>,
    left: usize,
    forks: usize,
}

/// A position of a block: what was written there last.
type Place = Option<(u64, usize, u32)>;

/// Drives a scheduler with a model that keeps what is written into its blocks.
struct Driver {
    scheduler: SequenceScheduler,
    size: usize,
    places: Vec<Place>,
    /// Data outside the caches.
    store: Vec<Place>,
    guests: OrderedMap<SequenceId, Guest>,
    visits: Vec<Visit>,
    next: SequenceId,
    finished: Vec<SequenceId>,
}

/// The token that follows, and drafts for it that are sometimes right.
fn follow(tokens: &[u32]) -> u32 {
    tokens.iter().fold(7_u32, |state, token| state.wrapping_mul(31).wrapping_add(*token)) % 2
}

impl Driver {
    fn read(&self, id: SequenceId, salt: u64, tokens: &[u32]) {
        let blocks = self.scheduler.blocks(id);
        for (position, &token) in tokens.iter().enumerate() {
            let place = blocks[position / self.size] * self.size + position % self.size;
            assert_eq!(self.places[place], Some((salt, position, token)), "sequence {id}");
        }
    }

    fn write(&mut self, rows: &PlannedRows, salt: u64) {
        let tokens = self.scheduler.tokens(rows.id).to_vec();
        let drafts = self.scheduler.drafts(rows.id).to_vec();
        let all: Vec<u32> = tokens.into_iter().chain(drafts).collect();
        let blocks = self.scheduler.blocks(rows.id);
        for position in rows.from..rows.from + rows.count {
            let place = blocks[position / self.size] * self.size + position % self.size;
            self.places[place] = Some((salt, position, all[position]));
        }
    }

    fn swap(&mut self, swap: BlockSwap) {
        let range = |at: usize| at * self.size..(at + 1) * self.size;
        match swap {
            BlockSwap::Out { block, slot } => {
                self.store[range(slot)].copy_from_slice(&self.places[range(block)]);
            }
            BlockSwap::In { slot, block } => {
                self.places[range(block)].copy_from_slice(&self.store[range(slot)]);
            }
        }
    }

    fn arrive(&mut self, at: usize) {
        let visit = &self.visits[at];
        let id = self.next;
        self.next += 1 + visit.forks as u64;
        self.scheduler.add(ArrivingSequence {
            id,
            tokens: visit.prompt.clone(),
            client: visit.client,
            priority: visit.priority,
            salt: visit.salt,
            every_row: visit.every_row,
        });
        let tokens = visit.prompt.clone();
        let left = visit.generate;
        let forks = visit.forks;
        self.guests.insert(id, Guest { visit: at, tokens, left, forks });
    }

    fn step(&mut self) {
        let limits = self.scheduler.limits;
        let plan = self.scheduler.plan();
        assert_eq!(plan.rows.is_empty(), self.guests.is_empty());
        assert!(plan.tokens() <= limits.max_batched_tokens, "{plan:?}");
        assert!(self.scheduler.running() <= limits.max_sequences);
        // Every third step takes long, so that there is room for less.
        let long = if self.next.is_multiple_of(3) { 50 } else { 0 };
        self.scheduler.note_time(std::time::Duration::from_secs(long));
        let planned: HashSet<SequenceId> = plan.rows.iter().map(|rows| rows.id).collect();
        assert_eq!(planned.len(), plan.rows.len(), "a sequence has rows once: {plan:?}");
        let ones = self.scheduler.ranks(|sequence| sequence.lacking() == 1);
        assert!(ones.iter().all(|(_, id)| planned.contains(id)), "all that go on go on");
        for &swap in &plan.swaps {
            self.swap(swap);
        }
        // All are written before any is read.
        for rows in &plan.rows {
            let salt = self.visits[self.guests[&rows.id].visit].salt;
            self.write(rows, salt);
        }
        for rows in &plan.rows {
            let guest = &self.guests[&rows.id];
            assert_eq!(self.scheduler.tokens(rows.id), guest.tokens);
            let end = (rows.from + rows.count).min(guest.tokens.len());
            self.read(rows.id, self.visits[guest.visit].salt, &guest.tokens[..end]);
            let drafts = self.scheduler.drafts(rows.id).len();
            self.scheduler.advance(rows.id, rows.count - drafts);
        }
        for rows in &plan.rows {
            let whole = rows.from + rows.count >= self.guests[&rows.id].tokens.len();
            let every = self.scheduler.sequences[&rows.id].every_row;
            assert_eq!(rows.wanted > 0, whole || every);
            if whole {
                self.generate(rows.id);
            }
        }
    }

    fn generate(&mut self, id: SequenceId) {
        self.scheduler.want_last_row(id);
        let forks = std::mem::take(&mut self.guests.get_mut(&id).unwrap().forks);
        let mut ready = vec![id];
        for fork in 0..forks as u64 {
            let second = id + 1 + fork;
            if let ForkOutcome::Running(copy) = self.scheduler.fork(id, second) {
                if let Some(BlockCopy { from, to }) = copy {
                    let size = self.size;
                    self.places.copy_within(from * size..(from + 1) * size, to * size);
                }
                ready.push(second);
            }
            let first = &self.guests[&id];
            let guest = Guest {
                visit: first.visit,
                tokens: first.tokens.clone(),
                left: first.left,
                forks: 0,
            };
            self.guests.insert(second, guest);
        }
        for id in ready {
            self.grow(id);
        }
    }

    fn grow(&mut self, id: SequenceId) {
        let drafts = self.scheduler.drafts(id).to_vec();
        for row in 0..=drafts.len() {
            let guest = self.guests.get_mut(&id).unwrap();
            let token = follow(&guest.tokens);
            guest.tokens.push(token);
            guest.left -= 1;
            self.scheduler.push(id, token);
            if guest.left == 0 {
                self.guests.remove(&id);
                self.scheduler.remove(id);
                self.finished.push(id);
                return;
            }
            if drafts.get(row) != Some(&token) {
                break;
            }
            self.scheduler.advance(id, 1);
        }
        self.scheduler.settle(id);
    }

    fn leave(&mut self, visit: usize) {
        let all = self.guests.iter().filter(|(_, guest)| guest.visit == visit);
        for id in all.map(|(id, _)| *id).collect::<Vec<SequenceId>>() {
            self.guests.remove(&id);
            self.scheduler.remove(id);
        }
    }

    /// Everything comes, runs and goes; gives the number of steps.
    fn run(&mut self, drafts: &[u32], failure: Option<usize>) -> usize {
        let last = self.visits.iter().map(|visit| visit.step).max().unwrap_or(0);
        let mut step = 0;
        while step <= last || !self.guests.is_empty() {
            for at in 0..self.visits.len() {
                if self.visits[at].step == step {
                    self.arrive(at);
                }
                if self.visits[at].leaves == Some(step) {
                    self.leave(at);
                }
            }
            let ids: Vec<SequenceId> = self.guests.keys().copied().collect();
            for id in ids {
                if self.scheduler.sequences[&id].lacking() == 1 {
                    self.scheduler.propose(id, drafts);
                }
            }
            if failure == Some(step) {
                self.places.fill(None);
                self.store.fill(None);
                self.scheduler.forget_computed();
            }
            self.step();
            step += 1;
            assert!(step < 20_000, "it never ends");
        }
        step
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn everything_that_comes_ends_and_reads_what_it_wrote(
        visits in prop::collection::vec(visit(), 1..30),
        // The longest sequence has 35 tokens.
        (size, more) in (1..6_usize, 0..40_usize),
        (sequences, tokens) in (1..6_usize, 0..12_usize),
        drafts in prop::collection::vec(0..2_u32, 0..4),
        failure in prop::option::weighted(0.2, 0..60_usize),
        (kept, least_positions) in (0..24_usize, 0..12_usize),
    ) {
        let blocks = 35_usize.div_ceil(size) + more;
        let swap = SwapLimits { blocks: kept, least_positions };
        let mut driver = Driver {
            scheduler: swapping(blocks, size, sequences, sequences + tokens, swap),
            size,
            places: vec![None; blocks * size],
            store: vec![None; kept * size],
            guests: OrderedMap::new(),
            visits,
            next: 0,
            finished: Vec::new(),
        };
        driver.run(&drafts, failure);
        let statistics = driver.scheduler.cache().statistics();
        prop_assert_eq!(statistics.active, 0);
        prop_assert_eq!(statistics.cached + statistics.free, blocks);
        prop_assert_eq!(driver.scheduler.waiting(), 0);
        prop_assert_eq!(driver.scheduler.swapped_blocks(), 0);
        let once: HashSet<SequenceId> = driver.finished.iter().copied().collect();
        prop_assert_eq!(once.len(), driver.finished.len());
        let stayed = driver.visits.iter().filter(|visit| visit.leaves.is_none());
        let expected: usize = stayed.map(|visit| 1 + visit.forks).sum();
        prop_assert!(driver.finished.len() >= expected);
    }
}

fn arrival(id: SequenceId, length: u32, client: u64, priority: i32) -> ArrivingSequence {
    // Nothing is shared.
    let first = u32::try_from(id).unwrap() * 1000;
    let tokens = (first..first + length).collect();
    ArrivingSequence { id, tokens, client, priority, salt: 0, every_row: false }
}

/// Runs until nothing is left: every sequence generates `count` tokens. Gives the order of ends.
fn finish_all(scheduler: &mut SequenceScheduler, count: usize) -> Vec<SequenceId> {
    let mut generated: OrderedMap<SequenceId, usize> = OrderedMap::new();
    let mut order = Vec::new();
    loop {
        let plan = scheduler.plan();
        if plan.rows.is_empty() {
            return order;
        }
        for rows in plan.rows {
            scheduler.advance(rows.id, rows.count);
            if rows.wanted > 0 {
                scheduler.push(rows.id, 7);
                let so_far = generated.entry(rows.id).or_default();
                *so_far += 1;
                if *so_far == count {
                    scheduler.remove(rows.id);
                    order.push(rows.id);
                }
            }
        }
    }
}

#[test]
fn a_client_with_many_requests_does_not_keep_others_waiting() {
    let mut scheduler = scheduler(100, 4, 2, 16);
    for id in 0..20 {
        scheduler.add(arrival(id, 8, 1, 0));
    }
    for id in 20..23 {
        scheduler.add(arrival(id, 8, 2, 0));
    }
    let order = finish_all(&mut scheduler, 4);
    let last = order.iter().position(|id| *id == 22).unwrap();
    assert!(last < 8, "{order:?}");
    // Those of one client keep their order.
    let own: Vec<SequenceId> = order.into_iter().filter(|id| *id < 20).collect();
    assert!(own.is_sorted(), "{own:?}");
}

#[test]
fn who_was_away_gets_no_arrears() {
    let mut scheduler = scheduler(100, 4, 1, 16);
    scheduler.add(arrival(0, 8, 1, 0));
    scheduler.add(arrival(1, 8, 2, 0));
    // The second client comes once; the first one goes on for long.
    for id in 2..12 {
        scheduler.add(arrival(id, 8, 1, 0));
    }
    for _ in 0..40 {
        for rows in scheduler.plan().rows {
            scheduler.advance(rows.id, rows.count);
            scheduler.push(rows.id, 7);
            if scheduler.tokens(rows.id).len() == 12 {
                scheduler.remove(rows.id);
            }
        }
    }
    for id in 20..30 {
        scheduler.add(arrival(id, 8, 2, 0));
    }
    let order = finish_all(&mut scheduler, 4);
    let first: Vec<bool> = order.iter().take(4).map(|id| *id < 20).collect();
    assert!(first.contains(&true), "the first client goes on too: {order:?}");
}

#[test]
fn a_lower_number_of_priority_goes_first_and_takes_blocks_and_places() {
    let mut scheduler = scheduler(8, 4, 2, 16);
    scheduler.add(arrival(0, 12, 0, 5));
    scheduler.add(arrival(1, 12, 0, 5));
    let plan = scheduler.plan();
    assert_eq!((plan.rows.len(), plan.tokens(), plan.preempted.len()), (2, 16, 0));
    for rows in plan.rows {
        scheduler.advance(rows.id, rows.count);
        if rows.wanted > 0 {
            scheduler.push(rows.id, 7);
        }
    }
    scheduler.add(arrival(2, 12, 0, 5));
    scheduler.add(arrival(3, 12, 0, 1));
    let plan = scheduler.plan();
    // The later one of those that ran makes room; its equal does not take its place.
    assert_eq!(plan.preempted, [1]);
    let ids: Vec<SequenceId> = plan.rows.iter().map(|rows| rows.id).collect();
    assert_eq!(ids, [0, 3]);
    for rows in plan.rows {
        scheduler.advance(rows.id, rows.count);
        scheduler.push(rows.id, 7);
    }
    assert_eq!(finish_all(&mut scheduler, 3), [3, 0, 1, 2]);
}

#[test]
fn a_preempted_sequence_finds_what_it_had_computed() {
    let mut scheduler = scheduler(8, 4, 2, 32);
    scheduler.add(arrival(0, 15, 0, 0));
    scheduler.add(arrival(1, 14, 0, 0));
    let mut found = Vec::new();
    for _ in 0..4 {
        let plan = scheduler.plan();
        found.extend(plan.admitted.iter().map(|admitted| (admitted.id, admitted.cached)));
        for rows in plan.rows {
            scheduler.advance(rows.id, rows.count);
            scheduler.push(rows.id, 7);
        }
        if found.len() == 2 && scheduler.running() == 1 {
            scheduler.remove(0);
        }
    }
    // All but the block that was taken from it.
    assert_eq!(found, [(0, 0), (1, 0), (1, 12)]);
}

/// Two sequences of 12 tokens in 8 blocks of 4 positions: the second one is preempted when the first one
/// has grown for long enough. Gives what is copied, and how many rows the second one has afterwards.
fn preempted(swap: SwapLimits) -> (SequenceScheduler, Vec<BlockSwap>, usize) {
    let mut scheduler = swapping(8, 4, 2, 64, swap);
    scheduler.limits.prefix_caching = false;
    scheduler.add(arrival(0, 12, 0, 0));
    scheduler.add(arrival(1, 12, 0, 0));
    let mut swaps = Vec::new();
    let mut rows_behind = 0;
    for _ in 0..8 {
        let plan = scheduler.plan();
        swaps.extend(plan.swaps);
        for rows in plan.rows {
            if rows.id == 1 && !plan.admitted.is_empty() {
                rows_behind = rows.count;
            }
            scheduler.advance(rows.id, rows.count);
            scheduler.push(rows.id, 7);
        }
        if scheduler.running() == 1 && scheduler.tokens(0).len() > 18 {
            scheduler.remove(0);
        }
    }
    (scheduler, swaps, rows_behind)
}

#[test]
fn what_a_preempted_sequence_had_computed_is_kept_and_brought_back() {
    let (mut scheduler, swaps, rows) = preempted(SwapLimits { blocks: 8, least_positions: 8 });
    let outs = swaps.iter().filter(|swap| matches!(swap, BlockSwap::Out { .. })).count();
    // Of 16 positions; one token was not computed.
    assert_eq!((outs, swaps.len(), rows), (4, 8, 1), "{swaps:?}");
    assert_eq!((scheduler.swapped(), scheduler.swapped_blocks()), (0, 0));
    scheduler.remove(1);
    assert_eq!(scheduler.cache().statistics().active, 0);
}

#[test]
fn short_sequences_and_those_without_room_are_computed_anew() {
    for swap in [
        SwapLimits { blocks: 8, least_positions: 17 },
        SwapLimits { blocks: 3, least_positions: 0 },
        SwapLimits::default(),
    ] {
        let (scheduler, swaps, rows) = preempted(swap);
        assert_eq!((swaps.len(), rows, scheduler.swapped_blocks()), (0, 17, 0), "{swap:?}");
    }
}

#[test]
fn one_that_goes_away_while_it_waits_leaves_its_places_to_others() {
    let mut scheduler = swapping(8, 4, 2, 64, SwapLimits { blocks: 4, least_positions: 1 });
    scheduler.add(arrival(0, 12, 0, 0));
    scheduler.add(arrival(1, 12, 0, 0));
    while scheduler.swapped() == 0 {
        for rows in scheduler.plan().rows {
            scheduler.advance(rows.id, rows.count);
            scheduler.push(rows.id, 7);
        }
    }
    assert_eq!(scheduler.swapped_blocks(), 4);
    scheduler.remove(1);
    assert_eq!((scheduler.swapped(), scheduler.swapped_blocks()), (0, 0));
}
