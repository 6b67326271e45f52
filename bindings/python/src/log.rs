//! Passes messages of the library to Python's module `logging`.
//!
//! The library logs through `tracing`, which passes messages on to `log` if no subscriber is
//! installed, as is the case here. The logging thread may hold a lock of the library, so it must
//! wait neither for the interpreter lock nor for a handler. It adds messages to a queue; a thread
//! that exists while there are messages passes them on.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::thread::ThreadId;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::log::{Level, LevelFilter};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::error::report_unraisable;
use crate::wait::lock;

/// Maximum messages in the queue, because a peer can cause them faster than a handler writes them.
/// Further messages are only counted.
const MESSAGES_MAX: usize = 1024;

/// Maximum wait at the end of the program for messages to be passed on.
const END_WAIT: Duration = Duration::from_secs(2);

/// Levels and their numbers in Python, the most verbose first.
const LEVELS: [(Level, u8); 5] = [
    (Level::Trace, 5),
    (Level::Debug, 10),
    (Level::Info, 20),
    (Level::Warn, 30),
    (Level::Error, 40),
];

struct Message {
    level: u8,
    text: String,
    file: String,
    line: u32,
    thread: Option<String>,
    time: SystemTime,
}

struct Queue {
    messages: VecDeque<Message>,
    /// Messages dropped because the queue was full.
    dropped: u64,
    /// The thread that passes messages on, if it exists.
    thread: Option<ThreadId>,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { messages: VecDeque::new(), dropped: 0, thread: None });
static IDLE: Condvar = Condvar::new();

struct Logger;

impl ::log::Log for Logger {
    fn enabled(&self, metadata: &::log::Metadata<'_>) -> bool {
        metadata.level() <= ::log::max_level() && metadata.target().starts_with("rushes")
    }

    fn log(&self, record: &::log::Record<'_>) {
        let level = LEVELS.iter().find(|(level, _)| *level == record.level());
        let Some((_, level)) = level.filter(|_| self.enabled(record.metadata())) else { return };
        let message = Message {
            level: *level,
            text: record.args().to_string(),
            file: record.file().unwrap_or_default().to_owned(),
            line: record.line().unwrap_or(0),
            thread: thread::current().name().map(ToOwned::to_owned),
            time: SystemTime::now(),
        };
        let mut queue = lock(&QUEUE);
        if queue.messages.len() >= MESSAGES_MAX {
            queue.dropped += 1;
            return;
        }
        queue.messages.push_back(message);
        if queue.thread.is_none() {
            // If no thread can be started now, the next message causes another attempt.
            let started = thread::Builder::new().name("rushes-log".into()).spawn(pass_on_all);
            queue.thread = started.ok().map(|started| started.thread().id());
        }
    }

    fn flush(&self) {}
}

/// Returns the logger "rushes".
fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let get = || Ok(py.import("logging")?.call_method1("getLogger", ("rushes",))?.unbind());
    LOGGER.get_or_try_init(py, get).map(|logger| logger.bind(py))
}

/// Copies the level of the logger "rushes", so that messages below it need no interpreter lock.
/// Call it where the interpreter lock is held anyway, but no lock of the library.
pub(crate) fn take_level(py: Python<'_>) {
    static INSTALLED: Once = Once::new();
    // This fails only if there is a logger already.
    INSTALLED.call_once(|| drop(::log::set_logger(&Logger)));
    let filter = logger(py).and_then(|logger| {
        for (level, number) in LEVELS {
            if logger.call_method1("isEnabledFor", (number,))?.is_truthy()? {
                return Ok(level.to_level_filter());
            }
        }
        Ok(LevelFilter::Off)
    });
    match filter {
        Ok(filter) => ::log::set_max_level(filter),
        // The application may use its own class of loggers, which may fail.
        Err(error) => error.write_unraisable(py, None),
    }
}

/// Passes on messages until the queue is empty.
fn pass_on_all() {
    loop {
        let mut queue = lock(&QUEUE);
        let messages = std::mem::take(&mut queue.messages);
        let dropped = std::mem::take(&mut queue.dropped);
        if messages.is_empty() {
            queue.thread = None;
            IDLE.notify_all();
            return;
        }
        drop(queue);
        // Without an interpreter, the messages are dropped.
        let _ = Python::try_attach(|py| {
            take_level(py);
            for message in messages {
                report(py, &message);
            }
            if dropped > 0 {
                let text = format!("{dropped} messages were dropped: the handlers are too slow");
                let (file, line, time) = (file!().to_owned(), line!(), SystemTime::now());
                report(py, &Message { level: 30, text, file, line, thread: None, time });
            }
        });
    }
}

/// Passes a message to `logging`; an exception goes to `sys.unraisablehook`.
fn report(py: Python<'_>, message: &Message) {
    let passed = logger(py).and_then(|logger| {
        if logger.call_method1("isEnabledFor", (message.level,))?.is_truthy()? {
            logger.call_method1("handle", (record(py, message)?,))?;
        }
        Ok(())
    });
    if let (Err(error), Ok(logger)) = (passed, logger(py)) {
        report_unraisable(py, error, logger);
    }
}

/// Creates a `LogRecord` with the message's time and thread.
fn record<'py>(py: Python<'py>, message: &Message) -> PyResult<Bound<'py, PyAny>> {
    let logging = py.import("logging")?;
    let created = message.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let file = message.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let fields = PyDict::new(py);
    fields.set_item("name", "rushes")?;
    fields.set_item("levelno", message.level)?;
    fields.set_item("levelname", logging.call_method1("getLevelName", (message.level,))?)?;
    fields.set_item("msg", &message.text)?;
    fields.set_item("pathname", &message.file)?;
    fields.set_item("filename", file)?;
    fields.set_item("module", file.trim_end_matches(".rs"))?;
    fields.set_item("lineno", message.line)?;
    fields.set_item("created", created.as_secs_f64())?;
    fields.set_item("msecs", f64::from(created.subsec_millis()))?;
    // The record must not name this thread instead of the one that logged, whose Python name is
    // unknown here.
    fields.set_item("thread", None::<u64>)?;
    fields.set_item("threadName", message.thread.as_deref())?;
    logging.call_method1("makeLogRecord", (fields,))
}

/// Waits until the messages so far are passed on, unless a handler calls it. Call it without the
/// interpreter lock. If a handler hangs, it returns after two seconds.
pub(crate) fn finish() {
    let queue = lock(&QUEUE);
    if queue.thread != Some(thread::current().id()) {
        let waited = IDLE.wait_timeout_while(queue, END_WAIT, |queue| queue.thread.is_some());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
