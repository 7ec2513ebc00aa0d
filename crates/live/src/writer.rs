//! Files are written by a thread of their own: whoever handles packets never waits for a disk.

use std::io;
use std::iter::Flatten;
use std::mem;
use std::sync::mpsc::{IntoIter, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// What is handed over, one by one; ends when all has been.
pub(crate) type Items<T> = Flatten<IntoIter<Vec<T>>>;

/// Hands things over to a thread that writes them, some at a time.
#[derive(Debug)]
pub(crate) struct Writer<T> {
    chunk: usize,
    kept: Vec<T>,
    to: Option<Sender<Vec<T>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl<T: Send + 'static> Writer<T> {
    /// Begins a thread called `name`, with the scheduling of whoever calls this; it gets `chunk` things at once.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(crate) fn begin(
        name: &str,
        chunk: usize,
        write: impl FnOnce(Items<T>) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (to, from) = channel::<Vec<T>>();
        let thread = Builder::new().name(name.to_owned()).spawn(move || write(from.into_iter().flatten()))?;
        Ok(Self { chunk, kept: Vec::with_capacity(chunk), to: Some(to), thread: Some(thread) })
    }

    /// Takes one.
    pub(crate) fn put(&mut self, one: T) {
        self.kept.push(one);
        if self.kept.len() == self.chunk {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let kept = mem::replace(&mut self.kept, Vec::with_capacity(self.chunk));
        // a thread that has ended has an error to tell at the end
        let _ = self.to.as_ref().map(|to| to.send(kept));
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// When something could not be.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.hand_over();
        self.to = None;
        let thread = self.thread.take().map(JoinHandle::join);
        thread
            .unwrap_or(Ok(Ok(())))
            .unwrap_or_else(|_| Err(io::Error::other("the thread that writes has panicked")))
    }
}
