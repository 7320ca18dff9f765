//! How far ahead to be.

/// Touches in a row without waiting after which less is tried.
const CALM: u32 = 64;

/// A mean in which old values count less and less.
#[derive(Clone, Copy, Debug, Default)]
struct Mean(Option<f64>);

impl Mean {
    fn add(&mut self, value: f64) {
        self.0 = Some(self.0.map_or(value, |mean| mean + (value - mean) / 8.0));
    }
}

/// How many touches ahead loads are started: as many as a load takes times as long as a touch, more where
/// somebody had to wait, fewer where nobody had to for long.
#[derive(Clone, Debug)]
pub(super) struct Distance {
    now: usize,
    least: usize,
    most: usize,
    calm: u32,
    load_ns: Mean,
    touch_ns: Mean,
    last_touch_ns: Option<u64>,
}

impl Distance {
    /// From `least` to `most` touches.
    pub(super) fn new(least: usize, most: usize) -> Self {
        let least = least.min(most);
        Self {
            now: most.min(2).max(least),
            least,
            most,
            calm: 0,
            load_ns: Mean::default(),
            touch_ns: Mean::default(),
            last_touch_ns: None,
        }
    }

    pub(super) fn get(&self) -> usize {
        self.now
    }

    /// What the measured times ask for.
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
