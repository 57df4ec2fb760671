//! What is given out to people, made from the Talos secrets alone: the ways in, and the configs as they would be sent.

use castle_model::spec::SecretRef;
use castle_model::{Class, Failure, Secret, Spec};
use castle_talos::{Bundle, KeyError, KubeAccess, TalosAccess, machine_config, redacted};
use castle_wire::World;
use castle_wire::failure::chain;

use crate::proxmox::image::schematic;

/// The Talos secrets of one life, to make things of.
pub struct Handout(Bundle);

/// A machine config as it may be shown.
pub struct Shown {
    /// The documents, as YAML.
    pub text: Secret,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

impl Handout {
    /// Reads the Talos secrets, escrowed or as `talosctl gen secrets` writes them.
    ///
    /// # Errors
    /// Says what is missing or damaged, never with its content.
    pub fn read(text: &Secret) -> Result<Self, Failure> {
        Bundle::from_yaml(text).map(Self).map_err(|error| {
            Failure::new(Class::Invalid, "read the Talos secrets", chain(&error))
                .hint("give the file that `talosctl gen secrets` wrote")
        })
    }

    /// The talosconfig of an administrator.
    ///
    /// # Errors
    /// If the authority is damaged.
    pub fn talosconfig(&self, spec: &Spec, world: &World) -> Result<Secret, Failure> {
        let access = TalosAccess::issue(&self.0, world.entropy.as_ref(), world.clock.as_ref());
        Ok(access.map_err(|error| damaged(&error))?.talosconfig(spec))
    }

    /// The kubeconfig of an administrator, through the VIP.
    ///
    /// # Errors
    /// If the authority is damaged.
    pub fn kubeconfig(&self, spec: &Spec, world: &World) -> Result<Secret, Failure> {
        let access = KubeAccess::issue(spec, &self.0, world.entropy.as_ref(), world.clock.as_ref());
        Ok(access.map_err(|error| damaged(&error))?.kubeconfig(spec))
    }

    /// The config that a machine would be sent; with `reveal`, its secrets too.
    ///
    /// # Errors
    /// If there is no such machine, or its config can not be written.
    pub fn machine_config(
        &self,
        spec: &Spec,
        node: &str,
        secrets: &dyn Fn(&SecretRef) -> Result<Secret, Failure>,
        reveal: bool,
    ) -> Result<Shown, Failure> {
        let Some(node) = spec.nodes.iter().find(|known| known.name.as_str() == node) else {
            let names: Vec<&str> = spec.nodes.iter().map(|node| node.name.as_str()).collect();
            let why = format!("there is no machine `{node}` in the castle `{}`", spec.name);
            return Err(Failure::new(Class::Invalid, "write a machine config", why)
                .hint(format!("its machines are {}", names.join(", "))));
        };
        let schematic = schematic(spec.platform.extensions())?.id();
        let config = machine_config(spec, node, &self.0, &schematic, secrets)?;
        let text = if reveal { config.text } else { Secret::new(redacted(&config.text, &self.0)) };
        Ok(Shown { text, warnings: config.warnings })
    }
}

fn damaged(error: &KeyError) -> Failure {
    Failure::new(Class::Invalid, "issue a certificate from the Talos secrets", chain(error))
}
