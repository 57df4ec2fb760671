//! What a machine says about itself: its resources, read through COSI.

use castle_model::Secret;
use castle_talos_proto::cosi::{
    EventType, GetRequest, ListRequest, Resource as Message, WatchOptions, WatchRequest,
    WatchResponse,
};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tonic::{Code, Streaming};

use crate::client::{CALL_DEADLINE, Talos};
use crate::error::TalosError;

/// Where a kind of resource is found: namespace and type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The namespace.
    pub namespace: &'static str,
    /// The type.
    pub kind: &'static str,
}

/// The machine's stage.
pub const MACHINE_STATUS: Kind =
    Kind { namespace: "runtime", kind: "MachineStatuses.runtime.talos.dev" };
/// What the firmware says.
pub const SYSTEM_INFORMATION: Kind =
    Kind { namespace: "hardware", kind: "SystemInformations.hardware.talos.dev" };
/// System extensions in the image.
pub const EXTENSIONS: Kind =
    Kind { namespace: "runtime", kind: "ExtensionStatuses.runtime.talos.dev" };
/// Addresses that the machine holds now.
pub const ADDRESSES: Kind = Kind { namespace: "network", kind: "AddressStatuses.net.talos.dev" };
/// Services, each by its name.
pub const SERVICES: Kind = Kind { namespace: "runtime", kind: "Services.v1alpha1.talos.dev" };
/// Machines that the discovery service knows for the cluster, each by the identity on its disk.
pub const AFFILIATES: Kind = Kind { namespace: "cluster", kind: "Affiliates.cluster.talos.dev" };
/// Whether the machine's clock is right.
pub const TIME_STATUS: Kind =
    Kind { namespace: "runtime", kind: "TimeStatuses.v1alpha1.talos.dev" };
/// The config that the machine has; for administrators alone.
pub const MACHINE_CONFIG: Kind =
    Kind { namespace: "config", kind: "MachineConfigs.config.talos.dev" };

/// A resource: its id and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its id.
    pub id: String,
    /// What it says.
    pub spec: Value,
}

/// How far a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MachineStatus {
    /// The stage: `maintenance`, `booting`, `running`, …
    pub stage: String,
    /// Whether it is ready, and what is missing.
    pub status: Readiness,
}

/// Whether a machine is ready. In maintenance and while rebooting it says so too: look at the stage first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// Whether nothing is missing.
    pub ready: bool,
    /// What is missing.
    #[serde(default)]
    pub unmet_conditions: Vec<Unmet>,
}

/// Something that a machine still waits for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Unmet {
    /// Its name: `time`, `network`, `services`, `staticPods`, `nodeReady`.
    pub name: String,
    /// Why not yet.
    pub reason: String,
}

impl MachineStatus {
    /// Whether the machine does not wait for the right time.
    #[must_use]
    pub fn is_in_sync(&self) -> bool {
        self.status.unmet_conditions.iter().all(|unmet| unmet.name != "time")
    }

    /// The stage, and what is missing, in one line.
    #[must_use]
    pub fn words(&self) -> String {
        let unmet: Vec<String> = self
            .status
            .unmet_conditions
            .iter()
            .map(|unmet| format!("{}: {}", unmet.name, unmet.reason))
            .collect();
        if unmet.is_empty() {
            format!("stage {}", self.stage)
        } else {
            format!("stage {} ({})", self.stage, unmet.join("; "))
        }
    }
}

/// A machine as the discovery service knows it. What is left of one that is gone stays there for half an hour.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Affiliate {
    /// The random identity on the machine's disk: a new disk gives a new one.
    pub node_id: String,
    /// Its name.
    #[serde(default)]
    pub hostname: String,
    /// Its addresses.
    #[serde(default)]
    pub addresses: Vec<String>,
}

#[derive(Deserialize)]
struct TimeStatus {
    synced: bool,
}

#[derive(Deserialize)]
struct SystemInformation {
    #[serde(default)]
    uuid: String,
}

#[derive(Deserialize)]
struct ExtensionStatus {
    metadata: ExtensionMetadata,
}

#[derive(Deserialize)]
struct ExtensionMetadata {
    name: String,
}

#[derive(Deserialize)]
struct AddressStatus {
    address: String,
}

impl Talos {
    /// One resource; none if there is no such.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn get(&self, kind: Kind, id: &str) -> Result<Option<Resource>, TalosError> {
        let message = self.message(kind, id).await?;
        message.map(|message| self.resource("Get", message)).transpose()
    }

    async fn message(&self, kind: Kind, id: &str) -> Result<Option<Message>, TalosError> {
        let request = GetRequest {
            namespace: kind.namespace.to_owned(),
            r#type: kind.kind.to_owned(),
            id: id.to_owned(),
        };
        let mut client = self.state();
        match self.call("Get", CALL_DEADLINE, client.get(request)).await {
            Ok(reply) => Ok(reply.resource),
            Err(error) if error.code() == Some(Code::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All resources of a kind, in the machine's order.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn list(&self, kind: Kind) -> Result<Vec<Resource>, TalosError> {
        let request =
            ListRequest { namespace: kind.namespace.to_owned(), r#type: kind.kind.to_owned() };
        let mut client = self.state();
        let mut stream = self.call("List", CALL_DEADLINE, client.list(request)).await?;
        let mut found = Vec::new();
        loop {
            let next = async { stream.message().await.map(tonic::Response::new) };
            match self.call("List", CALL_DEADLINE, next).await? {
                None => return Ok(found),
                Some(reply) => {
                    let message = reply.resource.ok_or_else(|| self.empty("List"))?;
                    found.push(self.resource("List", message)?);
                }
            }
        }
    }

    /// Follows one resource, or all of a kind, beginning with what is there now.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn watch(&self, kind: Kind, id: Option<&str>) -> Result<Watch, TalosError> {
        let request = WatchRequest {
            namespace: kind.namespace.to_owned(),
            r#type: kind.kind.to_owned(),
            id: id.map(str::to_owned),
            // One resource is told at once anyhow; of a kind it must be asked for.
            options: Some(WatchOptions { bootstrap_contents: id.is_none(), tail_events: 0 }),
            api_version: 1,
        };
        let mut client = self.state();
        let stream = self.call("Watch", CALL_DEADLINE, client.watch(request)).await?;
        Ok(Watch { talos: self.clone(), stream })
    }

    /// Tells whenever one resource, or any of a kind, changes, and once of what is there now. It ends when the watch
    /// breaks, and at once where there can be none.
    #[must_use]
    pub fn changes(&self, kind: Kind, id: Option<&'static str>) -> BoxStream<'static, ()> {
        let talos = self.clone();
        stream::once(async move { talos.watch(kind, id).await.ok() })
            .filter_map(std::future::ready)
            .flat_map(|watch| {
                stream::unfold(watch, |mut watch| async move {
                    matches!(watch.told().await, Ok(Some(_))).then_some(((), watch))
                })
            })
            .boxed()
    }

    /// How far the machine is.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn machine_status(&self) -> Result<MachineStatus, TalosError> {
        let found = self.get(MACHINE_STATUS, "machine").await?;
        self.read("MachineStatus", found.ok_or_else(|| self.empty("MachineStatus"))?.spec)
    }

    /// The SMBIOS UUID in lower case, by which a machine is known as a certain VM; none if the firmware gives none.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn smbios_uuid(&self) -> Result<Option<String>, TalosError> {
        let Some(found) = self.get(SYSTEM_INFORMATION, "systeminformation").await? else {
            return Ok(None);
        };
        let information: SystemInformation = self.read("SystemInformation", found.spec)?;
        let uuid = information.uuid.to_ascii_lowercase();
        Ok((!uuid.is_empty()).then_some(uuid))
    }

    /// The names of the system extensions in the running image, sorted, such as `iscsi-tools`.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn extensions(&self) -> Result<Vec<String>, TalosError> {
        let mut names = Vec::new();
        for found in self.list(EXTENSIONS).await? {
            let status: ExtensionStatus = self.read("ExtensionStatus", found.spec)?;
            names.push(status.metadata.name);
        }
        names.sort();
        Ok(names)
    }

    /// The addresses that the machine holds now, with their prefix, such as `192.168.1.210/32`.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn addresses(&self) -> Result<Vec<String>, TalosError> {
        let mut addresses = Vec::new();
        for found in self.list(ADDRESSES).await? {
            let status: AddressStatus = self.read("AddressStatus", found.spec)?;
            addresses.push(status.address);
        }
        Ok(addresses)
    }

    /// The machines that the discovery service knows for this cluster, as this machine hears of them.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn affiliates(&self) -> Result<Vec<Affiliate>, TalosError> {
        let found = self.list(AFFILIATES).await?;
        found.into_iter().map(|found| self.read("Affiliate", found.spec)).collect()
    }

    /// Whether the machine's clock is right; none if it does not say.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn time_in_sync(&self) -> Result<Option<bool>, TalosError> {
        let Some(found) = self.get(TIME_STATUS, "node").await? else { return Ok(None) };
        let status: TimeStatus = self.read("TimeStatus", found.spec)?;
        Ok(Some(status.synced))
    }

    /// The config that the machine has, as it was sent; none if it has none.
    ///
    /// # Errors
    /// If the call fails, or we are not its administrator.
    pub async fn config(&self) -> Result<Option<Secret>, TalosError> {
        let Some(message) = self.message(MACHINE_CONFIG, "v1alpha1").await? else {
            return Ok(None);
        };
        let text = message.spec.map(|spec| spec.yaml_spec).unwrap_or_default();
        // The config is a text within YAML; some encoders put it there as it is.
        let quoted = yaml_serde::from_str::<String>(&text);
        Ok(Some(Secret::new(quoted.unwrap_or(text))))
    }

    fn resource(&self, call: &'static str, message: Message) -> Result<Resource, TalosError> {
        let id = message.metadata.map(|metadata| metadata.id).unwrap_or_default();
        let text = message.spec.map(|spec| spec.yaml_spec).unwrap_or_default();
        let spec = yaml_serde::from_str(&text).map_err(|error| self.shape(call, &error))?;
        Ok(Resource { id, spec })
    }

    fn read<T: DeserializeOwned>(&self, call: &'static str, spec: Value) -> Result<T, TalosError> {
        serde_json::from_value(spec).map_err(|error| self.shape(call, &error))
    }

    fn shape(&self, call: &'static str, problem: &dyn std::error::Error) -> TalosError {
        TalosError::Shape { address: self.address, call, problem: problem.to_string() }
    }
}

/// Resources being followed.
pub struct Watch {
    talos: Talos,
    stream: Streaming<WatchResponse>,
}

/// Something that was told of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// It is there, and says this.
    Says(Resource),
    /// It is gone.
    Gone,
}

impl Watch {
    /// Waits for the next thing that is told; none when the machine ends the watch. There is no deadline here: the
    /// caller sets it.
    ///
    /// # Errors
    /// If the watch breaks.
    pub async fn told(&mut self) -> Result<Option<Told>, TalosError> {
        loop {
            let reply = self.stream.message().await;
            let reply = reply.map_err(|status| self.talos.refused("Watch", &status))?;
            let Some(reply) = reply else { return Ok(None) };
            // Events of one answer happened together: the last one is how things are.
            for event in reply.event.into_iter().rev() {
                match event.event_type() {
                    EventType::Destroyed => return Ok(Some(Told::Gone)),
                    EventType::Created | EventType::Updated => {
                        let message = event.resource.ok_or_else(|| self.talos.empty("Watch"))?;
                        let resource = self.talos.resource("Watch", message)?;
                        return Ok(Some(Told::Says(resource)));
                    }
                    EventType::Errored => {
                        let problem = event.error.unwrap_or_else(|| "the watch broke".to_owned());
                        let address = self.talos.address;
                        return Err(TalosError::Broken { address, words: problem });
                    }
                    EventType::Bootstrapped | EventType::Noop => {}
                }
            }
        }
    }
}
