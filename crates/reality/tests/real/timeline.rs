//! The timeline of a rehearsed run, opened in a real browser: what it asks for, what it shows, what its script adds.

use std::path::PathBuf;
use std::sync::Arc;

use castle_engine::{Stop, Whole};
use castle_journal::Journals;
use castle_layers::Credentials;
use castle_layers::secrets::source::Access;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::{Event, EventKind, RunId, StepDecl};
use castle_page::Words;
use castle_reality::Real;
use castle_rehearsal::fault::{Names, Rule};
use castle_rehearsal::host::Host;
use castle_view::timeline::Fold;
use serde_json::Value;

use crate::browser::Browser;
use crate::setting::{folder, write};

/// Raises the example castle of 3+2 machines on the rehearsal's own clock, where this is broken, and draws what it was told.
fn page(broken: Option<&str>) -> String {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut spec = castle_config::example();
        let host = Host::open(None, &spec, 1).unwrap();
        host.spawn_driver();
        let rule = |rule| Rule::parse(rule, &Names::of(&spec)).unwrap();
        host.arm(broken.map(rule).into_iter().collect());
        let trust = Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
        spec.platform.proxmox_mut().unwrap().trust = trust;
        let spec = Arc::new(spec);
        let (client_id, client_secret) = host.credentials();
        let access = Access::to_infisical(Credentials { client_id, client_secret });
        let graph = castle_layers::build(&spec, &host.world(), access);
        let mut journals = Journals::in_memory().unwrap();
        let (clock, run) = (host.clock(), RunId::new("r0001-20260202"));
        let mut fold = Fold::new(graph.decls());
        let started = EventKind::RunStarted {
            castle: spec.name.clone(),
            direction: Direction::Up,
            rehearsal: true,
            steps: graph.decls().len(),
        };
        fold.apply(&Event { v: SCHEMA, seq: 0, at: clock.now(), run: run.clone(), kind: started });
        let whole = Whole {
            castle: &spec.name,
            graph: &graph,
            journals: &mut journals,
            deadlines: &spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| fold.apply(event),
            run,
            stop: Stop::default(),
        };
        let (plan, report) = whole.go(Direction::Up).await.unwrap();
        let wanted = if broken.is_some() { RunOutcome::Failed } else { RunOutcome::Done };
        assert_eq!(report.outcome, wanted, "{:?}", report.failures);
        let decls: Vec<&StepDecl> = plan.steps.iter().map(|step| &step.decl).collect();
        let go_on = broken.map(|_| "castle up".to_owned()).into_iter().collect();
        castle_page::timeline(&fold.timeline(&decls, &[]), &Words { go_on, ..Words::default() })
    })
}

/// Raises it on a thread of its own: the browser lives in real time.
async fn made(folder: &std::path::Path, broken: Option<&'static str>) -> PathBuf {
    let page = tokio::task::spawn_blocking(move || page(broken)).await.unwrap();
    assert!(page.len() <= 300_000, "the page of 3+2 machines has {} bytes", page.len());
    write(folder, "timeline.html", &page)
}

/// The least contrast of any text that can be seen with what is behind it, and where.
const CONTRAST: &str = r#"
const parse = (c) => {
  let m = c.match(/^rgba?\(([^)]+)\)/);
  if (m) { const n = m[1].split(/[ ,\/]+/).map(Number); return [n[0]/255, n[1]/255, n[2]/255, n.length > 3 ? n[3] : 1]; }
  m = c.match(/^color\(srgb ([^)]+)\)/);
  const n = m[1].split(/[ \/]+/).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
};
const light = (c) => { const f = (v) => v <= 0.04045 ? v/12.92 : ((v+0.055)/1.055)**2.4; return 0.2126*f(c[0])+0.7152*f(c[1])+0.0722*f(c[2]); };
const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; } return [1,1,1,1]; };
let worst = [99, ""];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || ["SCRIPT", "STYLE"].includes(e.tagName) || !e.checkVisibility({contentVisibilityAuto: true})) continue;
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < worst[0]) worst = [ratio, e.tagName + "." + e.className + ": " + walk.currentNode.data];
}
return worst;"#;

const SHOWN: &str =
    "return [...document.querySelectorAll('.step')].filter((row) => row.checkVisibility()).length";

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn the_timeline_shows_and_asks_for_nothing_in_a_real_browser() {
    let (Some(chromium), Some(driver)) = (Real::find("chromium"), Real::find("chromedriver"))
    else {
        return;
    };
    let folder = folder();
    let page = made(folder.path(), None).await;
    let browser = Browser::start(&chromium, &driver, true).await;
    browser.open(&page).await;

    let title = browser.say("return document.title").await;
    assert!(title.as_str().unwrap().contains("castle blue stands"), "{title}");
    critical_path_can_be_seen(&browser).await;
    search_and_zoom_work(&browser).await;
    links_open_what_they_name(&browser).await;
    keys_reach_everything(&browser).await;
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")] {
        fits_and_can_be_read(&browser, width, scheme).await;
    }

    let asked = browser.requests().await;
    let own = format!("file://{}", page.display());
    assert!(asked.contains(&own), "the page itself was asked for: {asked:?}");
    assert!(asked.iter().all(|url| url.split('#').next() == Some(own.as_str())), "{asked:?}");
    assert_eq!(browser.log("browser").await, Vec::<Value>::new(), "the console is empty");
}

async fn critical_path_can_be_seen(browser: &Browser) {
    let script = "
const rows = [...document.querySelectorAll('.step.hot')];
const strip = document.querySelector('.strip').getBoundingClientRect();
const colour = (what) => getComputedStyle(document.querySelector(what)).backgroundColor;
return [rows.length, rows.every((row) => row.checkVisibility() && row.textContent.includes('◆')),
  strip.width > 300 && strip.height > 10, colour('.step.hot .bar') !== colour('.step:not(.hot) .bar'),
  rows.every((row) => row.querySelector('.bar').getBoundingClientRect().width >= 2)]";
    let seen = browser.say(script).await;
    assert!(seen[0].as_u64().unwrap() >= 5, "{seen}");
    assert_eq!(seen.as_array().unwrap()[1..], [true, true, true, true], "{seen}");
}

async fn search_and_zoom_work(browser: &Browser) {
    let all = browser.say(SHOWN).await.as_u64().unwrap();
    browser.write("#search", "vip").await;
    let found = browser.say(SHOWN).await.as_u64().unwrap();
    assert!((1..all).contains(&found), "{found} of {all}");
    let told = browser.say("return document.querySelector('#found').textContent").await;
    assert_eq!(told, format!("{found} of {all} steps"));
    browser.clear("#search").await;
    browser.write("#search", "x\u{e008}\u{e003}").await;
    browser.clear("#search").await;
    browser.say("document.querySelector('#search').dispatchEvent(new Event('input'))").await;
    assert_eq!(browser.say(SHOWN).await, all);

    let width = "return document.querySelector('.step .track').getBoundingClientRect().width";
    let before = browser.say(width).await.as_f64().unwrap();
    browser.click("[data-zoom=in]").await;
    let near = browser.say(width).await.as_f64().unwrap();
    assert!((near / before - 2.0).abs() < 0.1, "{before} became {near}");
    let page = browser.say("return document.documentElement.scrollWidth <= innerWidth").await;
    assert_eq!(page, true, "only the picture grows");
    browser.click("[data-zoom=fit]").await;
    let fit = browser.say(width).await.as_f64().unwrap();
    assert!((fit - before).abs() < 0.5, "{before} became {fit}");
}

async fn links_open_what_they_name(browser: &Browser) {
    // Where a search has left nothing of its layer, and once more after somebody closed it.
    let script = "
const search = document.querySelector('#search');
search.value = 'nothing is called so';
search.dispatchEvent(new Event('input'));
const link = document.querySelector('.strip a');
const row = document.getElementById(decodeURIComponent(link.hash.slice(1)));
const before = row.checkVisibility();
link.click();
const seen = [before, row.checkVisibility(), row.open, search.value];
row.open = false;
link.click();
seen.push(row.open);
return seen";
    let seen = browser.say(script).await;
    assert_eq!(seen, serde_json::json!([false, true, true, "", true]));
}

async fn keys_reach_everything(browser: &Browser) {
    let skip = "
document.activeElement.blur(); window.scrollTo(0, 0);
const first = [...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')][0];
return first.className";
    assert_eq!(browser.say(skip).await, "skip", "the way past the header comes first");
    let row = ".step.hot > summary";
    // A link may have opened it.
    browser.say("document.querySelector('.step.hot').open = false").await;
    browser.write(row, "\u{e007}").await;
    let open = "return document.querySelector('.step.hot').open";
    assert_eq!(browser.say(open).await, true, "Enter opens a row");
    let outline =
        "return getComputedStyle(document.querySelector('.step.hot > summary')).outlineStyle";
    assert_eq!(browser.say(outline).await, "solid", "who has the keyboard can be seen");
    let named = "
const nameless = (e) => !(e.closest('[aria-hidden]') || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim() || e.closest('label'));
return [...document.querySelectorAll('a[href], button, input, summary, section, [role=region]')].filter(nameless).length";
    assert_eq!(browser.say(named).await, 0, "everything that can be reached has a name");
}

async fn fits_and_can_be_read(browser: &Browser, width: u32, scheme: &str) {
    browser.pretend(width, scheme).await;
    let fits = browser.say("return [document.documentElement.scrollWidth, innerWidth]").await;
    assert!(fits[0].as_u64() <= Some(u64::from(width)), "{width} {scheme}: {fits}");
    let cut = "
return [...document.querySelectorAll('.step .name b, h1, h3, .time b')].filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)";
    assert_eq!(browser.say(cut).await, serde_json::json!([]), "{width}: no name is cut");
    let worst = browser.say(CONTRAST).await;
    assert!(worst[0].as_f64().unwrap() >= 4.5, "{width} {scheme}: {worst}");
    let dark = "
const c = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
return c[0] + c[1] + c[2] < 200";
    assert_eq!(browser.say(dark).await, scheme == "dark", "{scheme}");
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_run_that_failed_can_be_read_on_a_screen_and_on_paper() {
    let (Some(chromium), Some(driver)) = (Real::find("chromium"), Real::find("chromedriver"))
    else {
        return;
    };
    let folder = folder();
    let page = made(folder.path(), Some("proxmox: answers 403 on POST /qemu")).await;
    let browser = Browser::start(&chromium, &driver, true).await;
    browser.open(&page).await;
    let title = browser.say("return document.title").await;
    assert!(title.as_str().unwrap().contains("castle blue is not finished"), "{title}");
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")] {
        fits_and_can_be_read(&browser, width, scheme).await;
        let seen = "return document.querySelector('.failures').checkVisibility()";
        assert_eq!(browser.say(seen).await, true);
    }
    // On a phone the parts of the path are told by their numbers.
    let numbers =
        "return [...document.querySelectorAll('.strip .no')].every((e) => e.checkVisibility())";
    assert_eq!(browser.say(numbers).await, true);

    let media = serde_json::json!({"media": "print"});
    browser.tell("Emulation.setEmulatedMedia", media).await;
    // The browser opens and closes what is hidden with a frame, not with the style.
    let open = "
const shown = (row) => row.querySelector('.detail').checkVisibility({contentVisibilityAuto: true});
const look = () => {
  const rows = [...document.querySelectorAll('.step')];
  return [rows.filter((row) => row.matches('.hot, .failed')).every(shown), rows.filter(shown).length < rows.length,
    document.querySelector('.tools').checkVisibility()];
};
return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(look()))))";
    let open = browser.say(open).await;
    assert_eq!(open, serde_json::json!([true, true, false]), "what matters is open on paper");
    let worst = browser.say(CONTRAST).await;
    assert!(worst[0].as_f64().unwrap() >= 4.5, "on paper: {worst}");
    assert_eq!(browser.log("browser").await, Vec::<Value>::new(), "the console is empty");
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn the_timeline_tells_everything_without_script() {
    let (Some(chromium), Some(driver)) = (Real::find("chromium"), Real::find("chromedriver"))
    else {
        return;
    };
    let folder = folder();
    let page = made(folder.path(), None).await;
    let browser = Browser::start(&chromium, &driver, false).await;
    browser.open(&page).await;
    let tools = browser.say("return document.querySelector('.tools').checkVisibility()").await;
    assert_eq!(tools, false, "what needs a script is not offered");
    let waited = "return document.querySelector('.step.hot:has(table)').id";
    let id = browser.say(waited).await.as_str().unwrap().to_owned();
    let row = format!("[id='{id}']");
    let table = format!("return document.querySelector(\"{row} table\").checkVisibility()");
    assert_eq!(browser.say(&table).await, false);
    browser.click(&format!("{row} > summary")).await;
    assert_eq!(browser.say(&table).await, true, "what it waited for is told by a click alone");
}
