//! Giving answers out in the order in which the requests came, whatever the order in which they are ready.

use std::collections::VecDeque;

use galatea_tensor::OrderedMap;

/// Holds answers back until all earlier ones are out.
#[derive(Debug)]
pub struct OrderedRelease<T> {
    order: VecDeque<u64>,
    ready: OrderedMap<u64, T>,
}

impl<T> Default for OrderedRelease<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), ready: OrderedMap::new() }
    }
}

impl<T> OrderedRelease<T> {
    /// A request came.
    pub fn admit(&mut self, id: u64) {
        self.order.push_back(id);
    }

    /// A request was not taken after all; gives the answers that waited for it.
    pub fn withdraw(&mut self, id: u64) -> Vec<T> {
        self.order.retain(|&waiting| waiting != id);
        self.released()
    }

    /// An answer is ready; gives those that may go out now, in order.
    pub fn finish(&mut self, id: u64, answer: T) -> Vec<T> {
        self.ready.insert(id, answer);
        self.released()
    }

    fn released(&mut self) -> Vec<T> {
        let mut out = Vec::new();
        while let Some(answer) = self.order.front().and_then(|id| self.ready.remove(id)) {
            self.order.pop_front();
            out.push(answer);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_in_order_of_arrival() {
        let mut release = OrderedRelease::default();
        (0..4).for_each(|id| release.admit(id));
        assert!(release.finish(2, "c").is_empty());
        assert!(release.finish(1, "b").is_empty());
        assert_eq!(release.withdraw(0), ["b", "c"]);
        assert_eq!(release.finish(3, "d"), ["d"]);
    }
}
