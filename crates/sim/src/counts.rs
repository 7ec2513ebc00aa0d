//! Counts that go up and down: what is taken away must have been there.

/// Takes `part` away from `count`, which is so many of `what`.
///
/// Release builds do not check arithmetic (`docs/design/engine.md`, D40, has the cost); here a count that fell below zero
/// would go on as an enormous one, and every figure made of it would be wrong.
///
/// # Panics
/// If there is less: something was counted twice on its way out, or never on its way in.
#[inline]
#[track_caller]
pub(crate) fn take_away(count: &mut u64, part: u64, what: &str) {
    match count.checked_sub(part) {
        Some(rest) => *count = rest,
        None => too_few(*count, part, what),
    }
}

#[cold]
#[track_caller]
fn too_few(count: u64, part: u64, what: &str) -> ! {
    panic!("{part} {what} go, and only {count} are there")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_can_be_taken_away() {
        let mut count = 5;
        take_away(&mut count, 5, "bytes");
        assert_eq!(count, 0);
    }

    #[test]
    #[should_panic(expected = "6 bytes go, and only 5 are there")]
    fn what_is_not_there_cannot() {
        take_away(&mut 5, 6, "bytes");
    }
}
