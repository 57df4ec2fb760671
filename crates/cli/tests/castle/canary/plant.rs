//! Canaries: random secrets of every shape, put into the vault of a rehearsal before castle sees it.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_rehearsal::host::Host;
use castle_wire::Entropy;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::context::{Context, example};
use crate::datacenter::spec_of;

/// How many keys are required beyond those that the castle uses.
pub(crate) const REQUIRED: usize = 64;

/// Keys that the castle itself uses, and whose values may be any word.
const USED: [&str; 3] = ["REGISTRY_USER", "REGISTRY_PASSWORD", "DISK_PASSPHRASE"];

/// The shapes of their values: a token is one word.
const ONE_WORD: [usize; 3] = [2, 1, 3];

/// Where the values of a run come from.
pub(crate) struct Dice(u64);

impl Dice {
    /// Another seed each time, or the one of an earlier failure.
    #[expect(clippy::disallowed_methods, reason = "a failure must be met again by its seed")]
    pub(crate) fn thrown() -> Self {
        if let Ok(seed) = std::env::var("CASTLE_CANARY_SEED") {
            return Self(seed.parse().unwrap());
        }
        let mut seed = [0; 4];
        castle_wire::SystemEntropy.fill(&mut seed);
        Self(u32::from_le_bytes(seed).into())
    }

    /// What they begin with.
    pub(crate) fn seed(&self) -> u64 {
        self.0
    }

    /// The generator SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// So many characters out of some.
    pub(crate) fn text(&mut self, characters: &str, count: usize) -> String {
        let characters: Vec<char> = characters.chars().collect();
        let one = |dice: &mut Self| {
            let place = usize::try_from(dice.next() % 1_000_000).unwrap() % characters.len();
            characters[place]
        };
        (0..count).map(|_| one(self)).collect()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// A secret of one of many shapes. It begins and ends with a letter, because vaults trim.
    pub(crate) fn secret(&mut self, shape: usize) -> String {
        let letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
        let inside = match shape % 9 {
            0 => self.text(letters, 40),
            1 => self.text("%+/=&?#:;@", 40),
            2 => self.text("\"'\\/<>&{}[],:`$!", 40),
            3 => self.text("äöüßéñłøåçž漢字かな한글🗝🏰", 24),
            4 => STANDARD.encode(self.bytes(47)),
            5 => {
                let lines: Vec<String> = (0..4).map(|_| self.text("\"\\%+ /'\t=é", 24)).collect();
                let lines: Vec<String> = lines.iter().map(|line| format!("a{line}z")).collect();
                lines.join("\n")
            }
            6 => return self.pem(),
            7 => format!("{{\"key\": \"{}\", \"n\": 1}}", self.text(letters, 32)),
            _ => hex::encode(self.bytes(24)),
        };
        format!("c{inside}y")
    }

    fn pem(&mut self) -> String {
        let code = STANDARD.encode(self.bytes(192));
        let lines: Vec<&str> =
            code.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let lines = lines.join("\n");
        format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----")
    }
}

/// The castle file of an example, with every secret that a castle file can name, and with deadlines of its own.
pub(crate) fn castle_file(name: &str, deadlines: &str) -> String {
    let keys: Vec<String> = (0..REQUIRED).map(|n| format!("\"CANARY_{n:02}\"")).collect();
    let [user, password, passphrase] = USED;
    let example = example(name);
    let text = match example.split_once("  deadlines {") {
        Some((before, _)) => before,
        None => example.trim_end().strip_suffix('}').unwrap(),
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.retain(|line| !line.trim_start().starts_with("require "));
    let path = lines.iter().position(|line| line.trim_start().starts_with("path ")).unwrap();
    lines.insert(path + 1, format!("    require = [{}]", keys.join(", ")));
    let rest = format!(
        "  machine {{
    registry \"docker.io\" {{
      username = secret(\"{user}\")
      password = secret(\"{password}\")
    }}
    disk_encryption {{
      method     = \"passphrase\"
      passphrase = secret(\"{passphrase}\")
    }}
  }}
  deadlines {{ {deadlines} }}
}}
"
    );
    lines.join("\n") + "\n" + &rest
}

/// Builds the datacenter of a castle file as castle would, and puts canaries into its vault. Gives all its secrets back.
pub(crate) fn planted(
    home: &Context,
    datacenter: &Path,
    castle_file: &str,
    dice: &mut Dice,
) -> BTreeMap<String, Vec<u8>> {
    home.write("castle.hcl", castle_file);
    let (spec, seed) = (spec_of(castle_file), dice.next() >> 1);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
        drop(Host::open(Some(datacenter), &spec, seed).unwrap());
    });
    let mut canaries = BTreeMap::new();
    change_vault(datacenter, |key, value| {
        if key == "PROXMOX_TOKEN_ID" {
            return;
        }
        // The others are known to a server too: they stay as they were invented, from a random seed.
        if key.starts_with("CANARY_") {
            *value = dice.secret(canaries.len());
        } else if let Some(number) = USED.iter().position(|used| *used == key) {
            *value = dice.secret(ONE_WORD[number]);
        }
        canaries.insert(key.to_owned(), value.clone().into_bytes());
    });
    let world = world(datacenter);
    let secret = world.pointer("/birth/infisical/client_secret").and_then(Value::as_str).unwrap();
    canaries.insert("the identity's secret".to_owned(), secret.to_owned().into_bytes());
    canaries
}

/// Changes the values in the vault of a datacenter that nobody uses.
pub(crate) fn change_vault(datacenter: &Path, mut change: impl FnMut(&str, &mut String)) {
    let path = datacenter.join("world.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let (about, body) = text.split_once('\n').unwrap();
    let mut body: Value = serde_json::from_str(body).unwrap();
    each_secret(body.pointer_mut("/infisical/projects").unwrap(), &mut change);
    let body = body.to_string();
    let mut about: Value = serde_json::from_str(about).unwrap();
    let summed = format!("{}\n{body}", about["number"]);
    about["sum"] = hex::encode(Sha256::digest(summed)).into();
    std::fs::write(&path, format!("{about}\n{body}\n")).unwrap();
}

/// What a datacenter knows, by its last snapshot.
fn world(datacenter: &Path) -> Value {
    let text = std::fs::read_to_string(datacenter.join("world.json")).unwrap();
    serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
}

fn each_secret(value: &mut Value, change: &mut impl FnMut(&str, &mut String)) {
    let Some(map) = value.as_object_mut() else { return };
    for (key, inner) in map.iter_mut() {
        if key == "secrets" {
            for (name, kept) in inner.as_object_mut().unwrap() {
                if let Value::String(value) = &mut kept["value"] {
                    change(name, value);
                }
            }
        } else {
            each_secret(inner, change);
        }
    }
}

/// The keys and tokens that castle made and put into the vault: of Talos secrets, kubeconfigs and talosconfigs.
pub(crate) fn escrowed(datacenter: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut canaries = BTreeMap::new();
    each_secret(
        world(datacenter).pointer_mut("/infisical/projects").unwrap(),
        &mut |key, value| {
            if !key.starts_with("CANARY_") {
                canaries.extend(keys_in(key, value));
            }
        },
    );
    canaries
}

/// The keys and tokens in a text of YAML. Of a private key, a line of its PEM and the bytes behind it are searched for.
pub(crate) fn keys_in(name: &str, text: &str) -> BTreeMap<String, Vec<u8>> {
    const FIELDS: [&str; 6] = [
        "key",
        "secret",
        "token",
        "bootstraptoken",
        "secretboxencryptionsecret",
        "client-key-data",
    ];
    let mut canaries = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let Some((field, value)) = line.trim().split_once(": ") else { continue };
        if !FIELDS.contains(&field) || value.len() < 16 {
            continue;
        }
        let name = format!("{field} in line {number} of {name}");
        let pem = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(pem) = pem.filter(|pem| pem.contains("PRIVATE KEY-----")) {
            // Every key begins with words on what it is; a long one goes on with what is public, a short one ends with it.
            let long = pem.lines().count() > 10;
            let line = pem.lines().nth(if long { 30 } else { 1 }).unwrap();
            let own = &line[line.len() / 8 * 4..];
            canaries.insert(format!("{name}, its PEM"), own.as_bytes().to_vec());
            let bytes = STANDARD.decode(&own[..own.len() / 4 * 4]).unwrap();
            canaries.insert(format!("{name}, its bytes"), bytes);
        } else {
            canaries.insert(name, value.as_bytes().to_vec());
        }
    }
    canaries
}
