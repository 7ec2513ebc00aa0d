//! Assignment of subbands in a TTI: proportional fair, in turn, or in runs of neighbours.

use super::fading::{SUBBANDS, WIDTH};

/// A user with data to send in a TTI.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Number of the user.
    pub bearer: u32,
    /// Bytes that it has to send.
    pub need: u64,
    /// The reciprocal of its average rate, in bytes a TTI.
    pub scarce: f32,
    /// The last TTI in which it sent data.
    pub last: i64,
    /// Bytes that each subband would carry for it.
    pub bytes: [f32; WIDTH],
    /// The subbands that it is assigned.
    pub mask: u32,
}

/// Assigns each subband of `free` to the candidate with the largest rate in it relative to its average rate
/// (Jalali, Padovani, Pankaj, VTC Spring 2000), as long as that has data to send.
pub fn share(candidates: &mut [Candidate], mut free: u32) {
    while free != 0 {
        let subband = free.trailing_zeros() as usize;
        free &= free - 1;
        let (mut best_worth, mut best) = (0.0, usize::MAX);
        for (index, candidate) in candidates.iter().enumerate() {
            let worth = candidate.bytes[subband] * candidate.scarce;
            if worth > best_worth && candidate.need > 0 {
                (best_worth, best) = (worth, index);
            }
        }
        let Some(candidate) = candidates.get_mut(best) else { continue };
        candidate.mask |= 1 << subband;
        candidate.need = candidate.need.saturating_sub(candidate.bytes[subband] as u64);
    }
}

/// Assigns all of `free` to the candidate that has waited longest.
pub fn in_turn(candidates: &mut [Candidate], free: u32) {
    if let Some(next) = candidates.iter_mut().min_by_key(|candidate| candidate.last) {
        next.mask = free;
    }
}

/// Assigns runs of neighbouring subbands to the candidates, as single-carrier transmission needs: first to the one
/// with the largest rate over all subbands relative to its average rate; a run has at most `max_run` subbands.
pub fn share_in_runs(candidates: &mut [Candidate], mut free: u32, subbands: usize, max_run: &[usize]) {
    loop {
        let mut best: Option<(f32, usize)> = None;
        for (index, candidate) in candidates.iter().enumerate() {
            let bytes: f32 = candidate.bytes[..subbands].iter().sum();
            if candidate.need == 0 || candidate.mask != 0 || bytes <= 0.0 {
                continue;
            }
            let worth = bytes * candidate.scarce;
            if best.is_none_or(|(best_worth, _)| worth > best_worth) {
                best = Some((worth, index));
            }
        }
        let Some((_, index)) = best else { return };
        if free == 0 {
            return;
        }
        let candidate = &mut candidates[index];
        let mut subband = free.trailing_zeros() as usize;
        let mut need = candidate.need as f32;
        let mut granted = 0;
        while subband < subbands && free >> subband & 1 == 1 && need > 0.0 && granted < max_run[index] {
            candidate.mask |= 1 << subband;
            free &= !(1 << subband);
            need -= candidate.bytes[subband];
            subband += 1;
            granted += 1;
        }
        candidate.need = need.max(0.0) as u64;
    }
}

/// The `count` subbands of `free` that are best by `worth`; none if `free` has fewer.
#[must_use]
pub fn best(free: u32, worth: &[u8; WIDTH], count: u32) -> u32 {
    if free.count_ones() < count {
        return 0;
    }
    let mut mask = 0;
    for _ in 0..count {
        let available = free & !mask;
        let next = (0..SUBBANDS)
            .filter(|subband| available >> subband & 1 == 1)
            .max_by_key(|&subband| (worth[subband], SUBBANDS - subband));
        mask |= next.map_or(0, |subband| 1 << subband);
    }
    mask
}

/// The first `count` neighbouring subbands of `free`; none if there is no such run.
#[must_use]
pub fn run(free: u32, count: u32) -> u32 {
    let block = (1_u32 << count) - 1;
    (0..SUBBANDS as u32).map(|subband| block << subband).find(|mask| mask & free == *mask).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(bearer: u32, need: u64, average: f32, bytes: f32) -> Candidate {
        Candidate { bearer, need, scarce: 1.0 / average, last: 0, bytes: [bytes; WIDTH], mask: 0 }
    }

    #[test]
    fn subbands_go_to_the_candidate_with_the_largest_relative_rate() {
        let mut candidates = [candidate(0, 10_000, 100.0, 50.0), candidate(1, 10_000, 200.0, 80.0)];
        candidates[1].bytes[3] = 120.0;
        share(&mut candidates, 0b11111);
        assert_eq!((candidates[0].mask, candidates[1].mask), (0b10111, 0b01000));
        // a candidate whose need is met gets no more
        let mut candidates = [candidate(0, 60, 100.0, 50.0), candidate(1, 10_000, 200.0, 80.0)];
        share(&mut candidates, 0b11111);
        assert_eq!((candidates[0].mask, candidates[1].mask), (0b00011, 0b11100));
        let mut candidates = [candidate(0, 0, 1.0, 1.0), candidate(1, 9, 1.0, 0.0)];
        share(&mut candidates, 0b111);
        assert_eq!((candidates[0].mask, candidates[1].mask), (0, 0));
    }

    #[test]
    fn turns_go_to_the_candidate_that_has_waited_longest() {
        let mut candidates =
            [candidate(0, 9, 1.0, 1.0), candidate(1, 9, 1.0, 1.0), candidate(2, 9, 1.0, 1.0)];
        (candidates[0].last, candidates[1].last, candidates[2].last) = (7, 3, 3);
        in_turn(&mut candidates, 0b1011);
        assert_eq!(candidates.map(|candidate| candidate.mask), [0, 0b1011, 0]);
    }

    #[test]
    fn runs_are_neighbours() {
        let mut candidates = [candidate(0, 90, 100.0, 50.0), candidate(1, 10_000, 200.0, 80.0)];
        share_in_runs(&mut candidates, 0b11111, 5, &[5, 2]);
        assert_eq!((candidates[0].mask, candidates[1].mask), (0b00011, 0b01100));
        assert_eq!(run(0b1011_1011, 3), 0b0011_1000);
        assert_eq!(run(0b1011_0011, 3), 0);
        let mut worth = [0; WIDTH];
        worth[1] = 4;
        worth[4] = 9;
        assert_eq!(best(0b11011, &worth, 2), 0b10010);
        assert_eq!(best(0b11011, &worth, 3), 0b10011);
        assert_eq!(best(0b11011, &worth, 5), 0);
    }
}
