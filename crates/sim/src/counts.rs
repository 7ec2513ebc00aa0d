//! Subtraction from counts that panics where a count would fall below zero.

/// Subtracts `part` from `count`; `unit` says what is counted, for the message.
///
/// Release builds do not check arithmetic (`docs/design/engine.md`, D40, has the cost); here a count that fell below zero
/// would go on as an enormous one, and every figure made of it would be wrong.
///
/// # Panics
/// If `count` is smaller than `part`: something was counted twice on its way out, or never on its way in.
#[inline]
#[track_caller]
pub(crate) fn take_away(count: &mut u64, part: u64, unit: &str) {
    match count.checked_sub(part) {
        Some(rest) => *count = rest,
        None => too_few(*count, part, unit),
    }
}

#[cold]
#[track_caller]
fn too_few(count: u64, part: u64, unit: &str) -> ! {
    panic!("{part} {unit} are taken away, but there are only {count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_count_can_be_taken_away() {
        let mut count = 5;
        take_away(&mut count, 5, "bytes");
        assert_eq!(count, 0);
    }

    #[test]
    #[should_panic(expected = "6 bytes are taken away, but there are only 5")]
    fn more_than_the_count_cannot() {
        take_away(&mut 5, 6, "bytes");
    }
}
