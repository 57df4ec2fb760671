//! The ways in as they are kept: whose an entry is, and whether it is still the right one.
//!
//! A kubeconfig is made anew in every run, so two of them never have the same bytes. They are the same way in if they
//! trust the same authority and name the same servers; and one that expires soon is replaced in time.

use castle_model::time::Moment;
use castle_model::{Class, Failure, Secret, Spec};
use castle_talos::handout::{HandoutError, Validity};
use castle_talos::{KubeAccess, TalosAccess, kubernetes_endpoint};
use castle_wire::failure::chain;
use castle_wire::tls::{TlsError, client_config};
use castle_wire::{ClientIdentity, Verify, World};

use crate::escrow::{KUBECONFIG_KEY, TALOSCONFIG_KEY};
use crate::handed::{Life, escrowed_incarnation, is_marked};

/// One of the files that open a castle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The kubeconfig.
    Kubernetes,
    /// The talosconfig.
    Talos,
}

/// How an entry stands to the one that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Absent,
    /// It is ours and opens the castle.
    Right {
        /// When it ceases to.
        until: Moment,
    },
    /// It is ours and would open the castle, were it not for the time that the clock here tells.
    Untimely {
        /// What that time says of it.
        why: String,
        /// When it ceases to open the castle.
        until: Moment,
    },
    /// It is ours, but to be written anew.
    Stale {
        /// What is wrong with it.
        why: String,
    },
    /// It does not say whose it is, but leads to this castle: it may be written over, and a person is told.
    Unmarked,
    /// It is somebody else's, or can not be told from that.
    Foreign {
        /// Why.
        why: String,
    },
}

/// What an entry says.
struct Said {
    authority: String,
    servers: Vec<String>,
    certificate: String,
    key: Secret,
    validity: Validity,
}

impl Said {
    /// Whether the certificate and its key can be used, and belong together.
    fn usable(&self, world: &World) -> Result<(), TlsError> {
        let identity = ClientIdentity::from_pem(&self.certificate, &self.key)?;
        let verify = Verify::Authority(self.authority.clone());
        client_config(&verify, Some(identity), world.clock.clone(), &[]).map(drop)
    }
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kubernetes, Self::Talos];

    /// The key that it is kept under.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Kubernetes => KUBECONFIG_KEY,
            Self::Talos => TALOSCONFIG_KEY,
        }
    }

    /// The file in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubeconfig",
            Self::Talos => "talosconfig",
        }
    }

    /// Judges what is kept. Before a life has begun there is none that an entry could be of.
    #[must_use]
    pub fn judge(
        self,
        spec: &Spec,
        life: Option<&Life>,
        world: &World,
        kept: Option<&Secret>,
    ) -> Standing {
        let Some(text) = kept else { return Standing::Absent };
        match (escrowed_incarnation(&spec.name, text), life) {
            (Ok(theirs), Some(life)) if theirs == life.incarnation => {
                match self.opens(spec, life, world, text) {
                    Ok(validity) => timely(validity, world.clock.now()),
                    Err(why) => Standing::Stale { why },
                }
            }
            (Ok(theirs), _) => {
                Standing::Stale { why: format!("it is of the earlier life {theirs}") }
            }
            (Err(why), _) if is_marked(text) => Standing::Foreign { why },
            (Err(_), _) => self.unmarked(spec, life, text),
        }
    }

    /// When an entry of this life opens the castle, or why it never does.
    fn opens(
        self,
        spec: &Spec,
        life: &Life,
        world: &World,
        text: &Secret,
    ) -> Result<Validity, String> {
        let said = self.read(text).map_err(|error| error.to_string())?;
        if said.authority.trim() != self.authority(life).trim() {
            return Err("it trusts another authority".to_owned());
        }
        let servers = self.servers(spec);
        if said.servers != servers {
            let (theirs, ours) = (said.servers.join(", "), servers.join(", "));
            return Err(format!("it names {theirs}, and the castle is at {ours}"));
        }
        said.usable(world).map_err(|error| chain(&error))?;
        Ok(said.validity)
    }

    fn unmarked(self, spec: &Spec, life: Option<&Life>, text: &Secret) -> Standing {
        let Ok(said) = self.read(text) else {
            return Standing::Foreign {
                why: format!("it is no {} that castle knows", self.name()),
            };
        };
        let servers = self.servers(spec);
        let same_authority =
            life.is_some_and(|life| said.authority.trim() == self.authority(life).trim());
        if same_authority || said.servers.iter().any(|server| servers.contains(server)) {
            return Standing::Unmarked;
        }
        Standing::Foreign { why: format!("it leads to {}", said.servers.join(", ")) }
    }

    fn read(self, text: &Secret) -> Result<Said, HandoutError> {
        Ok(match self {
            Self::Kubernetes => {
                let access = KubeAccess::from_kubeconfig(text)?;
                Said {
                    validity: access.validity()?,
                    authority: access.authority,
                    servers: vec![access.server],
                    certificate: access.certificate,
                    key: access.key,
                }
            }
            Self::Talos => {
                let (access, endpoints) = TalosAccess::from_talosconfig(text)?;
                Said {
                    validity: access.validity()?,
                    authority: access.authority,
                    servers: endpoints.iter().map(ToString::to_string).collect(),
                    certificate: access.certificate,
                    key: access.key,
                }
            }
        })
    }

    /// Until when the client certificate in an entry is valid, as far as it can be read.
    #[must_use]
    pub fn valid_until(self, text: &Secret) -> Option<Moment> {
        self.read(text).ok().map(|said| said.validity.until)
    }

    fn authority(self, life: &Life) -> &str {
        match self {
            Self::Kubernetes => &life.bundle.kubernetes.certificate,
            Self::Talos => &life.bundle.os.certificate,
        }
    }

    fn servers(self, spec: &Spec) -> Vec<String> {
        match self {
            Self::Kubernetes => vec![kubernetes_endpoint(spec)],
            Self::Talos => spec.control_planes().map(|node| node.address.to_string()).collect(),
        }
    }

    /// What is said of an entry that is not ours and is in the way.
    #[must_use]
    pub fn conflict(self, place: &str, why: &str) -> Failure {
        let key = self.key();
        Failure::new(
            Class::Conflict,
            format!("keep the {} as {key}", self.name()),
            format!("what is kept there is not this castle's: {why}"),
        )
        .evidence(format!("{key} in {place}"))
        .hint(format!(
            "give each castle a place of its own, or move that entry away: castle never overwrites a {} that it can not prove to be its own",
            self.name()
        ))
    }
}

/// How something that opens the castle at its time stands to the time of the clock here.
fn timely(validity: Validity, now: Moment) -> Standing {
    let until = validity.until;
    let why = if now < validity.from {
        "by the clock here it is not valid yet".to_owned()
    } else if !validity.is_fresh(now) {
        format!("it is valid until {}", date(until))
    } else {
        return Standing::Right { until };
    };
    Standing::Untimely { why, until }
}

/// The day of a moment.
#[must_use]
pub fn date(moment: Moment) -> String {
    let (year, month, day) = moment.date();
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests;
