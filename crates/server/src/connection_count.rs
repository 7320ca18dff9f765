//! Counts connections, so that those that rest make room near the limit of open files, and nobody has all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Descriptors that connections leave to files, models and workers.
const MIN_RESERVED: usize = 64;
/// Part of all descriptors that connections leave, where that is more.
const RESERVED_PART: usize = 8;
/// Least rest of a connection that is closed to make room.
const MIN_REST: Duration = Duration::from_secs(1);
/// Time between two looks for connections that rest.
const LOOK: Duration = Duration::from_millis(100);

/// Open connections of a server.
#[derive(Debug)]
pub struct ConnectionCount {
    /// Most connections.
    limit: usize,
    open: AtomicUsize,
    /// Connections by address, without those of this machine: a proxy on it speaks for many clients.
    by_address: Mutex<HashMap<IpAddr, usize>>,
    rests: Mutex<RestTable>,
    start: Instant,
}

/// All connections by their numbers.
#[derive(Debug, Default)]
struct RestTable {
    rests: HashMap<u64, Arc<ConnectionRest>>,
    next: u64,
    /// Time of the last look for those that rest, since the start.
    looked: Duration,
}

/// Rest of a connection between two requests.
#[derive(Debug)]
pub struct ConnectionRest {
    start: Instant,
    /// Milliseconds from the start to the beginning of the rest.
    since: AtomicU64,
    end: Notify,
}

impl ConnectionRest {
    /// Begins a rest. It ends when the connection should end, to make room for others.
    pub async fn should_end(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since.store(now, Ordering::Relaxed);
        self.end.notified().await;
    }
}

/// Why a connection is closed as soon as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// There are as many as may be.
    Full,
    /// Its address has as many as one may have.
    AddressFull,
}

impl ConnectionCount {
    /// A count for a process that may open so many descriptors.
    #[must_use]
    pub fn new(descriptors: usize) -> Self {
        let reserved = MIN_RESERVED.max(descriptors / RESERVED_PART);
        let limit = descriptors.saturating_sub(reserved).max(1);
        let by_address = Mutex::default();
        let start = Instant::now();
        Self { limit, open: AtomicUsize::new(0), by_address, rests: Mutex::default(), start }
    }

    fn addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection until the entry is dropped. Near the limit, connections that rest are asked to end.
    ///
    /// # Errors
    /// Fails when there are too many, of all or of the address.
    pub fn enter(
        self: &Arc<Self>,
        address: Option<IpAddr>,
    ) -> Result<ConnectionEntry, ConnectionRefusal> {
        let open = self.open.fetch_add(1, Ordering::AcqRel) + 1;
        // Whatever follows, dropping it counts down.
        let mut entry = self.entry();
        if open > self.limit / 8 * 7 {
            self.end_rests();
        }
        if open > self.limit {
            return Err(ConnectionRefusal::Full);
        }
        if let Some(address) = address.filter(|address| !address.is_loopback()) {
            let mut addresses = self.addresses();
            let own = addresses.entry(address).or_default();
            if *own >= (self.limit / 2).max(1) {
                return Err(ConnectionRefusal::AddressFull);
            }
            *own += 1;
            entry.address = Some(address);
        }
        Ok(entry)
    }

    fn rests(&self) -> MutexGuard<'_, RestTable> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(self: &Arc<Self>) -> ConnectionEntry {
        let since = AtomicU64::new(u64::MAX);
        let rest = Arc::new(ConnectionRest { start: self.start, since, end: Notify::new() });
        let mut table = self.rests();
        let number = table.next;
        table.next += 1;
        table.rests.insert(number, Arc::clone(&rest));
        ConnectionEntry { count: Arc::clone(self), number, rest, address: None }
    }

    /// Asks connections to end that have rested for a moment.
    fn end_rests(&self) {
        let now = self.start.elapsed();
        let mut table = self.rests();
        if now < table.looked + LOOK {
            return;
        }
        table.looked = now;
        let latest = u64::try_from(now.saturating_sub(MIN_REST).as_millis()).unwrap_or(u64::MAX);
        let rests =
            table.rests.values().filter(|rest| rest.since.load(Ordering::Relaxed) <= latest);
        rests.for_each(|rest| rest.end.notify_waiters());
    }
}

/// A connection that is counted.
#[derive(Debug)]
pub struct ConnectionEntry {
    count: Arc<ConnectionCount>,
    number: u64,
    rest: Arc<ConnectionRest>,
    address: Option<IpAddr>,
}

impl ConnectionEntry {
    /// Returns the rest of the connection.
    #[must_use]
    pub fn rest(&self) -> &Arc<ConnectionRest> {
        &self.rest
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.count.open.fetch_sub(1, Ordering::AcqRel);
        self.count.rests().rests.remove(&self.number);
        let Some(address) = self.address else { return };
        let mut addresses = self.count.addresses();
        if let Some(own) = addresses.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                addresses.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn an_address_has_at_most_half_and_some_descriptors_are_left() {
        let count = Arc::new(ConnectionCount::new(80));
        assert_eq!(count.limit, 16);
        let stranger = Some(IpAddr::from([10, 0, 0, 1]));
        let mut entries: Vec<ConnectionEntry> =
            (0..8).map(|_| count.enter(stranger).unwrap()).collect();
        assert_eq!(count.enter(stranger).unwrap_err(), ConnectionRefusal::AddressFull);
        let other = Some(IpAddr::from([10, 0, 0, 2]));
        entries.extend((0..4).map(|_| count.enter(other).unwrap()));
        let own = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        entries.extend((0..3).map(|_| count.enter(own).unwrap()));
        entries.push(count.enter(None).unwrap());
        assert_eq!(count.enter(None).unwrap_err(), ConnectionRefusal::Full);
        drop(entries);
        assert_eq!(count.open.load(Ordering::Acquire), 0);
        assert!(count.addresses().is_empty());
        assert_eq!(ConnectionCount::new(65_536).limit, 57_344);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_rest_are_asked_to_end_when_there_are_many() {
        let count = Arc::new(ConnectionCount::new(80));
        let mut entries: Vec<ConnectionEntry> =
            (0..13).map(|_| count.enter(None).unwrap()).collect();
        let rest = Arc::clone(entries.last().unwrap().rest());
        let asked = tokio::spawn(async move { rest.should_end().await });
        tokio::time::sleep(MIN_REST * 2).await;
        entries.push(count.enter(None).unwrap());
        let late = Arc::clone(entries.last().unwrap().rest());
        let young = tokio::spawn(async move { late.should_end().await });
        tokio::time::sleep(LOOK).await;
        assert!(!asked.is_finished());
        entries.push(count.enter(None).unwrap());
        asked.await.unwrap();
        assert!(!young.is_finished());
        drop(entries);
        assert!(count.rests().rests.is_empty());
    }
}
