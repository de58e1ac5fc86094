//! A network that loses, delays, cuts and mangles, by a seed.

use std::time::Duration;

use cloudcoil_core::Random;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// How often each thing goes wrong, in thousandths of all exchanges, and how slow everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct Faults {
    /// No connection is made.
    pub refuse: u32,
    /// The request never arrives, and nothing says so.
    pub lose: u32,
    /// The request arrives, and the answer is lost with its connection.
    pub lose_answer: u32,
    /// The request arrives twice, as a proxy that retries sends it; the second answer counts.
    pub duplicate: u32,
    /// Something before the server answers in its place: 429 with and without `Retry-After`, 5xx, HTML, nothing.
    pub interpose: u32,
    /// The answer breaks off somewhere, with a reset.
    pub reset: u32,
    /// The answer breaks off somewhere, and looks complete.
    pub cut: u32,
    /// The answer goes silent somewhere, and its connection stays open.
    pub hush: u32,
    /// The longest that anything is under way in one direction.
    pub latency: Duration,
}

impl Faults {
    /// Nothing goes wrong; everything takes a moment.
    pub const fn none() -> Self {
        let latency = Duration::from_millis(5);
        let (refuse, lose, lose_answer, duplicate) = (0, 0, 0, 0);
        Self { refuse, lose, lose_answer, duplicate, interpose: 0, reset: 0, cut: 0, hush: 0, latency }
    }

    /// Everything goes wrong, about every third exchange.
    pub const fn all() -> Self {
        let latency = Duration::from_millis(800);
        let (refuse, lose, lose_answer, duplicate) = (40, 20, 30, 20);
        Self { refuse, lose, lose_answer, duplicate, interpose: 60, reset: 80, cut: 50, hush: 40, latency }
    }
}

/// What becomes of one exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The client hears at once that there is no connection.
    Refused,
    /// Nobody ever hears anything.
    Lost,
    /// Something else answers.
    Interposed(Interposed),
    /// The server gets it.
    Delivered { twice: bool, answer: Passage },
}

/// An answer that is not the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interposed {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: &'static str,
}

/// How far an answer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Whole,
    /// That many bytes of the body pass, and then the end comes.
    Until {
        bytes: usize,
        end: End,
    },
}

#[derive(Clone, Copy)]
enum Fault {
    Refuse,
    Lose,
    LoseAnswer,
    Duplicate,
    Interpose,
    Break(End),
}

/// How an answer breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Reset,
    Cut,
    Hush,
}

/// Draws what happens; the same seed draws the same.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) faults: Faults,
    random: Random,
}

impl Network {
    pub(super) const fn new(faults: Faults, seed: u64) -> Self {
        Self { faults, random: Random::new(seed) }
    }

    pub(super) fn latency(&mut self) -> Duration {
        let most = u64::try_from(self.faults.latency.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(1 + self.random.below(most))
    }

    /// In how many pieces, and where, a piece of a body arrives: the lengths, none of them zero.
    pub(super) fn pieces(&mut self, length: usize) -> Vec<usize> {
        let mut pieces = Vec::new();
        let mut left = length;
        while left > 0 {
            let most = if self.random.below(4) == 0 { 7 } else { 1500 };
            let piece = left.min(1 + usize::try_from(self.random.below(most)).unwrap_or(0));
            pieces.push(piece);
            left -= piece;
        }
        pieces
    }

    pub(super) fn fate(&mut self) -> Fate {
        let fault = self.fault();
        // Mostly soon, so that lists and single objects are hit too; sometimes deep in a watch.
        let most = if self.random.below(2) == 0 { 600 } else { 40_000 };
        let bytes = usize::try_from(self.random.below(most)).unwrap_or(0);
        let delivered = |twice, answer| Fate::Delivered { twice, answer };
        match fault {
            Some(Fault::Refuse) => Fate::Refused,
            Some(Fault::Lose) => Fate::Lost,
            Some(Fault::Interpose) => Fate::Interposed(self.interposed()),
            Some(Fault::LoseAnswer) => delivered(false, Passage::Until { bytes: 0, end: End::Reset }),
            Some(Fault::Duplicate) => delivered(true, Passage::Whole),
            Some(Fault::Break(end)) => delivered(false, Passage::Until { bytes, end }),
            None => delivered(false, Passage::Whole),
        }
    }

    fn fault(&mut self) -> Option<Fault> {
        let Faults { refuse, lose, lose_answer, duplicate, interpose, reset, cut, hush, .. } = self.faults;
        let chances = [
            (refuse, Fault::Refuse),
            (lose, Fault::Lose),
            (lose_answer, Fault::LoseAnswer),
            (duplicate, Fault::Duplicate),
            (interpose, Fault::Interpose),
            (reset, Fault::Break(End::Reset)),
            (cut, Fault::Break(End::Cut)),
            (hush, Fault::Break(End::Hush)),
        ];
        let mut drawn = self.random.below(1000);
        chances.into_iter().find_map(|(chance, fault)| match drawn.checked_sub(chance.into()) {
            Some(rest) => {
                drawn = rest;
                None
            }
            None => Some(fault),
        })
    }

    fn interposed(&mut self) -> Interposed {
        const STATUS: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}"#;
        const ERROR: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"etcdserver: leader changed","reason":"InternalError","code":500}"#;
        const HTML: &str = "<html><body><h1>Service Unavailable</h1></body></html>";
        let (code, body, header) = match self.random.below(7) {
            0 => (429, STATUS, Some((RETRY_AFTER, "2"))),
            1 => (429, STATUS, None),
            2 => (500, ERROR, None),
            3 => (503, HTML, Some((CONTENT_TYPE, "text/html"))),
            4 => (503, "", None),
            5 => (502, "upstream connect error", None),
            _ => (200, HTML, Some((CONTENT_TYPE, "text/html"))),
        };
        let headers = header.map(|(name, value): (HeaderName, _)| (name, HeaderValue::from_static(value)));
        let status = StatusCode::from_u16(code).expect("codes of the table above");
        Interposed { status, headers: headers.into_iter().collect(), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_happens_and_most_exchanges_pass() {
        let mut network = Network::new(Faults::all(), 1);
        let fates: Vec<_> = (0..10_000).map(|_| network.fate()).collect();
        let count = |of: fn(&Fate) -> bool| fates.iter().filter(|fate| of(fate)).count();
        assert!(count(|fate| matches!(fate, Fate::Refused)) > 200);
        assert!(count(|fate| matches!(fate, Fate::Lost)) > 100);
        assert!(count(|fate| matches!(fate, Fate::Interposed(_))) > 300);
        assert!(count(|fate| matches!(fate, Fate::Delivered { twice: true, .. })) > 100);
        for end in [End::Reset, End::Cut, End::Hush] {
            assert!(fates.iter().any(
                |fate| matches!(fate, Fate::Delivered { answer: Passage::Until { end: e, .. }, .. } if *e == end)
            ));
        }
        assert!(count(|fate| matches!(fate, Fate::Delivered { twice: false, answer: Passage::Whole })) > 6000);
    }

    #[test]
    fn without_faults_everything_passes() {
        let mut network = Network::new(Faults::none(), 1);
        let whole = Fate::Delivered { twice: false, answer: Passage::Whole };
        assert!((0..1000).all(|_| network.fate() == whole));
    }

    #[test]
    fn pieces_make_up_the_whole() {
        let mut network = Network::new(Faults::all(), 2);
        for length in [0, 1, 2, 100, 50_000] {
            let pieces = network.pieces(length);
            assert_eq!(pieces.iter().sum::<usize>(), length);
            assert!(!pieces.contains(&0));
        }
    }
}
