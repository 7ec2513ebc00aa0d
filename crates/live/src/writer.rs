//! Writes files in a thread of their own, so that the thread that handles packets never waits for a disk.

use std::io;
use std::iter::Flatten;
use std::mem;
use std::sync::mpsc::{IntoIter, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Number of chunks that wait for the disk at most: some seconds of packets at 1 Gb/s.
const QUEUE: usize = 1024;

/// Iterator over the items that the writing thread gets.
pub(crate) type Items<T> = Flatten<IntoIter<Vec<T>>>;

/// Passes items to a thread that writes them, in chunks. Items for which the queue has no room are left out, and counted.
#[derive(Debug)]
pub(crate) struct Writer<T> {
    chunk: usize,
    pending: Vec<T>,
    sender: Option<SyncSender<Vec<T>>>,
    left_out: u64,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl<T: Send + 'static> Writer<T> {
    /// Starts a thread called `name`, with the scheduling of the calling thread; it gets `chunk` items at once.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn begin(
        name: &str,
        chunk: usize,
        write: impl FnOnce(Items<T>) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel::<Vec<T>>(QUEUE);
        let thread =
            Builder::new().name(name.to_owned()).spawn(move || write(receiver.into_iter().flatten()))?;
        let pending = Vec::with_capacity(chunk);
        Ok(Self { chunk, pending, sender: Some(sender), left_out: 0, thread: Some(thread) })
    }

    /// Adds an item.
    pub(crate) fn put(&mut self, item: T) {
        self.pending.push(item);
        if self.pending.len() == self.chunk {
            let pending = mem::replace(&mut self.pending, Vec::with_capacity(self.chunk));
            // if the thread has ended with an error, `finish` returns it
            if let Some(Err(TrySendError::Full(chunk))) =
                self.sender.as_ref().map(|sender| sender.try_send(pending))
            {
                self.left_out += chunk.len() as u64;
            }
        }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// If something could not be written, or was left out.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        // waits for room in the queue; an error is that of the thread
        let _ = self.sender.take().map(|sender| sender.send(mem::take(&mut self.pending)));
        let thread = self.thread.take().map(JoinHandle::join);
        let written = thread
            .unwrap_or(Ok(Ok(())))
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes has panicked")));
        match self.left_out {
            0 => written,
            items => written.and(Err(io::Error::other(format!(
                "{items} packets are left out, because they came faster than the disk took them"
            )))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_slow_disk_does_not_fill_the_memory() {
        let (go, wait) = channel::<()>();
        let write = move |items: Items<u64>| {
            wait.recv().expect("the test goes on");
            let written = items.count();
            assert!((QUEUE * 4..=(QUEUE + 1) * 4 + 1).contains(&written), "{written}");
            Ok(())
        };
        let mut writer = Writer::begin("slow", 4, write).expect("a thread");
        (0..8 * QUEUE as u64 + 1).for_each(|number| writer.put(number));
        let left_out = writer.left_out;
        assert!((4 * (QUEUE as u64 - 1)..=4 * QUEUE as u64).contains(&left_out), "{left_out}");
        go.send(()).expect("it waits");
        let error = writer.finish().expect_err("not all is written").to_string();
        assert_eq!(
            error,
            format!("{left_out} packets are left out, because they came faster than the disk took them")
        );
    }
}
