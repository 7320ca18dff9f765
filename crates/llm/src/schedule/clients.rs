//! Queue of clients, and whose turn it is.

use std::collections::HashMap;

use galatea_tensor::OrderedSet;

use super::SequenceId;

/// Clients of which nothing waits or runs are forgotten when there are more of them than this.
const MAX_IDLE: usize = 1024;

/// Key that orders sequences of one client, and all sequences when one must go: the lowest first.
pub(super) type SequenceRank = (i32, SequenceId);

/// Service that a client has got, and its wishes.
#[derive(Debug, Default)]
struct ServedClient {
    /// Service done for it, in tokens of prompts.
    service: u64,
    waiting: OrderedSet<SequenceRank>,
    running: usize,
}

impl ServedClient {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }
}

/// All clients, with their counters of service.
///
/// Source: Sheng et al. 2024, "Fairness in Serving Large Language Models", arXiv 2401.00588: who has
/// got least is next, and who comes back begins with no less than the least of those who are there.
#[derive(Debug, Default)]
pub(super) struct ServedClients {
    clients: HashMap<u64, ServedClient>,
    waiting: usize,
}

impl ServedClients {
    /// How many sequences wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The service that a client has got.
    pub(super) fn service(&self, client: u64) -> u64 {
        self.clients.get(&client).map_or(0, |client| client.service)
    }

    /// A sequence begins to wait.
    pub(super) fn wait(&mut self, client: u64, rank: SequenceRank) {
        if self.clients.get(&client).is_none_or(ServedClient::is_idle) {
            self.lift(client);
        }
        if self.clients.entry(client).or_default().waiting.insert(rank) {
            self.waiting += 1;
        }
    }

    /// A sequence does not wait any more.
    pub(super) fn stop_waiting(&mut self, client: u64, rank: SequenceRank) {
        if let Some(client) = self.clients.get_mut(&client)
            && client.waiting.remove(&rank)
        {
            self.waiting -= 1;
        }
    }

    /// A sequence begins to run.
    pub(super) fn run(&mut self, client: u64) {
        self.clients.entry(client).or_default().running += 1;
    }

    /// A sequence does not run any more.
    pub(super) fn stop_running(&mut self, client: u64) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.running = client.running.saturating_sub(1);
        }
    }

    /// Counts what was done for a client.
    pub(super) fn charge(&mut self, client: u64, service: u64) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.service = client.service.saturating_add(service);
        }
    }

    /// The sequence that is next: the lowest priority, then the client that has got least, then the
    /// one that came first.
    pub(super) fn next(&self) -> Option<SequenceRank> {
        if self.waiting == 0 {
            return None;
        }
        let first = |client: &ServedClient| {
            client.waiting.first().map(|&(priority, id)| (priority, client.service, id))
        };
        self.clients.values().filter_map(first).min().map(|(priority, _, id)| (priority, id))
    }

    /// A client that had nothing here comes back.
    fn lift(&mut self, client: u64) {
        let present = self.clients.values().filter(|client| !client.is_idle());
        let Some(least) = present.map(|client| client.service).min() else {
            // Nobody is here: all begin anew.
            self.clients.clear();
            return;
        };
        if self.clients.len() > MAX_IDLE {
            // They would be lifted to the least anyway.
            self.clients.retain(|_, client| !client.is_idle() || client.service > least);
        }
        let client = self.clients.entry(client).or_default();
        client.service = client.service.max(least);
    }
}
