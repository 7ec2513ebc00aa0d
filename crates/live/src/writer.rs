//! Writes files in a thread of their own, so that the thread that handles packets never waits for a disk.

use std::io;
use std::iter::Flatten;
use std::mem;
use std::sync::mpsc::{IntoIter, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// Iterator over the items that the writing thread gets.
pub(crate) type Items<T> = Flatten<IntoIter<Vec<T>>>;

/// Passes items to a thread that writes them, in chunks.
#[derive(Debug)]
pub(crate) struct Writer<T> {
    chunk: usize,
    pending: Vec<T>,
    sender: Option<Sender<Vec<T>>>,
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
        let (sender, receiver) = channel::<Vec<T>>();
        let thread =
            Builder::new().name(name.to_owned()).spawn(move || write(receiver.into_iter().flatten()))?;
        Ok(Self { chunk, pending: Vec::with_capacity(chunk), sender: Some(sender), thread: Some(thread) })
    }

    /// Adds an item.
    pub(crate) fn put(&mut self, item: T) {
        self.pending.push(item);
        if self.pending.len() == self.chunk {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let pending = mem::replace(&mut self.pending, Vec::with_capacity(self.chunk));
        // if the thread has ended with an error, `finish` returns it
        let _ = self.sender.as_ref().map(|sender| sender.send(pending));
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// If something could not be written.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.sender = None;
        let thread = self.thread.take().map(JoinHandle::join);
        thread
            .unwrap_or(Ok(Ok(())))
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes has panicked")))
    }
}
