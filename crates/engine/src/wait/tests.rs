//! Waiting: what a gate's word leads to, how long a pause is, what is asked again.

use super::*;

fn deadline(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_question_is_put_again_when_the_other_side_allows() {
    let (mut asked, mut told) = (Vec::new(), Vec::new());
    let began = Instant::now();
    let again = |failure: &Failure, delay: Duration| told.push((failure.why.clone(), delay));
    let answer = answered("read", deadline(100), again, || {
        asked.push(began.elapsed().as_secs());
        let tries = asked.len();
        async move {
            match tries {
                1 => Err(Failure::new(Class::Transient, "read", "429").wait(59)),
                2 => Err(Failure::new(Class::Transient, "read", "dropped")),
                _ => Ok(tries),
            }
        }
    });
    assert_eq!(answer.await.unwrap(), 3);
    assert_eq!(asked, [0, 59, 59]);
    let second = Pace::RETRY.after(Pace::RETRY.first);
    assert_eq!(told, [("429".to_owned(), Duration::from_secs(59)), ("dropped".to_owned(), second)]);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_ends_in_words_and_a_next_step() {
    let met = async |why: &'static str, class| {
        let met = answered::<(), _, _>(
            "read",
            deadline(9),
            |_, _| (),
            || async move { Err(Failure::new(class, "read it", why)) },
        );
        met.await.unwrap_err()
    };
    let broken = met("the connection broke", Class::Transient).await;
    assert_eq!((broken.why.as_str(), broken.hint.is_some()), ("the connection broke", true));
    let began = Instant::now();
    assert_eq!(met("403", Class::Denied).await.why, "403");
    assert_eq!(began.elapsed(), Duration::ZERO);
    let hung = answered::<(), _, _>("read", deadline(9), |_, _| (), std::future::pending);
    let hung = hung.await.unwrap_err();
    assert_eq!((hung.to_string().as_str(), hung.hint.is_some()), ("read: no answer in time", true));
}

#[tokio::test(start_paused = true)]
async fn tells_a_reason_only_when_it_changes() {
    let mut told = Vec::new();
    let mut answers = vec!["b", "a", "a", "a"];
    let got = until(
        "x",
        Pace::GATE,
        deadline(60),
        |r| told.push(r.to_owned()),
        || {
            let answer = answers.pop();
            async move { Ok(answer.map_or(Verdict::Ready(7), Verdict::waiting)) }
        },
    )
    .await;
    assert_eq!(got, Ok(7));
    assert_eq!(told, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_names_what_and_the_last_reason() {
    let began = Instant::now();
    let failure = until::<(), _, _>(
        "the VIP",
        Pace::GATE,
        deadline(30),
        |_| (),
        || async { Ok(Verdict::waiting("connection refused")) },
    )
    .await
    .unwrap_err();
    assert!(began.elapsed() <= Duration::from_secs(30));
    assert_eq!(failure.what, "wait for the VIP");
    assert_eq!(failure.evidence.as_deref(), Some("connection refused"));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_hangs_does_not_outlive_the_deadline() {
    let began = Instant::now();
    let failure = until::<(), _, _>(
        "x",
        Pace::GATE,
        deadline(5),
        |_| (),
        std::future::pending::<Result<Verdict<()>, Failure>>,
    )
    .await
    .unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(failure.evidence.as_deref(), Some("no answer yet"));
}

#[tokio::test(start_paused = true)]
async fn only_transient_failures_are_waited_out() {
    let mut tries = 0;
    let failure = until::<(), _, _>(
        "x",
        Pace::GATE,
        deadline(60),
        |_| (),
        || {
            tries += 1;
            let class = if tries < 3 { Class::Transient } else { Class::Denied };
            async move { Err(Failure::new(class, "call", "no")) }
        },
    )
    .await
    .unwrap_err();
    assert_eq!((tries, failure.class), (3, Class::Denied));
}

#[tokio::test(start_paused = true)]
async fn news_are_heard_at_once_and_their_end_is_survived() {
    let began = Instant::now();
    // Each time the news are opened they tell once, after 40 ms, and end.
    let mut opened = 0;
    let watch = || {
        opened += 1;
        stream::once(pause_for(Duration::from_millis(40))).boxed()
    };
    let mut asked = Vec::new();
    let got = until_told(
        "x",
        Pace::WATCHED,
        deadline(60),
        |_| (),
        watch,
        || {
            asked.push(began.elapsed().as_millis());
            let ready = asked.len() == 5;
            async move { Ok(if ready { Verdict::Ready(()) } else { Verdict::waiting("no") }) }
        },
    )
    .await;
    assert_eq!(got, Ok(()));
    // Told at 40; the stream's end then costs one pause of 200, and the next of 300 begins with new news.
    assert_eq!(asked, [0, 40, 240, 280, 580]);
    assert_eq!(opened, 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_tells_since_when_the_last_reason_holds() {
    let began = Instant::now();
    let failure = until::<(), _, _>(
        "x",
        Pace::GATE,
        deadline(30),
        |_| (),
        || async move {
            let late = began.elapsed() >= Duration::from_secs(20);
            Ok(Verdict::waiting(if late { "no leader" } else { "no members" }))
        },
    )
    .await
    .unwrap_err();
    let evidence = failure.evidence.unwrap();
    assert!(evidence.starts_with("no leader (for the last 9."), "{evidence}");
}
