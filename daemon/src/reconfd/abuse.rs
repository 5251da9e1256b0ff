//! How much broken framing a channel is forgiven.
//!
//! Pure: time is given to it. Only broken framing counts; unknown kinds and
//! refused requests do not (threats G3).

use std::time::Duration;

/// Errors within this time count together.
const WINDOW: Duration = Duration::from_secs(60);
/// That many close the channel.
const LIMIT: usize = 3;
/// The first penalty; each further one is twice as long.
const FIRST_PENALTY: Duration = Duration::from_secs(15);
/// The longest penalty.
const LONGEST_PENALTY: Duration = Duration::from_secs(600);

/// What to do after a framing error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Forgive,
    /// Close the channel and listen again after this time.
    Close(Duration),
}

/// The record of one VM's channel.
#[derive(Debug, Default)]
pub struct Abuse {
    errors: Vec<Duration>,
    penalties: u32,
}

impl Abuse {
    /// A framing error at `now`, a time since any fixed start.
    pub fn framing_error(&mut self, now: Duration) -> Verdict {
        self.errors.retain(|at| now.saturating_sub(*at) < WINDOW);
        self.errors.push(now);
        if self.errors.len() < LIMIT {
            return Verdict::Forgive;
        }
        self.errors.clear();
        let penalty =
            FIRST_PENALTY.saturating_mul(1u32.checked_shl(self.penalties).unwrap_or(u32::MAX));
        self.penalties = self.penalties.saturating_add(1).min(16);
        Verdict::Close(penalty.min(LONGEST_PENALTY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_three_in_a_minute_close_and_the_penalty_doubles_up_to_ten_minutes() {
        let mut abuse = Abuse::default();
        let second = Duration::from_secs(1);
        assert_eq!(abuse.framing_error(second), Verdict::Forgive);
        assert_eq!(abuse.framing_error(second * 30), Verdict::Forgive);
        assert_eq!(
            abuse.framing_error(second * 62),
            Verdict::Forgive,
            "the first is forgotten"
        );
        assert_eq!(
            abuse.framing_error(second * 63),
            Verdict::Close(second * 15)
        );
        let mut last = Duration::ZERO;
        for round in 0..40 {
            let at = second * (100 + round * 10);
            if let Verdict::Close(penalty) = abuse.framing_error(at) {
                assert!(penalty >= last);
                last = penalty;
            }
        }
        assert_eq!(last, second * 600);
    }
}
