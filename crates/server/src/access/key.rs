//! A key: its name, what it opens, and what was used of its limits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::limits::{ExceededLimit, KeyLimits, KeyUsage};
use super::refusal::AccessRefusal;
use crate::restricted::EndpointCategory;

/// The SHA-256 of a key, by which it is kept and found.
pub(super) type KeyDigest = [u8; 32];

/// Computes the digest of a key.
pub(super) fn sha256(bytes: &[u8]) -> KeyDigest {
    Sha256::digest(bytes).into()
}

/// Groups of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupSet(u32);

impl Default for GroupSet {
    /// All groups.
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl GroupSet {
    /// No group.
    pub(super) const EMPTY: Self = Self(0);

    /// Adds a group.
    pub(super) fn insert(&mut self, category: EndpointCategory) {
        self.0 |= Self::bit(category);
    }

    /// Returns whether the group is one of them.
    fn contains(self, category: EndpointCategory) -> bool {
        self.0 & Self::bit(category) != 0
    }

    fn bit(category: EndpointCategory) -> u32 {
        1 << category.index()
    }
}

/// Groups and limits of a key.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct KeyOptions {
    /// Groups that the key opens.
    pub(super) groups: GroupSet,
    /// Limits of the key.
    pub(super) limits: KeyLimits,
}

/// A key that clients present.
pub struct AccessKey {
    name: Arc<str>,
    digest: KeyDigest,
    options: KeyOptions,
    usage: Arc<KeyUsage>,
    /// True once the file that was read last has it no longer.
    withdrawn: AtomicBool,
}

/// Leaves out the digest, by which a weak key could be guessed.
impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AccessKey");
        shown.field("name", &self.name).field("options", &self.options).finish_non_exhaustive()
    }
}

impl AccessKey {
    /// Makes a key.
    pub(super) fn new(
        name: &str,
        digest: KeyDigest,
        options: KeyOptions,
        usage: Arc<KeyUsage>,
    ) -> Self {
        Self { name: name.into(), digest, options, usage, withdrawn: AtomicBool::new(false) }
    }

    /// Returns the name of the key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn digest(&self) -> &KeyDigest {
        &self.digest
    }

    pub(super) fn usage(&self) -> &Arc<KeyUsage> {
        &self.usage
    }

    /// Compares in a time that does not tell how much is right.
    pub(super) fn has_digest(&self, digest: &KeyDigest) -> bool {
        self.digest.iter().zip(digest).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }

    /// Returns whether the key opens a group.
    pub(super) fn opens(&self, category: EndpointCategory) -> bool {
        self.options.groups.contains(category)
    }

    /// Ends the use of the key.
    pub(super) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// Counts a request that begins.
    ///
    /// # Errors
    /// Fails when a limit of the key is reached, and when the key was withdrawn.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<ClientPass, AccessRefusal> {
        if self.withdrawn.load(Ordering::Acquire) {
            return Err(AccessRefusal::UnknownKey);
        }
        let begun = self.usage.begin(&self.options.limits, Instant::now());
        begun.map_err(|exceeded| self.refusal(exceeded))?;
        Ok(ClientPass { key: Arc::clone(self) })
    }

    fn refusal(&self, exceeded: ExceededLimit) -> AccessRefusal {
        let name = Arc::clone(&self.name);
        let limits = &self.options.limits;
        match exceeded {
            ExceededLimit::Requests(wait) => {
                let most = limits.requests.unwrap_or(0);
                AccessRefusal::exceeded(name, format!("{most} requests a minute"), wait)
            }
            ExceededLimit::Tokens(wait) => {
                let most = limits.tokens.unwrap_or(0);
                AccessRefusal::exceeded(name, format!("{most} tokens a minute"), wait)
            }
            ExceededLimit::Concurrent => {
                let most = limits.concurrent.unwrap_or(0);
                let limit = format!("{most} requests at the same time");
                AccessRefusal::exceeded(name, limit, Duration::ZERO)
            }
        }
    }

    /// Returns whether tokens of its requests are limited.
    pub(crate) fn limits_tokens(&self) -> bool {
        self.options.limits.tokens.is_some()
    }
}

impl galatea_serving::TokenMeter for AccessKey {
    fn count(&self, tokens: usize) {
        self.usage.count_tokens(&self.options.limits, tokens, Instant::now());
    }
}

/// A request of a key's owner that is under way; it has ended when this is dropped.
#[derive(Debug)]
pub struct ClientPass {
    key: Arc<AccessKey>,
}

impl ClientPass {
    /// Returns the key of the request.
    #[must_use]
    pub fn key(&self) -> &Arc<AccessKey> {
        &self.key
    }
}

impl Drop for ClientPass {
    fn drop(&mut self) {
        self.key.usage.end();
    }
}
