//! Choice of what to load next, and what to evict for it.

use std::collections::VecDeque;

use super::distance::PrefetchDistance;
use super::order::AccessOrder;

/// Limits on memory and on prefetch distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchLimits {
    /// Bytes of regions that are near, those on their way included.
    pub capacity_bytes: u64,
    /// Bytes on their way at a time; one region always may be.
    pub flight_bytes: u64,
    /// Touches ahead at most; 0 loads only what somebody waits for.
    pub most_ahead: usize,
    /// Touches ahead at least, however soon loads are done.
    pub least_ahead: usize,
}

/// Result of touching a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchOutcome {
    /// The region is near.
    Hit,
    /// It was foreseen and is on its way, or had no room yet.
    Late,
    /// Nobody had thought of it.
    Miss,
}

/// A load to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLoad {
    /// The region.
    pub region: usize,
    /// The regions that are given up for it, which nobody has in use.
    pub evicted: Vec<usize>,
}

/// Counters of a prefetcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetchStatistics {
    /// Touches that found the region near.
    pub hits: u64,
    /// Touches that were foreseen and found it not there yet.
    pub late: u64,
    /// Touches that nobody had thought of.
    pub misses: u64,
    /// Loads that were started.
    pub loads: u64,
    /// Bytes that were brought near.
    pub loaded_bytes: u64,
    /// Nanoseconds of all loads.
    pub load_ns: u64,
    /// Regions that were given up.
    pub evictions: u64,
    /// Number of these that were never touched after they were loaded.
    pub wasted: u64,
    /// Nanoseconds that touches waited.
    pub stall_ns: u64,
    /// Touches ahead at present.
    pub distance: usize,
    /// Touches that came after a guess, and those that were guessed.
    pub guesses: (u64, u64),
}

impl PrefetchStatistics {
    /// The share of touches that found the region near; none before the first one.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        let all = self.hits + self.late + self.misses;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let share = || self.hits as f64 / all as f64;
        (all > 0).then(share)
    }

    /// Both together; the distance is that of the later ones.
    #[must_use]
    pub fn plus(self, later: Self) -> Self {
        Self {
            hits: self.hits + later.hits,
            late: self.late + later.late,
            misses: self.misses + later.misses,
            loads: self.loads + later.loads,
            loaded_bytes: self.loaded_bytes + later.loaded_bytes,
            load_ns: self.load_ns + later.load_ns,
            evictions: self.evictions + later.evictions,
            wasted: self.wasted + later.wasted,
            stall_ns: self.stall_ns + later.stall_ns,
            distance: later.distance,
            guesses: (self.guesses.0 + later.guesses.0, self.guesses.1 + later.guesses.1),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionState {
    Far,
    Coming { since_ns: u64 },
    Near { touched: bool },
}

#[derive(Clone, Debug)]
struct PrefetchRegion {
    bytes: u64,
    state: RegionState,
    users: usize,
    last_touch: u64,
    /// Time at which a touch began to wait for the region.
    waited_since_ns: Option<u64>,
}

/// The policy. A region is touched, used while it is near, and released; loads are asked for with
/// [`Prefetcher::next_load`] and reported with [`Prefetcher::loaded`].
///
/// The region that is needed last is evicted first. When an order larger than the room repeats, evicting the
/// least recently used region would always evict the one needed next.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    limits: PrefetchLimits,
    regions: Vec<PrefetchRegion>,
    order: AccessOrder,
    distance: PrefetchDistance,
    /// Regions that somebody waits for, the longest first.
    wanted: VecDeque<usize>,
    near_bytes: u64,
    flight_bytes: u64,
    touches: u64,
    statistics: PrefetchStatistics,
}

impl Prefetcher {
    /// Regions of so many bytes, none of them near.
    #[must_use]
    pub fn new(bytes: &[u64], limits: PrefetchLimits) -> Self {
        let region = |&bytes: &u64| PrefetchRegion {
            bytes,
            state: RegionState::Far,
            users: 0,
            last_touch: 0,
            waited_since_ns: None,
        };
        Self {
            limits,
            regions: bytes.iter().map(region).collect(),
            order: AccessOrder::new(bytes.len()),
            distance: PrefetchDistance::new(limits.least_ahead, limits.most_ahead),
            wanted: VecDeque::new(),
            near_bytes: 0,
            flight_bytes: 0,
            touches: 0,
            statistics: PrefetchStatistics::default(),
        }
    }

    /// Somebody needs a region, and keeps it near until it is released.
    pub fn touch(&mut self, region: usize, now_ns: u64) -> TouchOutcome {
        let Some(own) = self.regions.get_mut(region) else { return TouchOutcome::Miss };
        self.touches += 1;
        own.users += 1;
        own.last_touch = self.touches;
        let foreseen = self.order.touch(region) && self.limits.most_ahead > 0;
        let found = match &mut own.state {
            RegionState::Near { touched } => {
                *touched = true;
                self.statistics.hits += 1;
                TouchOutcome::Hit
            }
            RegionState::Coming { .. } => {
                self.statistics.late += 1;
                TouchOutcome::Late
            }
            RegionState::Far => {
                if !self.wanted.contains(&region) {
                    self.wanted.push_back(region);
                }
                match foreseen {
                    true => {
                        self.statistics.late += 1;
                        TouchOutcome::Late
                    }
                    false => {
                        self.statistics.misses += 1;
                        TouchOutcome::Miss
                    }
                }
            }
        };
        if found != TouchOutcome::Hit {
            own.waited_since_ns.get_or_insert(now_ns);
        }
        self.distance.touched(found == TouchOutcome::Hit, now_ns);
        found
    }

    /// Whoever touched a region does not need it any more.
    pub fn release(&mut self, region: usize) {
        if let Some(own) = self.regions.get_mut(region) {
            own.users = own.users.saturating_sub(1);
        }
    }

    /// Returns whether a region is near.
    #[must_use]
    pub fn is_near(&self, region: usize) -> bool {
        self.regions.get(region).is_some_and(|own| matches!(own.state, RegionState::Near { .. }))
    }

    /// The next load to start, if there is one worth it: what somebody waits for, else the next one
    /// that is not near. Those given up are far from then on.
    pub fn next_load(&mut self, now_ns: u64) -> Option<PendingLoad> {
        if let Some(&region) = self.wanted.front() {
            let load = self.start(region, 0, now_ns)?;
            self.wanted.pop_front();
            return Some(load);
        }
        let far = |&(_, region): &(usize, usize)| self.regions[region].state == RegionState::Far;
        let ahead = self.order.upcoming().take(self.distance.get().min(self.limits.most_ahead));
        let (at, region) = ahead.enumerate().find(far)?;
        self.start(region, at + 1, now_ns)
    }

    /// Starts a load of a region that is needed after so many touches, if there is room for it.
    fn start(&mut self, region: usize, needed: usize, now_ns: u64) -> Option<PendingLoad> {
        let bytes = self.regions[region].bytes;
        let beyond = self.flight_bytes.saturating_add(bytes) > self.limits.flight_bytes;
        if beyond && self.flight_bytes > 0 {
            return None;
        }
        let taken = self.near_bytes + self.flight_bytes;
        let mut room = self.limits.capacity_bytes.saturating_sub(taken);
        let mut evicted = Vec::new();
        if room < bytes {
            for (candidate, use_after) in self.candidates() {
                // What comes before the region is not given up for it.
                if room >= bytes || needed > 0 && use_after <= needed {
                    break;
                }
                room += self.regions[candidate].bytes;
                evicted.push(candidate);
            }
        }
        if room < bytes {
            return None;
        }
        for &gone in &evicted {
            let own = &mut self.regions[gone];
            self.statistics.evictions += 1;
            self.statistics.wasted += u64::from(own.state == RegionState::Near { touched: false });
            self.near_bytes -= own.bytes;
            own.state = RegionState::Far;
        }
        self.regions[region].state = RegionState::Coming { since_ns: now_ns };
        self.flight_bytes += bytes;
        self.statistics.loads += 1;
        Some(PendingLoad { region, evicted })
    }

    /// Regions that may be given up and how many touches from now they are needed, the last ones first.
    fn candidates(&self) -> Vec<(usize, usize)> {
        let mut uses = vec![usize::MAX; self.regions.len()];
        let mut left = uses.len();
        // Orders may come round more slowly than once for each region.
        for (at, region) in self.order.upcoming().take(self.regions.len() * 4).enumerate() {
            if uses[region] == usize::MAX {
                uses[region] = at + 1;
                left -= 1;
            }
            if left == 0 {
                break;
            }
        }
        let idle =
            |own: &PrefetchRegion| own.users == 0 && matches!(own.state, RegionState::Near { .. });
        let all = self.regions.iter().zip(uses).enumerate();
        let mut found: Vec<(usize, usize)> =
            all.filter(|(_, (own, _))| idle(own)).map(|(at, (_, next))| (at, next)).collect();
        found.sort_by_key(|&(at, next)| (std::cmp::Reverse(next), self.regions[at].last_touch));
        found
    }

    /// A load is done.
    pub fn loaded(&mut self, region: usize, now_ns: u64) {
        let Some(own) = self.regions.get_mut(region) else { return };
        let RegionState::Coming { since_ns } = own.state else { return };
        own.state = RegionState::Near { touched: own.users > 0 };
        self.flight_bytes -= own.bytes;
        self.near_bytes += own.bytes;
        self.statistics.loaded_bytes += own.bytes;
        let took = now_ns.saturating_sub(since_ns);
        self.statistics.load_ns += took;
        self.distance.loaded(took);
        if let Some(since) = own.waited_since_ns.take() {
            self.statistics.stall_ns += now_ns.saturating_sub(since);
        }
    }

    /// A load came to nothing.
    pub fn failed(&mut self, region: usize) {
        let Some(own) = self.regions.get_mut(region) else { return };
        if let RegionState::Coming { .. } = own.state {
            own.state = RegionState::Far;
            own.waited_since_ns = None;
            self.flight_bytes -= own.bytes;
        }
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn statistics(&self) -> PrefetchStatistics {
        let distance = self.distance.get();
        PrefetchStatistics { distance, guesses: self.order.guesses(), ..self.statistics }
    }
}
