//! What to load next, and what to give up for it.

use std::collections::VecDeque;

use super::distance::Distance;
use super::order::Order;

/// How much may be where, and how far ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of regions that are near, those on their way included.
    pub capacity_bytes: u64,
    /// Bytes on their way at a time; one region always may be.
    pub flight_bytes: u64,
    /// Touches ahead at most; 0 loads only what somebody waits for.
    pub most_ahead: usize,
    /// Touches ahead at least, however soon loads are done.
    pub least_ahead: usize,
}

/// What a touch found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The region is near.
    Hit,
    /// It was foreseen and is on its way, or had no room yet.
    Late,
    /// Nobody had thought of it.
    Miss,
}

/// A load to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The region.
    pub region: usize,
    /// The regions that are given up for it, which nobody has in use.
    pub evicted: Vec<usize>,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
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
    /// Of these, such as nobody had touched since they were loaded.
    pub wasted: u64,
    /// Nanoseconds that touches waited.
    pub stall_ns: u64,
    /// Touches ahead at present.
    pub distance: usize,
    /// Touches that came after a guess, and those that were guessed.
    pub guesses: (u64, u64),
}

impl Statistics {
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
enum State {
    Far,
    Coming { since_ns: u64 },
    Near { touched: bool },
}

#[derive(Clone, Debug)]
struct Region {
    bytes: u64,
    state: State,
    users: usize,
    last_touch: u64,
    /// When somebody began to wait for it.
    waited_since_ns: Option<u64>,
}

/// The policy. A region is touched, used while it is near, and released; loads are asked for with
/// [`Prefetcher::next_load`] and reported with [`Prefetcher::loaded`].
///
/// What is needed last is given up first: where an order larger than the room repeats, giving up
/// what was used longest ago would always give up what comes next.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    limits: Limits,
    regions: Vec<Region>,
    order: Order,
    distance: Distance,
    /// Regions that somebody waits for, the longest first.
    wanted: VecDeque<usize>,
    near_bytes: u64,
    flight_bytes: u64,
    touches: u64,
    statistics: Statistics,
}

impl Prefetcher {
    /// Regions of so many bytes, none of them near.
    #[must_use]
    pub fn new(bytes: &[u64], limits: Limits) -> Self {
        let region = |&bytes: &u64| Region {
            bytes,
            state: State::Far,
            users: 0,
            last_touch: 0,
            waited_since_ns: None,
        };
        Self {
            limits,
            regions: bytes.iter().map(region).collect(),
            order: Order::new(bytes.len()),
            distance: Distance::new(limits.least_ahead, limits.most_ahead),
            wanted: VecDeque::new(),
            near_bytes: 0,
            flight_bytes: 0,
            touches: 0,
            statistics: Statistics::default(),
        }
    }

    /// Somebody needs a region, and keeps it near until it is released.
    pub fn touch(&mut self, region: usize, now_ns: u64) -> Touch {
        let Some(own) = self.regions.get_mut(region) else { return Touch::Miss };
        self.touches += 1;
        own.users += 1;
        own.last_touch = self.touches;
        let foreseen = self.order.touch(region) && self.limits.most_ahead > 0;
        let found = match &mut own.state {
            State::Near { touched } => {
                *touched = true;
                self.statistics.hits += 1;
                Touch::Hit
            }
            State::Coming { .. } => {
                self.statistics.late += 1;
                Touch::Late
            }
            State::Far => {
                if !self.wanted.contains(&region) {
                    self.wanted.push_back(region);
                }
                match foreseen {
                    true => {
                        self.statistics.late += 1;
                        Touch::Late
                    }
                    false => {
                        self.statistics.misses += 1;
                        Touch::Miss
                    }
                }
            }
        };
        if found != Touch::Hit {
            own.waited_since_ns.get_or_insert(now_ns);
        }
        self.distance.touched(found == Touch::Hit, now_ns);
        found
    }

    /// Whoever touched a region does not need it any more.
    pub fn release(&mut self, region: usize) {
        if let Some(own) = self.regions.get_mut(region) {
            own.users = own.users.saturating_sub(1);
        }
    }

    /// Whether a region is near.
    #[must_use]
    pub fn is_near(&self, region: usize) -> bool {
        self.regions.get(region).is_some_and(|own| matches!(own.state, State::Near { .. }))
    }

    /// The next load to start, if there is one worth it: what somebody waits for, else the next one
    /// that is not near. Those given up are far from then on.
    pub fn next_load(&mut self, now_ns: u64) -> Option<Load> {
        if let Some(&region) = self.wanted.front() {
            let load = self.start(region, 0, now_ns)?;
            self.wanted.pop_front();
            return Some(load);
        }
        let far = |&(_, region): &(usize, usize)| self.regions[region].state == State::Far;
        let ahead = self.order.upcoming().take(self.distance.get().min(self.limits.most_ahead));
        let (at, region) = ahead.enumerate().find(far)?;
        self.start(region, at + 1, now_ns)
    }

    /// Starts a load of a region that is needed after so many touches, if there is room for it.
    fn start(&mut self, region: usize, needed: usize, now_ns: u64) -> Option<Load> {
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
            self.statistics.wasted += u64::from(own.state == State::Near { touched: false });
            self.near_bytes -= own.bytes;
            own.state = State::Far;
        }
        self.regions[region].state = State::Coming { since_ns: now_ns };
        self.flight_bytes += bytes;
        self.statistics.loads += 1;
        Some(Load { region, evicted })
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
        let idle = |own: &Region| own.users == 0 && matches!(own.state, State::Near { .. });
        let all = self.regions.iter().zip(uses).enumerate();
        let mut found: Vec<(usize, usize)> =
            all.filter(|(_, (own, _))| idle(own)).map(|(at, (_, next))| (at, next)).collect();
        found.sort_by_key(|&(at, next)| (std::cmp::Reverse(next), self.regions[at].last_touch));
        found
    }

    /// A load is done.
    pub fn loaded(&mut self, region: usize, now_ns: u64) {
        let Some(own) = self.regions.get_mut(region) else { return };
        let State::Coming { since_ns } = own.state else { return };
        own.state = State::Near { touched: own.users > 0 };
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
        if let State::Coming { .. } = own.state {
            own.state = State::Far;
            own.waited_since_ns = None;
            self.flight_bytes -= own.bytes;
        }
    }

    /// What has happened so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let distance = self.distance.get();
        Statistics { distance, guesses: self.order.guesses(), ..self.statistics }
    }
}
