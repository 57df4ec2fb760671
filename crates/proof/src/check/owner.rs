//! Ownership: what others have put there is as it was, to the byte.

use castle_rehearsal::world::Datacenter;
use serde_json::Value;

use super::Violation;
use super::same::differences;
use crate::setting::Setting;

/// Compares everything foreign before and after.
#[must_use]
pub fn foreign(setting: &Setting, before: &Value, after: &Datacenter) -> Vec<Violation> {
    let now = setting.foreign(after);
    let found = differences(before, &now).into_iter();
    found.map(|what| Violation::new("ownership", what)).collect()
}

#[cfg(test)]
mod tests {
    use castle_rehearsal::trouble::{ProxmoxTrouble, Trouble};
    use castle_rehearsal::world::Input;

    use super::*;
    use crate::setting::Shape;

    #[test]
    fn a_neighbour_that_was_touched_is_found() {
        let setting = Setting::of(Shape::SMALL, 1);
        let mut world = setting.empty().datacenter;
        let before = setting.foreign(&world);
        assert_eq!(foreign(&setting, &before, &world), []);
        let touch = |trouble| Input::Trouble(Trouble::Proxmox(trouble));
        drop(world.input(1, &touch(ProxmoxTrouble::Stopped { vmid: 101 })));
        let touched = foreign(&setting, &before, &world).len();
        assert!(touched > 0, "its power");
        drop(world.input(2, &touch(ProxmoxTrouble::Destroyed { vmid: 902 })));
        assert!(foreign(&setting, &before, &world).len() > touched + 1, "itself and its disk");
    }

    #[test]
    fn a_neighbour_that_falls_with_its_node_is_nobodys_doing_and_one_that_was_stopped_is() {
        let setting = Setting::of(Shape::SMALL, 1);
        let mut world = setting.empty().datacenter;
        let before = setting.foreign(&world);
        let touch = |trouble| Input::Trouble(Trouble::Proxmox(trouble));
        let mut stopped = world.clone();
        drop(stopped.input(1, &touch(ProxmoxTrouble::Stopped { vmid: 430 })));
        for world in [&mut world, &mut stopped] {
            drop(world.input(2, &touch(ProxmoxTrouble::NodeDown)));
            drop(world.input(3, &touch(ProxmoxTrouble::NodeBack)));
        }
        assert_eq!(foreign(&setting, &before, &world), []);
        let found = foreign(&setting, &before, &stopped);
        assert!(found.iter().any(|v| v.what.contains("/guests/430/running")), "{found:?}");
    }
}
