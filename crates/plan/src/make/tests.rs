//! Which verb each step gets, and what a plan is known to come to.

use castle_model::Class;

use super::*;

fn step(name: &str, needs: &[&str]) -> StepDecl {
    StepDecl::new(StepId::new("l", name), name, "vm", "it is done")
        .needs(needs.iter().map(|n| StepId::new("l", n)))
}

fn castle() -> CastleName {
    "blue".parse().unwrap()
}

fn verb_of(look: Look, known: bool) -> (Verb, bool) {
    let steps = [step("a", &[]).undo()];
    let id = steps[0].id.clone();
    let known = if known { [id.clone()].into() } else { BTreeSet::new() };
    let plan = up(&castle(), &steps, &[(id, look)].into(), &known).unwrap();
    (plan.steps[0].verb, plan.steps[0].unknown)
}

#[test]
fn every_look_has_its_verb() {
    let seen = Look::Seen;
    assert_eq!(verb_of(seen(Observed::Absent), false), (Verb::Create, false));
    assert_eq!(verb_of(seen(Observed::right("x")), true), (Verb::Leave, false));
    assert_eq!(verb_of(seen(Observed::right("x")), false), (Verb::Adopt, false));
    assert_eq!(verb_of(seen(Observed::wrong("x")), true), (Verb::Update, false));
    assert_eq!(verb_of(seen(Observed::stale("x")), true), (Verb::Replace, false));
    assert_eq!(verb_of(seen(Observed::Foreign { owner: "x".into() }), true), (Verb::Leave, true));
    assert_eq!(verb_of(Look::After(StepId::new("l", "z")), false), (Verb::Create, true));
    let failed = |class| Look::Failed(Failure::new(class, "a", "b"));
    assert_eq!(verb_of(failed(Class::Transient), false), (Verb::Create, true));
    assert_eq!(verb_of(failed(Class::Transient), true), (Verb::Leave, true));
    assert_eq!(verb_of(failed(Class::Invalid), false), (Verb::Leave, true));
}

/// The plan of a worker that is to be replaced, beside something that looks like this.
fn beside_a_replacement(look: Look) -> Plan {
    let steps = [step("worker", &[]).undo(), step("cp", &[]).undo(), step("etcd", &["cp"])];
    let [worker, cp, etcd] = &steps;
    let stale = Look::Seen(Observed::stale("too large"));
    let survey = [
        (worker.id.clone(), stale),
        (cp.id.clone(), look),
        (etcd.id.clone(), Look::After(cp.id.clone())),
    ];
    let known = steps.iter().map(|step| step.id.clone()).collect();
    up(&castle(), &steps, &survey.into(), &known).unwrap()
}

#[test]
fn nothing_is_destroyed_by_a_plan_that_is_known_to_fail() {
    let failed = |class| Look::Failed(Failure::new(class, "change it", "it can not shrink"));
    for class in [Class::Conflict, Class::Denied, Class::Invalid, Class::Gone, Class::Bug] {
        let plan = beside_a_replacement(failed(class));
        assert!(plan.is_held(), "{class}");
        assert_eq!(plan.counts()["refused"], 1, "{:?}", plan.counts());
        assert_eq!(plan.behind_refused(), 1);
        assert_eq!(plan.step(&StepId::new("l", "cp")).unwrap().reason, "it can not shrink");
    }
    let foreign = Look::Seen(Observed::Foreign { owner: "VM `web`".into() });
    assert!(beside_a_replacement(foreign).is_held());
    // What is only silent now stops nothing that does not stand on it; what is only to be mended neither.
    assert!(!beside_a_replacement(failed(Class::Transient)).is_held());
    assert!(!beside_a_replacement(Look::Seen(Observed::wrong("x"))).is_held());
    assert!(!beside_a_replacement(Look::Seen(Observed::unknown("x"))).is_held());
}

#[test]
fn what_is_refused_holds_nothing_back_that_destroys_nothing() {
    let steps = [step("a", &[]).undo(), step("b", &[]).undo()];
    let denied = Look::Failed(Failure::new(Class::Denied, "look", "403"));
    let survey =
        [(steps[0].id.clone(), Look::Seen(Observed::Absent)), (steps[1].id.clone(), denied)];
    let plan = up(&castle(), &steps, &survey.into(), &BTreeSet::new()).unwrap();
    assert!(!plan.is_held());
    assert_eq!(plan.refused().count(), 1);
}

#[test]
fn what_can_not_be_looked_at_yet_says_what_it_waits_for() {
    let steps = [step("first", &[]), step("second", &["first"])];
    let reason = |look| {
        let (first, second) = (steps[0].id.clone(), steps[1].id.clone());
        let survey = [(first.clone(), look), (second, Look::After(first))].into();
        up(&castle(), &steps, &survey, &BTreeSet::new()).unwrap().steps[1].reason.clone()
    };
    assert_eq!(reason(Look::Seen(Observed::Absent)), "not there yet");
    // Where the records are lost, nobody knows whether it stands.
    assert_eq!(reason(Look::Seen(Observed::wrong("x"))), "looked at after l/first");
}

#[test]
fn a_step_that_only_looks_is_never_adopted() {
    let steps = [step("a", &[])];
    let survey = [(steps[0].id.clone(), Look::Seen(Observed::right("x")))].into();
    let plan = up(&castle(), &steps, &survey, &BTreeSet::new()).unwrap();
    assert_eq!(plan.steps[0].verb, Verb::Leave);
}

/// Two machines, what is put on each, and what lives on both.
fn castle_of_two() -> Vec<StepDecl> {
    let on = |name: &str, needs: &[&str], homes: &[&str]| {
        let homes = homes.iter().map(|home| StepId::new("l", home));
        step(name, needs).lives_on(homes).contained("the VMs")
    };
    vec![
        step("image", &[]).undo(),
        step("vm-1", &["image"]).undo(),
        step("vm-2", &["image"]).undo(),
        on("answers-1", &["vm-1"], &["vm-1"]).only("it only waits"),
        on("config-1", &["answers-1"], &["vm-1"]),
        on("config-2", &["vm-2"], &["vm-2"]),
        on("cluster", &["config-1", "config-2"], &["config-1", "config-2"]),
        on("flux", &["cluster"], &["cluster"]),
        step("keys", &["cluster"]).contained("the escrow"),
    ]
}

/// The plan of that castle, all of which was done before: a word for each step that is not left for certain.
fn expected(gone: &[(&str, Look)]) -> String {
    let steps = castle_of_two();
    let known = steps.iter().map(|step| step.id.clone()).collect();
    let mut survey = Survey::new();
    for step in &steps {
        let own = gone.iter().find(|(name, _)| step.id == StepId::new("l", name));
        let behind = step
            .needs
            .iter()
            .find(|need| !matches!(survey.get(*need), Some(Look::Seen(Observed::Right { .. }))));
        let look = match (own, behind) {
            (_, Some(need)) => Look::After(need.clone()),
            (Some((_, look)), None) => look.clone(),
            (None, None) => Look::Seen(Observed::right("so")),
        };
        survey.insert(step.id.clone(), look);
    }
    let plan = up(&castle(), &steps, &survey, &known).unwrap();
    let told = plan.steps.iter().filter(|step| step.unknown || step.verb != Verb::Leave);
    let sign = |step: &PlannedStep| if step.unknown { "?" } else { "" };
    let words = told.map(|step| format!("{}{} {}", step.word(), sign(step), step.decl.title));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn what_lived_on_something_that_is_made_anew_is_expected_to_be_done_again() {
    let gone = || Look::Seen(Observed::Absent);
    assert_eq!(expected(&[]), "");
    assert_eq!(
        expected(&[("vm-1", gone())]),
        "create vm-1, prove? answers-1, create? config-1, leave? cluster, leave? flux, leave? keys"
    );
    assert_eq!(
        expected(&[("vm-1", gone()), ("vm-2", Look::Seen(Observed::stale("x")))]),
        "create vm-1, replace vm-2, prove? answers-1, create? config-1, create? config-2, \
         create? cluster, create? flux, leave? keys"
    );
    // Nothing lives on the image, and what is changed in place keeps what is on it.
    let after = "leave? answers-1, leave? config-1";
    assert_eq!(
        expected(&[("vm-1", Look::Seen(Observed::wrong("x")))]),
        format!("update vm-1, {after}, leave? cluster, leave? flux, leave? keys")
    );
    assert!(expected(&[("image", gone())]).starts_with("create image, leave? vm-1, "));
}

#[test]
fn what_does_not_answer_is_not_taken_for_gone() {
    let silent = Look::Failed(Failure::new(Class::Transient, "a", "b"));
    assert!(expected(&[("vm-1", silent)]).contains("leave? config-1"));
}

#[test]
fn what_is_disturbed_is_seen_again_after_what_disturbs_it() {
    let pods = || step("pods", &[]).disturbed_by([StepId::new("l", "nodes")]);
    let steps = [step("nodes", &[]), pods().contained("the VMs")];
    let [nodes, pods] = [0, 1].map(|at: usize| steps[at].id.clone());
    let told = |seen: Look, own: Look, known: &[&StepId]| {
        let survey = [(nodes.clone(), seen), (pods.clone(), own)].into();
        let known = known.iter().map(|id| (*id).clone()).collect();
        let plan = up(&castle(), &steps, &survey, &known).unwrap();
        let PlannedStep { verb, unknown, after, reason, .. } = plan.step(&pods).unwrap().clone();
        (verb, unknown, after, reason)
    };
    let (so, wrong) = (|| Look::Seen(Observed::right("so")), || Look::Seen(Observed::wrong("off")));
    let both = [&nodes, &pods];
    let left = (Verb::Leave, false, None, "so".to_owned());
    let again = "done before; to be seen again after l/nodes".to_owned();
    assert_eq!(told(so(), so(), &both), left);
    assert_eq!(told(wrong(), so(), &both), (Verb::Leave, true, Some(nodes.clone()), again));
    let survey = [(nodes.clone(), wrong()), (pods.clone(), so())].into();
    let known = both.into_iter().cloned().collect();
    let plan = up(&castle(), &steps, &survey, &known).unwrap();
    assert_eq!(
        plan.step(&pods).unwrap().in_turn().needs,
        std::slice::from_ref(&nodes),
        "what is shown says so"
    );
    // What is to be mended is mended at once, and what was never done before disturbs nothing.
    assert_eq!(told(wrong(), wrong(), &both), (Verb::Update, false, None, "off".to_owned()));
    assert_eq!(told(wrong(), so(), &[&pods]), left);
}

#[test]
fn going_down_turns_the_order_round() {
    let steps = [step("first", &[]).undo(), step("second", &["first"]).contained("first")];
    let survey = [(steps[0].id.clone(), Look::Leftover(Some("VM 421".into())))].into();
    let plan = down(&castle(), &steps, &survey).unwrap();
    let short: Vec<_> = plan.steps.iter().map(|s| (s.decl.title.as_str(), s.verb)).collect();
    assert_eq!(short, [("second", Verb::Forget), ("first", Verb::Remove)]);
    assert_eq!(plan.steps[1].decl.needs, [steps[1].id.clone()]);
}

#[test]
fn the_hash_is_of_the_content() {
    let steps = [step("a", &[])];
    let one = up(&castle(), &steps, &Survey::new(), &BTreeSet::new()).unwrap();
    let same = up(&castle(), &steps, &Survey::new(), &BTreeSet::new()).unwrap();
    let survey = [(steps[0].id.clone(), Look::Seen(Observed::right("x")))].into();
    let other = up(&castle(), &steps, &survey, &BTreeSet::new()).unwrap();
    assert_eq!(one.hash, same.hash);
    assert_ne!(one.hash, other.hash);
}
