//! Prefetch distance: the number of touches ahead at which loads start.

/// Touches in a row without waiting after which less is tried.
const CALM: u32 = 64;

/// A mean in which old values count less and less.
#[derive(Clone, Copy, Debug, Default)]
struct DecayingMean(Option<f64>);

impl DecayingMean {
    fn add(&mut self, value: f64) {
        self.0 = Some(self.0.map_or(value, |mean| mean + (value - mean) / 8.0));
    }
}

/// Number of touches ahead at which loads start. It is the ratio of a load's time to a touch's; it grows when a
/// touch had to wait, and shrinks when none had to for long.
#[derive(Clone, Debug)]
pub(super) struct PrefetchDistance {
    now: usize,
    least: usize,
    most: usize,
    calm: u32,
    load_ns: DecayingMean,
    touch_ns: DecayingMean,
    last_touch_ns: Option<u64>,
}

impl PrefetchDistance {
    /// From `least` to `most` touches.
    pub(super) fn new(least: usize, most: usize) -> Self {
        let least = least.min(most);
        Self {
            now: most.min(2).max(least),
            least,
            most,
            calm: 0,
            load_ns: DecayingMean::default(),
            touch_ns: DecayingMean::default(),
            last_touch_ns: None,
        }
    }

    pub(super) fn get(&self) -> usize {
        self.now
    }

    /// Returns the distance that the measured times require.
    fn least(&self) -> usize {
        let (Some(load), Some(touch)) = (self.load_ns.0, self.touch_ns.0) else {
            return 1.max(self.least);
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small number; a larger one than fits becomes the largest"
        )]
        let touches = (load / touch.max(1.0)).ceil() as usize;
        touches.saturating_add(1).max(self.least).min(self.most)
    }

    /// A touch that did or did not find what it needs.
    pub(super) fn touched(&mut self, ready: bool, now_ns: u64) {
        if let (Some(last), true) = (self.last_touch_ns, ready) {
            #[allow(clippy::cast_precision_loss, reason = "a difference of times")]
            self.touch_ns.add(now_ns.saturating_sub(last) as f64);
        }
        self.last_touch_ns = ready.then_some(now_ns);
        if !ready {
            self.calm = 0;
            self.now = (self.now + 1).max(self.least()).min(self.most);
            return;
        }
        self.calm += 1;
        if self.calm >= CALM {
            self.calm = 0;
            self.now = self.now.saturating_sub(1).max(self.least());
        }
    }

    /// A load is done.
    pub(super) fn loaded(&mut self, nanoseconds: u64) {
        #[allow(clippy::cast_precision_loss, reason = "a difference of times")]
        self.load_ns.add(nanoseconds as f64);
    }
}
