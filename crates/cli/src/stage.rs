//! The live screen of runs on a terminal: a thread of its own paints what they tell, so that nobody waits for it.
//!
//! ```text
//!   the run ──events──▶ fold ────▶ painter's thread: lays out (view::screen), one write a frame ──▶ terminal
//!             └─news──▶ inbox ──▶
//!   output::say ─text─▶
//! ```
//!
//! An event is folded once, by whoever tells it; the thread reads the fold when a frame is due. So a run without frames costs nothing but that fold.
//!
//! What is said while the screen is up scrolls above it, and stands on the terminal when the screen has gone. The thread asks the run's clock for the time, and never moves
//! it: a rehearsal's trace is the same with and without a screen. A terminal that has gone is let go.

use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use castle_model::{Event, StepDecl};
use castle_view::history::Expected;
use castle_view::plain::{self, News};
use castle_view::screen::{Scene, Turn, lines};
use castle_view::{Progress, Signs, Style};
use castle_wire::Clock;
use tokio::runtime::Handle;

use crate::output;

mod painter;
mod terminal;

use self::painter::Painter;
use self::terminal::Terminal;
pub(crate) use self::terminal::in_front;

/// What is over sooner gets no screen: it would only flash. A rehearsal at full speed is, and has its report at once.
const FIRST: Duration = Duration::from_millis(250);

/// At most one frame in this time.
const BETWEEN: Duration = Duration::from_millis(50);

/// Without news, a frame comes after this time: clocks tick. A rehearsal's run faster.
const TICK: Duration = Duration::from_millis(250);
const TICK_REHEARSED: Duration = Duration::from_millis(100);

/// A fold of events that whoever hears them and the painter's thread share.
#[derive(Clone)]
pub(crate) struct Fold(Arc<Mutex<Progress>>);

impl Fold {
    pub(crate) fn new(progress: Progress) -> Self {
        Self(Arc::new(Mutex::new(progress)))
    }

    /// The fold as it is now; nobody else has it meanwhile.
    pub(crate) fn held(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a screen shows.
pub(crate) struct Show {
    /// What was heard, and will be.
    pub(crate) fold: Fold,
    /// The steps, as in a plan.
    pub(crate) decls: Vec<StepDecl>,
    pub(crate) expected: Expected,
    pub(crate) turn: Option<Turn>,
    /// Tells the time of the run; without one, its last event does.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) style: Style,
}

/// A screen that is up; it goes when it is dropped, and leaves the terminal as it was.
pub(crate) struct Stage {
    inbox: Arc<Inbox>,
    signs: Signs,
}

/// What the painter's thread does next.
type Job = Box<dyn FnOnce() + Send>;

/// The way to the painter's thread. It serves every run of this process: one for each would give its memory back at the end
/// of each, and that costs more than what it paints.
static PAINTER: Mutex<Option<Sender<Job>>> = Mutex::new(None);

/// What is to be shown next.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    items: Vec<Item>,
    /// Whether the fold has changed since the last frame.
    stirred: bool,
    phase: Phase,
    /// Whether the terminal was given back, for as long as it is not the screen's.
    away: bool,
    /// Whether nobody paints any more.
    over: bool,
}

enum Item {
    News(News),
    Text(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Showing,
    /// The process is about to be stopped.
    Suspended,
    Closing,
}

impl Stage {
    /// Puts the screen up. Must be called within a runtime, whose time the clock may be of.
    pub(crate) fn open(show: Show) -> Option<Self> {
        terminal::mind_panics();
        let inbox = Arc::new(Inbox::default());
        // It goes with the job, also if nobody takes that up any more.
        let (over, runtime, signs) = (Over(inbox.clone()), Handle::current(), show.style.signs);
        paint(Box::new(move || {
            let _time = runtime.enter();
            let painter = Painter::new(show.style);
            Loop { show, painter, terminal: Terminal::default() }.run(&over.0);
        }))?;
        output::stage(Some(inbox.clone()));
        Some(Self { inbox, signs })
    }

    /// Shows one event, which the fold has taken in.
    pub(crate) fn hear(&self, event: &Event, progress: &Progress) {
        match plain::news(event, progress, self.signs) {
            Some(news) => self.inbox.push(Item::News(news)),
            None => self.inbox.stir(),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        output::stage(None);
        self.inbox.enter(Phase::Closing);
        // A panic was told, and the terminal given back, where it happened.
        self.inbox.outlive();
    }
}

/// Has the painter's thread do something, and starts it where it is not there, or not any more.
fn paint(job: Job) -> Option<()> {
    let mut painter = PAINTER.lock().unwrap_or_else(PoisonError::into_inner);
    let job = match painter.as_ref() {
        None => job,
        Some(there) => match there.send(job) {
            Ok(()) => return Some(()),
            Err(SendError(job)) => job,
        },
    };
    let (send, jobs) = channel::<Job>();
    let work = move || jobs.into_iter().for_each(|job| job());
    std::thread::Builder::new().name("screen".to_owned()).spawn(work).ok()?;
    send.send(job).ok()?;
    *painter = Some(send);
    Some(())
}

/// Says at its end that nobody paints any more, however it ends.
struct Over(Arc<Inbox>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

impl Inbox {
    /// Shows a text above the screen.
    pub(crate) fn say(&self, text: &str) {
        self.push(Item::Text(text.to_owned()));
    }

    /// Gives the terminal back until [`Inbox::resume`], since the process will be stopped.
    pub(crate) fn suspend(&self) {
        self.enter(Phase::Suspended);
        let state = self.lock();
        let waits = |state: &mut State| !state.away && state.phase == Phase::Suspended;
        // A terminal that takes nothing must not keep the process from being stopped.
        drop(self.changed.wait_timeout_while(state, TICK, waits));
    }

    /// Takes the terminal again.
    pub(crate) fn resume(&self) {
        self.enter(Phase::Showing);
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        state.away = false;
        drop(state);
        self.changed.notify_all();
    }

    fn push(&self, item: Item) {
        let mut state = self.lock();
        state.items.push(item);
        self.wake(state);
    }

    /// Says that the fold has changed.
    fn stir(&self) {
        self.wake(self.lock());
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let known = std::mem::replace(&mut state.stirred, true);
        drop(state);
        if !known {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody paints any more.
    fn outlive(&self) {
        drop(self.changed.wait_while(self.lock(), |state| !state.over));
    }

    /// Rests, unless the phase is another one.
    fn rest(&self, time: Duration) {
        let showing = |state: &mut State| state.phase == Phase::Showing;
        drop(self.changed.wait_timeout_while(self.lock(), time, showing));
    }

    /// What is new, after at most this time.
    fn take(&self, tick: Duration) -> (Vec<Item>, Phase) {
        let nothing = |state: &mut State| !state.stirred && state.phase == Phase::Showing;
        let waited = self.changed.wait_timeout_while(self.lock(), tick, nothing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.stirred = false;
        (std::mem::take(&mut state.items), state.phase)
    }

    /// Says that the terminal was given back, and waits until it is wanted again.
    fn stand_aside(&self) {
        let mut state = self.lock();
        state.away = true;
        self.changed.notify_all();
        let suspended = |state: &mut State| state.phase == Phase::Suspended;
        drop(self.changed.wait_while(state, suspended));
    }
}

/// What the thread works with.
struct Loop {
    show: Show,
    painter: Painter,
    terminal: Terminal,
}

impl Loop {
    fn run(mut self, inbox: &Inbox) {
        let rehearsed = self.show.fold.held().rehearsal;
        let tick = if rehearsed { TICK_REHEARSED } else { TICK };
        inbox.rest(FIRST);
        loop {
            let (items, phase) = inbox.take(tick);
            let (columns, rows) = Terminal::size();
            for item in items {
                self.hear(item);
            }
            match phase {
                Phase::Showing if terminal::in_front() => {
                    // The last column stays free: some terminals break a line that fills it.
                    let style = Style { width: columns.saturating_sub(1), ..self.show.style };
                    let picture = self.picture(style, self.painter.room((columns, rows)));
                    let frame = self.painter.frame(&picture, (columns, rows));
                    self.terminal.show(frame);
                    inbox.rest(BETWEEN);
                }
                _ => {
                    let said = self.painter.leave(columns);
                    self.terminal.give_back(&said);
                    match phase {
                        Phase::Closing => return,
                        Phase::Suspended => inbox.stand_aside(),
                        Phase::Showing => inbox.rest(TICK),
                    }
                }
            }
        }
    }

    /// Takes in what is said above the screen.
    fn hear(&mut self, item: Item) {
        match item {
            Item::Text(text) => self.painter.hear(&text),
            Item::News(news) => self.painter.hear_news(news),
        }
    }

    fn picture(&self, style: Style, height: usize) -> Vec<String> {
        let Show { fold, decls, expected, turn, clock, .. } = &self.show;
        let progress = &*fold.held();
        // A clock that went back shows no run that has not begun.
        let now = clock.as_ref().map_or(progress.now, |clock| clock.now());
        let scene = Scene { progress, decls, expected, turn: turn.as_ref(), now };
        lines(scene, style, height).iter().map(|line| style.line(line)).collect()
    }
}
