//! Policy of residency, without thread, lock or clock: which models are in memory, and which make room.

use galatea_tensor::OrderedMap;

/// The number of a model.
pub(super) type TenantId = u64;

/// Why there is no room for a model. All numbers are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// It alone needs more than there is.
    TooLarge { needed: u64, limit: u64 },
    /// Others that have requests leave too little.
    Busy { needed: u64, busy: u64, limit: u64 },
}

#[derive(Debug, Default)]
struct LedgerTenant {
    /// Bytes that it takes while it is in memory; 0 while it is not.
    bytes: u64,
    /// Requests that it has.
    uses: usize,
    /// When it had the last one.
    last_use: u64,
}

/// All models under one limit.
#[derive(Debug)]
pub(super) struct MemoryLedger {
    limit: u64,
    tenants: OrderedMap<TenantId, LedgerTenant>,
    next: TenantId,
    uses: u64,
}

impl MemoryLedger {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, tenants: OrderedMap::new(), next: 0, uses: 0 }
    }

    /// A model that is not in memory.
    pub(super) fn enter(&mut self) -> TenantId {
        let id = self.next;
        self.next += 1;
        self.tenants.insert(id, LedgerTenant::default());
        id
    }

    /// The model is gone.
    pub(super) fn leave(&mut self, id: TenantId) {
        self.tenants.remove(&id);
    }

    /// A request for the model begins: it is not unloaded until that ends.
    pub(super) fn begin(&mut self, id: TenantId) {
        self.uses += 1;
        let now = self.uses;
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.uses += 1;
            tenant.last_use = now;
        }
    }

    /// A request has ended.
    pub(super) fn end(&mut self, id: TenantId) {
        self.uses += 1;
        let now = self.uses;
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.uses = tenant.uses.saturating_sub(1);
            tenant.last_use = now;
        }
    }

    /// Bytes that a model takes now.
    pub(super) fn bytes(&self, id: TenantId) -> u64 {
        self.tenants.get(&id).map_or(0, |tenant| tenant.bytes)
    }

    /// Lets a model take so many bytes. Gives the models without requests that are to be unloaded for it, those
    /// first that were not used for the longest time. Where there is no room all stays as it is.
    pub(super) fn take_room(&mut self, id: TenantId, bytes: u64) -> Result<Vec<TenantId>, NoRoom> {
        let limit = self.limit;
        if bytes > limit {
            return Err(NoRoom::TooLarge { needed: bytes, limit });
        }
        let others = || self.tenants.iter().filter(|(other, _)| **other != id);
        let mut taken = others().fold(0_u64, |sum, (_, tenant)| sum.saturating_add(tenant.bytes));
        let idle = others().filter(|(_, tenant)| tenant.uses == 0 && tenant.bytes > 0);
        let mut idle: Vec<(u64, TenantId, u64)> =
            idle.map(|(other, tenant)| (tenant.last_use, *other, tenant.bytes)).collect();
        idle.sort_unstable();
        let mut unloaded = Vec::new();
        for (_, other, bytes_of_other) in idle {
            if taken.saturating_add(bytes) <= limit {
                break;
            }
            taken -= bytes_of_other;
            unloaded.push(other);
        }
        if taken.saturating_add(bytes) > limit {
            return Err(NoRoom::Busy { needed: bytes, busy: taken, limit });
        }
        for other in &unloaded {
            self.give_room_back(*other);
        }
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.bytes = bytes;
        }
        Ok(unloaded)
    }

    /// The model is not in memory any more.
    pub(super) fn give_room_back(&mut self, id: TenantId) {
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::OrderedMap;

    use proptest::prelude::*;

    use super::*;

    /// A model that is asked and loaded, which takes so many bytes.
    fn load(ledger: &mut MemoryLedger, id: TenantId, bytes: u64) -> Result<Vec<TenantId>, NoRoom> {
        ledger.begin(id);
        let unloaded = ledger.take_room(id, bytes);
        ledger.end(id);
        unloaded
    }

    #[test]
    fn the_one_that_was_not_used_for_the_longest_time_goes_first() {
        let mut ledger = MemoryLedger::new(30);
        let [a, b, c, d] = [(); 4].map(|()| ledger.enter());
        for id in [a, b, c] {
            assert_eq!(load(&mut ledger, id, 10), Ok(vec![]));
        }
        // Asked once more, the first one is the youngest.
        ledger.begin(a);
        ledger.end(a);
        assert_eq!(load(&mut ledger, d, 15), Ok(vec![b, c]));
        assert_eq!([a, b, c, d].map(|id| ledger.bytes(id)), [10, 0, 0, 15]);
        assert_eq!(load(&mut ledger, b, 5), Ok(vec![]));
    }

    #[test]
    fn models_with_requests_stay_and_the_reason_is_told() {
        let mut ledger = MemoryLedger::new(30);
        let [a, b] = [(); 2].map(|()| ledger.enter());
        assert_eq!(load(&mut ledger, a, 20), Ok(vec![]));
        ledger.begin(a);
        let busy = NoRoom::Busy { needed: 15, busy: 20, limit: 30 };
        assert_eq!(load(&mut ledger, b, 15), Err(busy));
        assert_eq!(ledger.bytes(a), 20);
        ledger.end(a);
        assert_eq!(load(&mut ledger, b, 15), Ok(vec![a]));
        let large = NoRoom::TooLarge { needed: 31, limit: 30 };
        assert_eq!(load(&mut ledger, a, 31), Err(large));
        // One that leaves leaves its room.
        ledger.leave(b);
        assert_eq!(load(&mut ledger, a, 30), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn no_more_is_taken_than_there_is_and_nobody_with_requests_goes(
            limit in 1..60_u64,
            steps in prop::collection::vec((0..5_u64, 1..40_u64, any::<bool>()), 1..60),
        ) {
            let mut ledger = MemoryLedger::new(limit);
            for _ in 0..5 {
                ledger.enter();
            }
            let mut open: OrderedMap<TenantId, usize> = OrderedMap::new();
            for (id, bytes, ends) in steps {
                let uses = open.entry(id).or_default();
                if ends && *uses > 0 {
                    *uses -= 1;
                    ledger.end(id);
                    continue;
                }
                *uses += 1;
                ledger.begin(id);
                let needed = if ledger.bytes(id) > 0 { ledger.bytes(id) } else { bytes };
                match ledger.take_room(id, needed) {
                    Ok(unloaded) => {
                        prop_assert!(unloaded.iter().all(|other| open.get(other).is_none_or(|uses| *uses == 0)));
                        prop_assert_eq!(ledger.bytes(id), needed);
                    }
                    Err(_) => {
                        *open.entry(id).or_default() -= 1;
                        ledger.end(id);
                    }
                }
                let taken: u64 = (0..5).map(|id| ledger.bytes(id)).sum();
                prop_assert!(taken <= limit, "{} of {}", taken, limit);
            }
        }
    }
}
