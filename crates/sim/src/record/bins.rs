//! Series in bins of equal width, with bins of any type.

use tidegate_core::{Span, Time};

/// A series in bins of equal width, which begins at time zero and grows with time.
///
/// Facts come in order of time, so nearly all of them belong to the present bin. It is stored apart from
/// the others, where adding to it touches no further memory.
#[derive(Clone, Debug)]
pub struct Bins<T> {
    present: T,
    ends: Time,
    width: Span,
    past: Vec<T>,
}

impl<T: Copy + Default> Bins<T> {
    /// An empty series of bins `width` wide.
    #[must_use]
    pub fn new(width: Span) -> Self {
        assert!(width > Span::ZERO, "a bin of {width}");
        Self { present: T::default(), ends: Time::ZERO + width, width, past: Vec::new() }
    }

    /// The bin that contains `now`, which becomes the present bin.
    #[inline]
    pub fn at(&mut self, now: Time) -> &mut T {
        debug_assert!(now >= self.ends - self.width, "{now} is in a bin that is closed");
        if now >= self.ends {
            self.move_on(now);
        }
        &mut self.present
    }

    fn move_on(&mut self, now: Time) {
        let index = (now.as_nanos() / self.width.as_nanos()) as usize;
        self.past.push(std::mem::take(&mut self.present));
        self.past.resize(index, T::default());
        self.ends = Time::from_nanos((index as i64 + 1) * self.width.as_nanos());
    }

    /// The bin at `index`, empty beyond the last one touched.
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        match self.past.get(index) {
            Some(&bin) => bin,
            None if index == self.past.len() => self.present,
            None => T::default(),
        }
    }

    /// All bins up to the last one touched.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.past.iter().copied().chain([self.present])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_time() {
        let mut bins = Bins::<u32>::new(Span::from_millis(200));
        *bins.at(Time::ZERO) += 1;
        *bins.at(Time::from_millis(199)) += 1;
        *bins.at(Time::from_millis(200)) += 5;
        *bins.at(Time::from_millis(1000)) += 7;
        assert_eq!(bins.iter().collect::<Vec<_>>(), [2, 5, 0, 0, 0, 7]);
        assert_eq!((bins.get(1), bins.get(5), bins.get(9)), (5, 7, 0));
    }
}
