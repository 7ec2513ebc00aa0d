//! A running hash of facts: two runs with the same digest recorded the same facts in the same order.

/// A 64-bit running hash. Not cryptographic: it guards against accidents, not against forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds one word.
    #[inline]
    pub fn add(&mut self, word: u64) {
        // multiplication carries upwards only; the rotation brings the high bits back down
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// Adds several words.
    #[inline]
    pub fn add_all<const N: usize>(&mut self, words: [u64; N]) {
        for word in words {
            self.add(word);
        }
    }

    /// The hash so far.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}
