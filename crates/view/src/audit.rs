//! What an audit found, and what a wipe would take, as people read it.

use castle_model::Audit;
use castle_model::audit::{Item, Standing};

use crate::style::{Style, Tone, clean, count};
use crate::table::laid;

/// A guest that a wipe shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What it is, with its number and name.
    pub what: String,
    /// The node that carries it.
    pub node: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whose it is.
    pub owner: String,
    /// The disks that die with it, each with its size in MiB.
    pub disks: Vec<(String, u64)>,
    /// Those of them that hold what the workloads have written.
    pub data: Vec<String>,
    /// What is attached to it or bears its number, and stays.
    pub spared: Vec<String>,
    /// Whether it was forced.
    pub forced: bool,
    /// Why it stays, if it does.
    pub stays: Option<String>,
}

/// The page of an audit: what is amiss first, and what to do about it.
#[must_use]
pub fn text(audit: &Audit, style: Style) -> String {
    let amiss = audit.amiss().count();
    let (verdict, tone) = match (audit.gone, amiss) {
        (true, 0) => ("nothing is left of it".to_owned(), Tone::Good),
        (false, 0) => ("all that is there is expected".to_owned(), Tone::Good),
        (true, _) => (format!("{} left", things(amiss)), Tone::Bad),
        (false, _) => (format!("{} not as expected", things(amiss)), Tone::Bad),
    };
    let should = if audit.gone { ", which should be gone" } else { ", which stands" };
    let head = format!("audit of castle {}{should}: {verdict}", audit.castle);
    let mut page = style.hang("", &head, Some(tone)) + "\n";
    if audit.items.is_empty() {
        return page;
    }
    let rows: Vec<Vec<String>> = audit.items.iter().map(row).collect();
    let rows = laid(&rows, &[true, true, true, true], style.width);
    for (row, item) in rows.iter().zip(&audit.items) {
        let tone = match item.standing {
            Standing::Left | Standing::Unseen => Tone::Bad,
            Standing::Expected => Tone::Good,
            Standing::Kept | Standing::Others => Tone::Quiet,
        };
        for line in row.lines() {
            page.push_str(&style.paint(tone, line));
            page.push('\n');
        }
        page.push_str(&style.hang("    ", &item.whose, None));
        page.push('\n');
        if !item.advice.is_empty() && item.standing != Standing::Expected {
            page.push_str(&style.hang("    hint: ", &item.advice, None));
            page.push('\n');
        }
    }
    page
}

fn things(number: usize) -> String {
    if number == 1 { "1 thing is".to_owned() } else { format!("{number} things are") }
}

fn row(item: &Item) -> Vec<String> {
    let standing = format!("  {}", item.standing);
    vec![standing, item.kind.to_string(), clean(&item.what), clean(&item.place)]
}

/// What a wipe would take and what it would leave.
#[must_use]
pub fn list(guests: &[Shown], style: Style) -> String {
    let mut page = String::new();
    let (staying, going): (Vec<&Shown>, Vec<&Shown>) =
        guests.iter().partition(|guest| guest.stays.is_some());
    for (title, tone, part) in [
        (format!("{} removed:", would(going.len())), Tone::Bad, going),
        (format!("{} left alone:", would(staying.len())), Tone::Quiet, staying),
    ] {
        if part.is_empty() {
            continue;
        }
        page.push_str(&style.paint(tone, &title));
        page.push('\n');
        for guest in part {
            page.push_str(&one(guest, style));
        }
    }
    page
}

fn would(number: usize) -> String {
    format!("{} would be", count(number, "guest"))
}

fn one(guest: &Shown, style: Style) -> String {
    let line = |prefix: &str, text: &str| style.hang(prefix, text, None) + "\n";
    let mut page = line("  ", &format!("{} on {}", guest.what, guest.node));
    let forced = if guest.forced { " (forced)" } else { "" };
    page.push_str(&line("    owner: ", &format!("{}{forced}", guest.owner)));
    if !guest.tags.is_empty() {
        page.push_str(&line("    tags:  ", &guest.tags.join(", ")));
    }
    if let Some(why) = &guest.stays {
        page.push_str(&line("    stays: ", why));
        return page;
    }
    let size: u64 = guest.disks.iter().map(|(_, mib)| mib).sum();
    let disk = |(volid, mib): &(String, u64)| {
        let data = if guest.data.contains(volid) { ", the data of workloads" } else { "" };
        format!("{volid} ({mib} MiB{data})")
    };
    let disks: Vec<String> = guest.disks.iter().map(disk).collect();
    let dies = format!("{}, {} GiB: {}", count(disks.len(), "disk"), size >> 10, disks.join(", "));
    page.push_str(&line("    dies:  ", &dies));
    if !guest.spared.is_empty() {
        page.push_str(&line("    kept:  ", &guest.spared.join(", ")));
    }
    page
}

#[cfg(test)]
mod tests {
    use castle_model::audit::Kind;

    use super::*;

    #[test]
    fn what_is_amiss_stands_first_with_what_to_do() {
        let audit = Audit::new(
            "blue".parse().unwrap(),
            true,
            vec![
                Item::new(
                    Standing::Others,
                    Kind::Guest,
                    "VM 425 `mail`",
                    "pve",
                    "somebody else's: it bears no mark of a castle",
                ),
                Item::new(
                    Standing::Left,
                    Kind::Disk,
                    "local-lvm:vm-421-disk-9 (1024 MiB)",
                    "pve",
                    "it bears the number of cp-01, and no guest has it",
                )
                .advice("if nobody needs it, on the host: pvesm free local-lvm:vm-421-disk-9"),
            ],
        );
        insta::assert_snapshot!(text(&audit, Style::default()), @r"
        audit of castle blue, which should be gone: 1 thing is left
          left over  disk   local-lvm:vm-421-disk-9 (1024 MiB)  pve
            it bears the number of cp-01, and no guest has it
            hint: if nobody needs it, on the host: pvesm free local-lvm:vm-421-disk-9
          not ours   guest  VM 425 `mail`                       pve
            somebody else's: it bears no mark of a castle
        ");
        let none = Audit::new("blue".parse().unwrap(), true, Vec::new());
        insta::assert_snapshot!(text(&none, Style::default()), @"audit of castle blue, which should be gone: nothing is left of it");
    }

    #[test]
    fn one_long_name_tears_no_narrow_terminal() {
        let long = "local:import/castle-talos-1.13.9-376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba.raw";
        let own = "it is this castle's";
        let audit = Audit::new(
            "blue".parse().unwrap(),
            false,
            vec![
                Item::new(Standing::Expected, Kind::Guest, "VM 421 `blue-cp-01`", "pve", own),
                Item::new(Standing::Expected, Kind::Image, long, "pve", own),
                Item::new(
                    Standing::Expected,
                    Kind::Escrow,
                    "TALOS_SECRETS_BUNDLE",
                    "https://eu.infisical.com, project 0123, /castle/blue",
                    own,
                ),
            ],
        );
        let at = |width| text(&audit, Style { width, ..Style::default() });
        insta::assert_snapshot!(at(60), @"
        audit of castle blue, which stands: all that is there is
        expected
          expected  guest   VM 421 `blue-cp-01`   pve
            it is this castle's
          expected  image
        local:import/castle-talos-1.13.9-376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba.raw
                                                  pve
            it is this castle's
          expected  escrow  TALOS_SECRETS_BUNDLE
                                           https://eu.infisical.com,
                                           project 0123,
                                           /castle/blue
            it is this castle's
        ");
        insta::assert_snapshot!(at(80), @"
        audit of castle blue, which stands: all that is there is expected
          expected  guest   VM 421 `blue-cp-01`   pve
            it is this castle's
          expected  image
        local:import/castle-talos-1.13.9-376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba.raw
                                                  pve
            it is this castle's
          expected  escrow  TALOS_SECRETS_BUNDLE  https://eu.infisical.com, project
                                                  0123, /castle/blue
            it is this castle's
        ");
        insta::assert_snapshot!(at(100), @"
        audit of castle blue, which stands: all that is there is expected
          expected  guest   VM 421 `blue-cp-01`   pve
            it is this castle's
          expected  image
        local:import/castle-talos-1.13.9-376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba.raw
                                                  pve
            it is this castle's
          expected  escrow  TALOS_SECRETS_BUNDLE  https://eu.infisical.com, project 0123, /castle/blue
            it is this castle's
        ");
    }

    #[test]
    fn a_wipe_shows_what_dies_and_what_stays() {
        let guest = Shown {
            what: "VM 421 `blue-cp-01`".to_owned(),
            node: "pve".to_owned(),
            tags: vec!["castle".to_owned(), "castle-blue".to_owned()],
            owner: "cp-01 of this castle, life 0011223344556677".to_owned(),
            disks: vec![
                ("local-lvm:vm-421-disk-0".to_owned(), 4),
                ("local-lvm:vm-421-disk-1".to_owned(), 40 << 10),
            ],
            data: vec!["local-lvm:vm-421-disk-1".to_owned()],
            spared: vec!["local-lvm:vm-999-disk-0 of guest 999".to_owned()],
            forced: false,
            stays: None,
        };
        let other = Shown {
            what: "container 425 `dns`".to_owned(),
            tags: Vec::new(),
            owner: "somebody else's: castle makes no containers".to_owned(),
            stays: Some("it is not this castle's; `--force-foreign 425` removes it".to_owned()),
            ..guest.clone()
        };
        insta::assert_snapshot!(list(&[guest, other], Style::default()), @r"
        1 guest would be removed:
          VM 421 `blue-cp-01` on pve
            owner: cp-01 of this castle, life 0011223344556677
            tags:  castle, castle-blue
            dies:  2 disks, 40 GiB: local-lvm:vm-421-disk-0 (4 MiB),
                   local-lvm:vm-421-disk-1 (40960 MiB, the data of workloads)
            kept:  local-lvm:vm-999-disk-0 of guest 999
        1 guest would be left alone:
          container 425 `dns` on pve
            owner: somebody else's: castle makes no containers
            stays: it is not this castle's; `--force-foreign 425` removes it
        ");
    }
}
