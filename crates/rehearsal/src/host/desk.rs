//! The desk of a hosted world: a socket in its folder where other processes ask what is there, or change it.
//!
//! ```text
//!  castle rehearse poke --line of JSON--> socket --thread--> channel --task of the host--> Shared::poke
//! ```
//! The world lives on a paused clock, which must never meet a real socket: a thread of its own reads and writes, and
//! hands each question over a channel to a task that sleeps until one comes. So a world that nobody asks has the same
//! trace as one without a desk, and a question is answered at the world's moment, also while its clock is held.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use castle_model::time::Moment;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::shared::{Shared, differ};
use crate::inventory::Inventory;
use crate::store::{self, Holder};
use crate::trouble::{TalosTrouble, Trouble};
use crate::world::{Datacenter, FORMAT, Input};

/// The socket in the folder of a world.
pub const SOCKET: &str = "desk";

/// The longest line that is read, either way: an inventory of a hundred nodes is far below it.
const LINE_MAX: u64 = 8 * 1024 * 1024;

/// How long a caller may take to say what he wants: one at a time is served.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the world may take to answer: it is busy for milliseconds, unless its process waits for a person.
const BUSY: Duration = Duration::from_secs(5);

/// The longest path that a socket's address holds; longer ones are reached through their folder.
const PATH_MAX: usize = 100;

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// What is there?
    Inventory,
    /// What time is it there?
    Clock,
    /// Let something happen, now.
    Poke {
        /// The rule that says it.
        rule: String,
        /// The same as a sentence.
        what: String,
        /// What happens, in this order.
        troubles: Vec<Trouble>,
    },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// What is there.
    Inventory(Box<Inventory>),
    /// The time of day there.
    Clock(Moment),
    /// It has happened.
    Poked(Poked),
    /// It can not be answered, and why.
    Refused(String),
}

/// What became of a poke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poked {
    /// When, in virtual milliseconds since the world's birth.
    pub at: u64,
    /// Whether anything is different now.
    pub changed: bool,
}

/// Why a desk gives no answer.
#[derive(Debug, Error)]
pub enum DeskError {
    /// The operating system refused.
    #[error("cannot {doing} the desk of the rehearsal's world, {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The process behind it was stopped (Ctrl-Z, SIGSTOP).
    #[error("the rehearsal's world is held by {0}")]
    Stopped(Holder),
    /// The process behind it says nothing.
    #[error("the process that hosts the rehearsal's world does not answer")]
    Silent,
    /// The process behind it does not understand, or is not understood.
    #[error("the process that hosts the rehearsal's world answers: {0}")]
    Refused(String),
}

impl DeskError {
    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> String {
        let awakening = match self {
            Self::Stopped(holder) => holder.awakening(),
            Self::Io { .. } | Self::Silent | Self::Refused(_) => None,
        };
        awakening.unwrap_or_else(|| {
            "it may wait for somebody to agree: look at its terminal, and try again".to_owned()
        })
    }
}

/// A question on the wire. The format goes first: processes of two versions do not understand each other.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    format: u32,
    message: T,
}

/// What of a line two versions can always tell each other.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

/// A question on its way into the world, and the way back.
type Question = (Ask, SyncSender<Told>);

/// An open desk; it closes when it is dropped.
pub(super) struct Desk {
    path: PathBuf,
    closed: Arc<AtomicBool>,
}

impl Desk {
    /// Opens the desk of a world that this process holds the lock of.
    pub(super) fn open(folder: &Path, shared: &Arc<Shared>) -> io::Result<Self> {
        let path = folder.join(SOCKET);
        match fs::symlink_metadata(&path) {
            // Whoever left it there does not live any more: the lock is ours.
            Ok(meta) if meta.file_type().is_socket() => fs::remove_file(&path)?,
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = through(&path, |path| UnixListener::bind(path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let (sender, receiver) = unbounded_channel();
        let closed = Arc::new(AtomicBool::new(false));
        let end = closed.clone();
        std::thread::Builder::new()
            .name("desk".to_owned())
            .spawn(move || attend(&listener, &sender, &end))?;
        shared.spawn(answer(shared.clone(), receiver));
        Ok(Self { path, closed })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        // The thread waits for a caller: this is the last one. It ends by itself, and nobody waits for it.
        drop(through(&self.path, |path| UnixStream::connect(path)));
        drop(fs::remove_file(&self.path));
    }
}

/// Serves callers one by one, on a thread that never touches the world.
fn attend(listener: &UnixListener, questions: &UnboundedSender<Question>, closed: &AtomicBool) {
    for stream in listener.incoming() {
        if closed.load(Ordering::Acquire) {
            return;
        }
        // Whoever goes away in the middle, or is too slow, is let go.
        if let Ok(stream) = stream {
            drop(serve(&stream, questions));
        }
    }
}

fn serve(stream: &UnixStream, questions: &UnboundedSender<Question>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let told = match read::<Ask>(stream) {
        Ok(ask) => {
            let (sender, receiver) = sync_channel(1);
            let sent = questions.send((ask, sender)).is_ok();
            let told = receiver.recv_timeout(BUSY).ok().filter(|_| sent);
            told.unwrap_or_else(|| Told::Refused("it is busy, or waits for a person".to_owned()))
        }
        Err(Unread::Io(error)) => return Err(error),
        Err(Unread::Foreign(why)) => Told::Refused(why),
    };
    write(stream, &told)
}

/// Answers on the world's own thread.
async fn answer(shared: Arc<Shared>, mut questions: UnboundedReceiver<Question>) {
    while let Some((ask, reply)) = questions.recv().await {
        let told = match ask {
            Ask::Inventory => Told::Inventory(Box::new(inventory(&shared))),
            Ask::Clock => Told::Clock(shared.time.moment()),
            Ask::Poke { rule, what, troubles } => match poke(&shared, &troubles) {
                Some(poked) => {
                    if poked.changed {
                        shared.tell_poke(poked.at, rule, what);
                    }
                    Told::Poked(poked)
                }
                None => Told::Refused("the world has ended".to_owned()),
            },
        };
        // A caller that has gone does not hear of it.
        drop(reply.send(told));
    }
}

/// Lets troubles happen now, and says whether anything is different; none once the world has ended.
pub(super) fn poke(shared: &Shared, troubles: &[Trouble]) -> Option<Poked> {
    let at = shared.time.now();
    let before = shared.read(Datacenter::clone);
    for trouble in troubles {
        // Nobody can pull the plug of what is not there; a rule may be made in advance, a poke happens now.
        let nobody = matches!(trouble, Trouble::Talos(TalosTrouble::Dead(vmid)) if !before.talos.knows(*vmid));
        if !nobody {
            shared.input(&Input::Trouble(trouble.clone()))?;
        }
    }
    Some(Poked { at, changed: shared.read(|after| differ(before, after)) })
}

/// What is there.
pub(super) fn inventory(shared: &Shared) -> Inventory {
    Inventory { at: shared.time.now(), rules: shared.rules(), ..shared.read(Inventory::of) }
}

/// Asks the process that hosts the world in a folder; none if there is no such process.
///
/// # Errors
/// If it does not answer, or can not.
pub fn ask(folder: &Path, ask: &Ask) -> Result<Option<Told>, DeskError> {
    let path = folder.join(SOCKET);
    let failed = |doing| {
        let path = path.clone();
        move |source| DeskError::Io { doing, path, source }
    };
    let stream = match through(&path, |path| UnixStream::connect(path)) {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed("reach")(error)),
    };
    // Before it is asked: a poke that lies there would be done whenever the process goes on.
    if let Some(holder) = stopped(folder) {
        return Err(DeskError::Stopped(holder));
    }
    stream.set_read_timeout(Some(BUSY + PATIENCE)).map_err(failed("wait at"))?;
    write(&stream, ask).map_err(failed("speak to"))?;
    match read::<Told>(&stream) {
        Ok(Told::Refused(why)) | Err(Unread::Foreign(why)) => Err(DeskError::Refused(why)),
        Ok(told) => Ok(Some(told)),
        // It closed between our coming and its answer.
        Err(Unread::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(Unread::Io(_)) => Err(stopped(folder).map_or(DeskError::Silent, DeskError::Stopped)),
    }
}

/// Who hosts the world in a folder, if he is stopped and so hears nothing.
fn stopped(folder: &Path) -> Option<Holder> {
    store::holder(folder).filter(|holder| holder.stopped)
}

/// Why a line gives no message.
enum Unread {
    Io(io::Error),
    Foreign(String),
}

fn read<T: for<'de> Deserialize<'de>>(stream: &UnixStream) -> Result<T, Unread> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LINE_MAX)).read_until(b'\n', &mut line).map_err(Unread::Io)?;
    match line.last() {
        Some(b'\n') => {}
        Some(_) if line.len() as u64 >= LINE_MAX => {
            return Err(Unread::Foreign(format!("more than {LINE_MAX} bytes in one line")));
        }
        _ => return Err(Unread::Io(io::ErrorKind::UnexpectedEof.into())),
    }
    let foreign = |why: String| Unread::Foreign(format!("that is no message for it ({why})"));
    let version: Version = serde_json::from_slice(&line).map_err(|e| foreign(e.to_string()))?;
    if version.format != FORMAT {
        return Err(Unread::Foreign(format!(
            "one castle speaks format {}, the other {FORMAT}: use the same castle for both",
            version.format
        )));
    }
    let line: Line<T> = serde_json::from_slice(&line).map_err(|e| foreign(e.to_string()))?;
    Ok(line.message)
}

fn write<T: Serialize>(mut stream: &UnixStream, message: &T) -> io::Result<()> {
    let line = Line { format: FORMAT, message };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// Uses a socket by its path, or where that is too long for an address, by one through its open folder.
fn through<T>(path: &Path, use_it: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return use_it(path);
    };
    if path.as_os_str().len() < PATH_MAX {
        return use_it(path);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(folder, flags, Mode::empty())?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    use_it(&PathBuf::from(format!("/proc/self/fd/{number}")).join(name))
}
