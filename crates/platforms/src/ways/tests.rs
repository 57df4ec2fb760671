//! Entries of every kind, judged.

use std::sync::Arc;

use castle_model::CastleName;
use castle_rehearsal::host::Host;
use castle_wire::Clock;

use super::*;

/// A castle whose life has begun, and the world around it.
struct Setting {
    spec: Spec,
    life: Life,
    world: World,
}

/// A clock that went wrong by so many milliseconds, or stands in another year.
struct Shifted(Arc<dyn Clock>, i64);

impl Clock for Shifted {
    fn now(&self) -> Moment {
        Moment(self.0.now().0.saturating_add_signed(self.1))
    }
}

const DAY_MS: i64 = 86_400_000;

impl Setting {
    fn new() -> Self {
        let spec = castle_config::example();
        let world = Host::open(None, &spec, 1).unwrap().world();
        let life = Life::begin(&world).unwrap();
        Self { spec, life, world }
    }

    /// The text of a way in, issued so many days from now.
    fn text(&self, way: Way, days: i64) -> Secret {
        let clock = Shifted(self.world.clock.clone(), days * DAY_MS);
        let entropy = &*self.world.entropy;
        match way {
            Way::Kubernetes => KubeAccess::issue(&self.spec, &self.life.bundle, entropy, &clock)
                .unwrap()
                .kubeconfig(&self.spec),
            Way::Talos => TalosAccess::issue(&self.life.bundle, entropy, &clock)
                .unwrap()
                .talosconfig(&self.spec),
        }
    }

    fn marked(&self, text: &Secret) -> Secret {
        self.life.marked(&self.spec.name, text)
    }

    fn judge(&self, way: Way, text: &Secret) -> Standing {
        way.judge(&self.spec, Some(&self.life), &self.world, Some(text))
    }
}

fn stale(why: &str) -> Standing {
    Standing::Stale { why: why.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn another_text_of_the_same_way_in_is_right_until_it_expires_soon() {
    let setting = Setting::new();
    for way in Way::ALL {
        let one = setting.marked(&setting.text(way, 0));
        let other = setting.marked(&setting.text(way, -200));
        assert_ne!(one, other);
        assert!(matches!(setting.judge(way, &one), Standing::Right { .. }), "{way:?}");
        assert!(matches!(setting.judge(way, &other), Standing::Right { .. }), "{way:?}");
        // A third of a year is 121 days and 16 hours.
        let old = setting.marked(&setting.text(way, -244));
        let Standing::Untimely { why, .. } = setting.judge(way, &old) else { panic!("{way:?}") };
        assert!(why.starts_with("it is valid until 20"), "{why}");
        let tomorrow = setting.marked(&setting.text(way, 1));
        let Standing::Untimely { why, .. } = setting.judge(way, &tomorrow) else {
            panic!("{way:?}")
        };
        assert_eq!(why, "by the clock here it is not valid yet");
    }
}

#[tokio::test(start_paused = true)]
async fn what_leads_elsewhere_or_is_damaged_is_written_anew() {
    let mut setting = Setting::new();
    let texts = Way::ALL.map(|way| setting.marked(&setting.text(way, 0)));
    for (way, text) in Way::ALL.into_iter().zip(&texts) {
        // The key of another certificate.
        let (one, other) = (text.expose(), setting.text(way, 0));
        let key = |text: &str| {
            let line =
                text.lines().find(|line| line.contains("key: ") || line.contains("key-data: "));
            line.unwrap().to_owned()
        };
        let mixed = Secret::new(one.replace(&key(one), &key(other.expose())));
        let Standing::Stale { why } = setting.judge(way, &mixed) else { panic!("{way:?}") };
        assert!(!why.contains("until"), "{why}");
        let cut = Secret::new(&one[..one.len() / 2]);
        assert!(matches!(setting.judge(way, &cut), Standing::Stale { .. }), "{way:?}");
    }
    // The castle moves: the VIP, and one machine less.
    setting.spec.network.vip = "192.168.1.209".parse().unwrap();
    setting.spec.nodes.remove(0);
    let [kube, talos] = [0, 1].map(|n| setting.judge(Way::ALL[n], &texts[n]));
    assert_eq!(
        kube,
        stale(
            "it names https://192.168.1.210:6443, and the castle is at https://192.168.1.209:6443"
        )
    );
    assert_eq!(
        talos,
        stale(
            "it names 192.168.1.211, 192.168.1.212, 192.168.1.213, and the castle is at 192.168.1.212, 192.168.1.213"
        )
    );
    // The same life with another authority: never seen, but then it does not open anything.
    setting.life.bundle = Life::begin(&setting.world).unwrap().bundle;
    assert_eq!(setting.judge(Way::Kubernetes, &texts[0]), stale("it trusts another authority"));
}

#[tokio::test(start_paused = true)]
async fn whose_an_entry_is_decides_whether_it_is_written_over() {
    let setting = Setting::new();
    let red: CastleName = "red".parse().unwrap();
    let mut later = setting.life.clone();
    later.incarnation = "8899aabbccddeeff".parse().unwrap();
    for way in Way::ALL {
        let text = setting.text(way, 0);
        let judge =
            |text: &Secret, life| way.judge(&setting.spec, life, &setting.world, Some(text));
        assert_eq!(way.judge(&setting.spec, None, &setting.world, None), Standing::Absent);
        let ours = setting.marked(&text);
        let earlier = stale(&format!("it is of the earlier life {}", setting.life.incarnation));
        assert_eq!(judge(&ours, Some(&later)), earlier);
        assert_eq!(judge(&ours, None), earlier);
        let theirs = setting.life.marked(&red, &text);
        let foreign = Standing::Foreign { why: "it belongs to the castle `red`".to_owned() };
        assert_eq!(judge(&theirs, Some(&setting.life)), foreign);
        assert_eq!(judge(&theirs, None), foreign);
        let torn = Secret::new(format!("# castle blue\n{}", text.expose()));
        assert!(matches!(judge(&torn, None), Standing::Foreign { .. }));
        // Without a line: by where it leads, or by whom it trusts.
        assert_eq!(judge(&text, None), Standing::Unmarked);
        let moved = Secret::new(text.expose().replace("192.168.1.2", "10.0.0.2"));
        assert_eq!(judge(&moved, Some(&setting.life)), Standing::Unmarked);
        let Standing::Foreign { why } = judge(&moved, None) else { panic!("{way:?}") };
        assert!(why.contains("10.0.0.2"), "{why}");
        for other in ["", "hunter2", "kind: Config"] {
            let Standing::Foreign { why } = judge(&Secret::new(other), Some(&setting.life)) else {
                panic!("{other}")
            };
            assert_eq!(why, format!("it is no {} that castle knows", way.name()));
        }
    }
}

#[test]
fn a_conflict_names_the_place_and_the_cure() {
    let failure = Way::Kubernetes.conflict("a drawer", "it belongs to the castle `red`");
    assert_eq!(failure.evidence.as_deref(), Some("KUBECONFIG_CONTENT in a drawer"));
    assert_eq!(
        failure.to_string(),
        "keep the kubeconfig as KUBECONFIG_CONTENT: what is kept there is not this castle's: it belongs to the castle `red`"
    );
    assert!(failure.hint.unwrap().starts_with("give each castle a place of its own"));
}
