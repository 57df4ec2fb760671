//! What no file of the state folder can tell (`docs/reference/state.md`), the world decides: the next run converges.

use castle_proof::Command::{Down, Up};
use castle_proof::Shape;
use castle_proof::point::Moment;
use castle_proof::trial::Part::{Copies, Loses, PutsBack, Runs as Run};
use castle_proof::trial::{Runs, Trial};

static OLD_COPY: Trial = Trial {
    name: "an old copy of the whole folder, of before the castle was razed",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::quiet(Up)),
        Copies,
        Run(Runs::quiet(Down)),
        PutsBack,
        Run(Runs::quiet(Up)),
        PutsBack,
        Run(Runs::quiet(Down)),
    ],
};

static OF_BEFORE: Trial = Trial {
    name: "an old copy of the whole folder, of before the castle was raised",
    shape: Shape::SMALL,
    parts: &[
        Copies,
        Run(Runs::quiet(Up)),
        PutsBack,
        Run(Runs::quiet(Up)),
        PutsBack,
        Run(Runs::quiet(Down)),
    ],
};

static LAST_BATCH: Trial = Trial {
    name: "the last intent of a run that was killed",
    shape: Shape::SMALL,
    parts: &[
        Run(Runs::killed(Up, Moment::BeforeSend, "/download-url")),
        Loses("layers/platform.journal"),
        Run(Runs::quiet(Up)),
    ],
};

static RUN_ENDED: Trial = Trial {
    name: "the end of a run",
    shape: Shape::SMALL,
    parts: &[Run(Runs::quiet(Up)), Loses("run.journal"), Run(Runs::quiet(Up))],
};

#[test]
fn what_no_file_can_tell_is_decided_by_the_world() {
    for trial in [&OLD_COPY, &OF_BEFORE, &LAST_BATCH, &RUN_ENDED] {
        assert_eq!(trial.play(), Vec::new(), "{}", trial.name);
    }
}
