//! Seeded randomness and exponential backoff.

use std::time::Duration;

/// A small seeded generator (SplitMix64) for jitter: the same seed draws the same numbers for ever.
///
/// Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; zero when `bound` is zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// A seed for a child machine, so that what one child draws does not move its siblings.
    pub const fn seed(&mut self) -> u64 {
        self.bits()
    }

    /// `duration`, moved by up to `percent` of itself either way.
    pub fn jitter(&mut self, duration: Duration, percent: u32) -> Duration {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let spread = (u128::from(nanos) * u128::from(percent) / 100) as u64;
        let low = nanos.saturating_sub(spread);
        Duration::from_nanos(low.saturating_add(self.below(spread.saturating_mul(2).saturating_add(1))))
    }
}

/// How delays grow from one failure to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// The delay after the first failure, before jitter.
    pub first: Duration,
    /// No delay is longer than this, jitter included.
    pub cap: Duration,
    /// By how many percent of itself a delay is moved either way.
    pub jitter: u32,
}

impl BackoffPolicy {
    /// For watches: 0.8 s doubling to 60 s, ±20 %, so that the first retry comes within a second.
    pub const WATCH: Self = Self { first: Duration::from_millis(800), cap: Duration::from_secs(60), jitter: 20 };
    /// For failed reconciles: 1 s doubling to 60 s, ±10 %.
    pub const RECONCILE: Self = Self { first: Duration::from_secs(1), cap: Duration::from_secs(60), jitter: 10 };

    /// The delay after `failures` failures in a row (1 is the first).
    pub fn delay(&self, failures: u32, random: &mut Random) -> Duration {
        let doublings = failures.saturating_sub(1).min(63);
        let plain = self.first.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(self.cap);
        random.jitter(plain, self.jitter).min(self.cap)
    }
}

/// Exponential backoff with jitter from a seed: doubles from `first` to `cap`, and starts over when told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    policy: BackoffPolicy,
    failures: u32,
    random: Random,
}

impl Backoff {
    /// A backoff that has seen no failure yet.
    pub const fn new(policy: BackoffPolicy, seed: u64) -> Self {
        Self { policy, failures: 0, random: Random::new(seed) }
    }

    /// Counts a failure and answers how long to wait before the next attempt.
    pub fn fail(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.policy.delay(self.failures, &mut self.random)
    }

    /// Starts over: the next failure waits the first delay again.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// How many failures there were since the last reset.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The generator behind the jitter, for other draws of the same machine.
    pub const fn random(&mut self) -> &mut Random {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_the_cap_and_start_over() {
        let policy = BackoffPolicy { jitter: 0, ..BackoffPolicy::RECONCILE };
        let mut backoff = Backoff::new(policy, 1);
        let delays: Vec<u64> = (0..8).map(|_| backoff.fail().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        backoff.reset();
        assert_eq!(backoff.fail(), Duration::from_secs(1));
    }

    #[test]
    fn the_first_watch_retry_comes_within_a_second_and_none_after_a_minute() {
        for seed in 0..1000 {
            let mut backoff = Backoff::new(BackoffPolicy::WATCH, seed);
            assert!(backoff.fail() <= Duration::from_secs(1));
            assert!((0..100).all(|_| backoff.fail() <= Duration::from_secs(60)));
        }
    }

    #[test]
    fn jitter_differs_by_seed_and_repeats_with_it() {
        let draw = |seed| Backoff::new(BackoffPolicy::WATCH, seed).fail();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn draws_below_a_bound_stay_below_it() {
        let mut random = Random::new(3);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }
}
