//! `castle rebirth`: down and up as one act with a journal of its own, once or so many times without a hand.

use castle_journal::{
    HalfEnd, History, Journals, Rebirth, RebirthEnd, RebirthRecord, Runs, StateError,
};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{PastRun, RunId};
use castle_view::history::{Reborn, alike, cycle_rows, cycles};
use castle_view::screen::Turn;

use crate::answer;
use crate::castle::{Castle, layers};
use crate::commands::run::Act;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::session::{Consent, Ended, Session, word};
use crate::settings::{Settings, Stream};
use crate::state::{damage_words, state_problem};

/// Goes on with the open rebirth, or begins one.
pub(crate) async fn carry_on(
    session: &Session<'_>,
    certify: Option<u32>,
    consent: &Consent,
    journals: &mut Journals,
) -> Result<Exit, Problem> {
    if set_damage_aside(journals)? {
        rise_on(session, certify, journals)?;
    }
    // The first way down has somebody's agreement of its own; those that follow belong to what was agreed to at the beginning.
    let agreed = begin(session, certify, consent, journals).await?;
    let mut agreed =
        due(journals).filter(|direction| *direction == Direction::Down).map(|_| agreed);
    while let Some((direction, rebirth)) = journals.due_half() {
        tell(session, &heading(rebirth, direction));
        let consent = match direction {
            Direction::Down => agreed.take().unwrap_or(Consent::Given),
            Direction::Up => consent.clone(),
        };
        let ended = match session.run(direction, &consent, journals).await {
            Ok(ended) => ended,
            Err(problem) => {
                stumbled_on(session, &problem, journals);
                return Err(problem);
            }
        };
        if let Some(exit) = note(session, direction, &ended, journals)? {
            return Ok(exit);
        }
    }
    conclude(session, journals)
}

/// What an open rebirth means to a plain `up` or `down`, told and recorded before it runs.
pub(crate) async fn make_way(
    session: &Session<'_>,
    direction: Direction,
    consent: Consent,
    journals: &mut Journals,
) -> Result<Consent, Problem> {
    let command = &session.castle.command;
    if let Err(error) = journals.rebirth() {
        output::talk(&format!("notice: {}", damaged(&error, command)));
    }
    let Some(rebirth) = journals.open_rebirth() else { return Ok(consent) };
    let (cycle, cycles) = (rebirth.cycle(), rebirth.cycles);
    if direction == Direction::Up && rebirth.due() != Some(Direction::Down) {
        output::talk(&format!(
            "notice: a rebirth is open (cycle {cycle} of {cycles}), and this is its way up"
        ));
        return Ok(consent);
    }
    let consent = match consent {
        Consent::Ask => Consent::Agreed(session.agree(direction, &Consent::Ask, journals).await?),
        given => given,
    };
    let by = format!("castle {}", word(direction));
    let stays = match direction {
        Direction::Up => "nothing of it was razed yet, and the castle stays up",
        Direction::Down => "the castle stays down",
    };
    output::talk(&format!(
        "notice: the open rebirth (cycle {cycle} of {cycles}) is given up: {stays}"
    ));
    record(session, journals, &RebirthRecord::Ended { end: RebirthEnd::GivenUp { by } })?;
    Ok(consent)
}

/// After a plain `up`: the open rebirth whose way up it was.
pub(crate) fn after_up(
    session: &Session<'_>,
    ended: &Ended,
    journals: &mut Journals,
) -> Result<(), Problem> {
    let rising = |rebirth: &Rebirth| rebirth.due() == Some(Direction::Up);
    if ended.exit != Exit::Done || !journals.open_rebirth().is_some_and(rising) {
        return Ok(());
    }
    record(session, journals, &RebirthRecord::Resumed)?;
    record(session, journals, &RebirthRecord::Risen { run: ended.run.clone() })?;
    let command = &session.castle.command;
    match journals.open_rebirth() {
        Some(rebirth) if rebirth.certify => output::talk(&format!(
            "notice: {} of {} cycles of the rebirth are done; `{command} rebirth` goes on with it",
            rebirth.seen.len(),
            rebirth.cycles
        )),
        _ => record(session, journals, &RebirthRecord::Ended { end: RebirthEnd::Done })?,
    }
    Ok(())
}

/// Refuses a way up while a rebirth is on its way down.
pub(crate) fn refuse_half_razed(castle: &Castle, rebirth: &Rebirth) -> Problem {
    let command = &castle.command;
    Problem::refused(format!(
        "a rebirth of this castle is on its way down (cycle {} of {})",
        rebirth.cycle(),
        rebirth.cycles
    ))
    .hint(format!(
        "`{command} rebirth` goes on with it and raises the castle again; `{command} down` gives it up and razes the rest"
    ))
}

/// A journal of a rebirth that can not be read: which file, what is wrong with it, and who minds.
pub(crate) fn damaged(error: &StateError, command: &str) -> String {
    format!(
        "the journal of the last rebirth is damaged: {}; nothing but `{command} rebirth` needs it, which keeps the file beside and begins another one",
        damage_words(error)
    )
}

/// A journal that can not be read is kept beside, and another rebirth begins. How far the last one was, only the runs can tell:
/// says whether they know of a way up that is not over.
fn set_damage_aside(journals: &mut Journals) -> Result<bool, Problem> {
    let aside = journals.set_aside_rebirth().map_err(|error| state_problem(&error))?;
    let Some((damage, aside)) = aside else { return Ok(false) };
    let kept = aside.kept_as.map(|name| format!(" The file is kept as {name}."));
    let rising = journals.records().last_run.as_ref().is_some_and(|last| {
        let done = matches!(last.ended, Some((_, RunOutcome::Done)));
        last.direction == Direction::Up && !done
    });
    let next = if rising {
        "The runs tell that the castle was on its way up, so nothing is razed again."
    } else {
        "How far it was is not known, so another one begins, with its way down."
    };
    output::talk(&format!(
        "notice: the journal of the rebirth is damaged: {}.{} {next}",
        damage_words(&damage),
        kept.unwrap_or_default()
    ));
    Ok(rising)
}

/// Begins a rebirth whose way down is done already.
fn rise_on(
    session: &Session<'_>,
    certify: Option<u32>,
    journals: &mut Journals,
) -> Result<(), Problem> {
    let last = journals.records().last_run.as_ref().map(|run| run.id.clone());
    journals.begin_rebirth(session.now(), certify).map_err(|e| state_problem(&e))?;
    let run = last.unwrap_or_else(|| RunId::new("lost"));
    record(session, journals, &RebirthRecord::Razed { run })
}

/// Begins a rebirth once somebody has agreed, or goes on with the open one; says what the first way down may destroy.
async fn begin(
    session: &Session<'_>,
    certify: Option<u32>,
    consent: &Consent,
    journals: &mut Journals,
) -> Result<Consent, Problem> {
    let open = journals.open_rebirth().cloned();
    if let Some(rebirth) = &open {
        refuse_other(session, certify, rebirth)?;
        catch_up(session, journals)?;
    } else {
        tell_cycles(session, Act::Rebirth(certify));
    }
    let razes = due(journals).is_none_or(|direction| direction == Direction::Down);
    let whole = open.as_ref().is_some_and(Rebirth::is_complete);
    let agreed = match consent {
        Consent::Ask if razes && !whole => {
            Consent::Agreed(session.agree(Direction::Down, consent, journals).await?)
        }
        other => other.clone(),
    };
    journals.begin_rebirth(session.now(), certify).map_err(|e| state_problem(&e))?;
    Ok(agreed)
}

/// Says, before anybody is asked, that it is more than once.
pub(crate) fn tell_cycles(session: &Session<'_>, act: Act) {
    if let Act::Rebirth(Some(cycles @ 2..)) = act {
        tell(session, &format!("the castle goes and comes back {cycles} times"));
    }
}

/// One that is open is finished before another is begun.
fn refuse_other(
    session: &Session<'_>,
    certify: Option<u32>,
    rebirth: &Rebirth,
) -> Result<(), Problem> {
    let (cycle, cycles) = (rebirth.cycle(), rebirth.cycles);
    if certify.is_some_and(|wanted| !rebirth.certify || wanted != cycles) {
        let command = &session.castle.command;
        return Err(Problem::refused(format!(
            "another rebirth is open (cycle {cycle} of {cycles}), and not of that many cycles"
        ))
        .hint(format!("`{command} rebirth` goes on with it, `{command} down` gives it up")));
    }
    tell(session, &format!("going on with the rebirth that was begun {} (UTC)", rebirth.began));
    Ok(())
}

/// What the run journal knows better: a castle on its way up is not razed again.
fn catch_up(session: &Session<'_>, journals: &mut Journals) -> Result<(), Problem> {
    if journals.catch_up_rebirth(session.now()).map_err(|e| state_problem(&e))? {
        output::talk(
            "notice: the end of the rebirth's journal was lost; the runs tell that the castle was on its way up",
        );
    }
    Ok(())
}

fn due(journals: &Journals) -> Option<Direction> {
    journals.due_half().map(|(direction, _)| direction)
}

fn heading(rebirth: &Rebirth, direction: Direction) -> String {
    let way = word(direction);
    let next = rebirth.seen.last().is_none_or(|cycle| cycle.up.is_some());
    let cycle = rebirth.seen.len() + usize::from(next);
    match rebirth.cycles {
        1 => format!("rebirth: {way}"),
        cycles => format!("rebirth: cycle {cycle} of {cycles}, {way}"),
    }
}

/// Where a run of a rebirth of several cycles stands among them, for the live screen.
pub(crate) fn turn(rebirth: &Rebirth, direction: Direction) -> Option<Turn> {
    let of = usize::try_from(rebirth.cycles).ok().filter(|cycles| *cycles > 1)?;
    let whole = rebirth.seen.iter().filter(|cycle| cycle.up.is_some()).count();
    let done = 2 * whole + usize::from(direction == Direction::Up);
    Some(Turn { what: heading(rebirth, direction), done, of: 2 * of })
}

/// Records how a half ended; an exit code where the rebirth does not go on by itself.
fn note(
    session: &Session<'_>,
    direction: Direction,
    ended: &Ended,
    journals: &mut Journals,
) -> Result<Option<Exit>, Problem> {
    let run = ended.run.clone();
    let (noted, exit) = match ended.exit {
        Exit::Done => (Some(HalfEnd::Done(run)), None),
        Exit::Interrupted => (None, Some(Exit::Interrupted)),
        exit => {
            let told = ended.why.clone().unwrap_or_else(|| "it did not come to its end".to_owned());
            let why = format!("{} in {run}: {told}", word(direction));
            (Some(HalfEnd::Stumbled { exit: exit as u8, why }), Some(exit))
        }
    };
    if let Some(noted) = noted {
        let noted = journals.note_half(session.now(), direction, noted);
        noted.map_err(|e| state_problem(&e))?;
    }
    if exit.is_some() {
        tell(session, &open_words(session, journals));
    }
    Ok(exit)
}

/// A half that never came to a run's end. The journal may be what failed: then it is not asked to note that.
fn stumbled_on(session: &Session<'_>, problem: &Problem, journals: &mut Journals) {
    let stumbled = RebirthRecord::Stumbled { exit: problem.exit as u8, why: problem.what.clone() };
    if problem.exit != Exit::Interrupted {
        journals.record_rebirth(session.now(), &stumbled).ok();
    }
    tell(session, &open_words(session, journals));
}

fn open_words(session: &Session<'_>, journals: &Journals) -> String {
    let spoiled =
        journals.open_rebirth().filter(|rebirth| rebirth.certify).and_then(Rebirth::spoiled);
    let verdict = spoiled.map(|why| format!("not certified: {why}; ")).unwrap_or_default();
    format!("{verdict}the rebirth is open: `{} rebirth` goes on with it", session.castle.command)
}

/// The last words: the table, the verdict, the exit code.
fn conclude(session: &Session<'_>, journals: &mut Journals) -> Result<Exit, Problem> {
    if journals.open_rebirth().is_none() {
        return Ok(Exit::Done);
    }
    journals.conclude_rebirth(session.now()).map_err(|e| state_problem(&e))?;
    let history = session.runs.and_then(|runs| runs.history().ok()).unwrap_or_default();
    let rebirth = journals.rebirth().ok().flatten();
    Ok(rebirth.map_or(Exit::Done, |rebirth| {
        show(rebirth, &history, session.castle, session.json, session.settings)
    }))
}

/// Shows a rebirth that is over, and says its exit code.
pub(crate) fn show(
    rebirth: &Rebirth,
    history: &History,
    castle: &Castle,
    json: bool,
    settings: &Settings,
) -> Exit {
    let end = rebirth.ended.as_ref().map(|(_, end)| end);
    let style = style(settings, Stream::Data);
    let layers = layers(&castle.spec);
    let timed = timed(rebirth, history);
    let (untimed, unlike) = (rebirth.seen.len() - timed.len(), timed.len() - alike(&timed).len());
    let reborn = Reborn { cycles: timed, history: &history.runs, layers: &layers };
    if json {
        let told = serde_json::json!({ "rebirth": rebirth, "table": cycle_rows(&reborn) });
        output::data(&answer::line("rebirth", &told));
        return exit_of(end);
    }
    let table = cycles(&reborn, style);
    output::data(&format!("\nrebirth of castle {}: {}", castle.spec.name, verdict(rebirth)));
    if !table.is_empty() {
        output::data(&format!("\n{table}"));
    }
    let seen = rebirth.seen.len();
    for (number, why) in [
        (untimed, "interrupted and gone on with, or stumbled"),
        (unlike, "they did not do the same as the last one"),
    ] {
        if number > 0 && !table.is_empty() {
            output::data(&format!("{number} of {seen} cycles are not in the table: {why}"));
        }
    }
    if rebirth.certify {
        output::data(&format!(
            "the events of its runs are in {}; `{} report RUN` makes the page of one",
            castle.state.join("runs").display(),
            castle.command
        ));
    }
    exit_of(end)
}

/// The cycles whose times mean something.
fn timed<'h>(rebirth: &Rebirth, history: &'h History) -> Vec<(&'h PastRun, &'h PastRun)> {
    let find = |run: &RunId| history.runs.iter().rfind(|past| past.run == *run && past.is_whole());
    let clean = rebirth.seen.iter().filter(|cycle| !cycle.resumed && cycle.stumbled.is_none());
    clean
        .filter_map(|cycle| Some((find(cycle.down.as_ref()?)?, find(cycle.up.as_ref()?)?)))
        .collect()
}

fn verdict(rebirth: &Rebirth) -> String {
    let cycles = rebirth.seen.iter().filter(|cycle| cycle.up.is_some()).count();
    let resumed = rebirth.seen.iter().filter(|cycle| cycle.resumed).count();
    let gone_on = match resumed {
        0 => String::new(),
        1 => "; 1 cycle was interrupted and went on".to_owned(),
        more => format!("; {more} cycles were interrupted and went on"),
    };
    match rebirth.ended.as_ref().map(|(_, end)| end) {
        Some(RebirthEnd::Certified) => {
            format!("certified: {cycles} of {} cycles without a failure{gone_on}", rebirth.cycles)
        }
        Some(RebirthEnd::NotCertified { why }) => format!("not certified: {why}"),
        Some(RebirthEnd::GivenUp { by }) => format!("given up by `{by}`"),
        Some(RebirthEnd::Done) | None => format!("it stands again{gone_on}"),
    }
}

fn exit_of(end: Option<&RebirthEnd>) -> Exit {
    match end {
        Some(RebirthEnd::NotCertified { .. }) | None => Exit::Failed,
        Some(RebirthEnd::Done | RebirthEnd::Certified | RebirthEnd::GivenUp { .. }) => Exit::Done,
    }
}

/// One line about an open rebirth, for `status`.
pub(crate) fn open_line(rebirth: &Rebirth, command: &str) -> Option<String> {
    if rebirth.ended.is_some() {
        return None;
    }
    let half = match rebirth.due() {
        Some(direction) => heading(rebirth, direction),
        None => "rebirth: every cycle is done".to_owned(),
    };
    Some(format!("{half}, not over; `{command} rebirth` goes on with it"))
}

fn record(
    session: &Session<'_>,
    journals: &mut Journals,
    record: &RebirthRecord,
) -> Result<(), Problem> {
    journals.record_rebirth(session.now(), record).map_err(|e| state_problem(&e))
}

fn tell(session: &Session<'_>, text: &str) {
    if !session.json {
        output::say(text);
    }
}

/// The history of a castle whose folder nobody needs to hold.
pub(crate) fn history_of(castle: &Castle) -> History {
    let runs = Runs::at(&castle.state).ok().flatten();
    runs.and_then(|runs| runs.history().ok()).unwrap_or_default()
}
