//! What a grammar of the castle file is made of; the one table of it is in `table`.

use crate::suggest::one_of;

mod downloads;
mod layers;
mod machine;
mod platform;
mod secrets;
mod story;
mod table;

pub(crate) use story::STORY;
pub(crate) use table::CASTLE;

/// What an attribute takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text that is not empty.
    Text,
    /// A DNS label of RFC 1123.
    Label,
    /// A name as Proxmox takes it for nodes, storages and bridges.
    Word,
    /// A whole number between two bounds, both included.
    Integer(i64, i64),
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Three numbers with dots.
    Version,
    /// An IPv4 address.
    Address,
    /// An IPv4 network in CIDR form.
    Subnet,
    /// Two addresses with a hyphen.
    AddressRange,
    /// Two VM ids with a hyphen.
    VmIds,
    /// A number of MiB, GiB or TiB.
    Size,
    /// Hours, minutes and seconds.
    Duration,
    /// An https address of a server, without a path.
    Server,
    /// An https address of a repository.
    Repository,
    /// An absolute folder in the secret source.
    VaultPath,
    /// A relative folder in a repository.
    RepositoryPath,
    /// A relative path in the project folder.
    ProjectPath,
    /// PEM certificates.
    Certificates,
    /// The SHA-256 fingerprint of a certificate.
    Fingerprint,
    /// A reference to a secret.
    Secret,
    /// A list of keys of the secret source.
    KeyList,
    /// A list of recipients of age.
    RecipientList,
    /// A list of names of Talos system extensions.
    ExtensionList,
    /// A list of host names or addresses.
    HostList,
    /// A list of addresses.
    AddressList,
    /// A list of names of layers.
    LayerList,
    /// A list of UUIDs of machines.
    UuidList,
    /// A list of addresses of registries, http or https.
    MirrorList,
    /// A list of names of kernel modules.
    ModuleList,
    /// The path of a disk.
    Device,
    /// Text of several lines.
    Lines,
    /// An object whose values are text, numbers or booleans.
    TextMap,
    /// Processor time as Kubernetes writes it.
    Cpu,
    /// Memory as Kubernetes writes it.
    Memory,
    /// An absolute folder of a machine that Talos lets be written.
    NodePath,
    /// An https or file address of a manifest.
    ManifestUrl,
    /// The https or file address of a folder.
    MirrorUrl,
    /// A SHA-256 in hexadecimal.
    Sha256,
    /// A list of names of Kubernetes objects.
    NameList,
    /// A list of texts; a whole number is taken for its text.
    TextList,
}

/// Whether an attribute must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It must.
    Required,
    /// It may, and means nothing if not.
    Optional,
    /// If not, it is as if this HCL were written.
    Default(&'static str),
    /// If not, it follows from other settings, in this way.
    Derived(&'static str),
}

/// One attribute.
#[derive(Debug)]
pub(crate) struct Attribute {
    /// Its key.
    pub(crate) key: &'static str,
    /// The variant of its block that it belongs to, or the platform of its castle; none if it stands in all of them.
    pub(crate) variant: Option<&'static str>,
    /// What it takes.
    pub(crate) kind: Kind,
    /// Whether it must be given.
    pub(crate) presence: Presence,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// A value, as HCL.
    pub(crate) example: &'static str,
}

/// What follows the keyword of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Label {
    /// Nothing.
    None,
    /// A name that the user chooses.
    Name(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// How often a block may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// Exactly once (for each label that is listed).
    Once,
    /// Once or not at all (for each label that is listed).
    AtMostOnce,
    /// Once or more; their order has a meaning.
    Several,
    /// Any number of times; those with names have different ones.
    Any,
    /// The same, and nobody else judges whether the names differ.
    PerName,
}

/// What a key means in a block, given its variant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning {
    /// This attribute.
    Attribute(&'static Attribute),
    /// An attribute of this other variant.
    Elsewhere(&'static str),
    /// One of several attributes; which one, only the variant could tell, and it is not known.
    Unsure,
    /// Nothing.
    Unknown,
}

/// One block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Its keyword.
    pub(crate) keyword: &'static str,
    /// What follows the keyword.
    pub(crate) label: Label,
    /// How often it may stand.
    pub(crate) times: Times,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// Its attributes.
    pub(crate) attributes: &'static [Attribute],
    /// What any other attribute takes, where the keys are not fixed.
    pub(crate) open: Option<Kind>,
    /// The blocks inside.
    pub(crate) blocks: &'static [Self],
}

impl Kind {
    /// What it takes, for a sentence: "expected …".
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Label => "a name of a-z, 0-9 and `-`".into(),
            Self::Word => "a name of letters, digits, `-`, `_` and `.`".into(),
            Self::Integer(low, high) => format!("a whole number from {low} to {high}"),
            Self::Boolean => "`true` or `false`".into(),
            Self::Choice(words) => one_of(words.iter().copied()),
            Self::Version => "a version of three numbers".into(),
            Self::Address => "an IPv4 address".into(),
            Self::Subnet => "an IPv4 network with its prefix length".into(),
            Self::AddressRange => "two IPv4 addresses with `-` between them".into(),
            Self::VmIds => "two VM ids with `-` between them".into(),
            Self::Size => "a size in MiB, GiB or TiB".into(),
            Self::Duration => "a length of time in h, m and s".into(),
            Self::Server => "the https address of a server".into(),
            Self::Repository => "the https address of a repository".into(),
            Self::VaultPath => "a path that begins with `/`".into(),
            Self::RepositoryPath => "a path inside of the repository".into(),
            Self::ProjectPath => "a path inside of the project folder".into(),
            Self::Certificates => "a certificate in PEM form".into(),
            Self::Fingerprint => "a SHA-256 fingerprint (32 bytes in hexadecimal)".into(),
            Self::Secret => "a secret: secret(\"KEY\")".into(),
            Self::KeyList => "a list of keys of the secret source".into(),
            Self::RecipientList => "a list of recipients of age".into(),
            Self::ExtensionList => "a list of Talos extensions".into(),
            Self::HostList => "a list of host names or addresses".into(),
            Self::AddressList => "a list of IPv4 addresses".into(),
            Self::LayerList => "a list of names of layers".into(),
            Self::UuidList => "a list of UUIDs".into(),
            Self::MirrorList => "a list of http or https addresses".into(),
            Self::ModuleList => "a list of kernel modules".into(),
            Self::Device => "the path of a disk".into(),
            Self::Lines => "text of one or more lines".into(),
            Self::TextMap => "an object of texts".into(),
            Self::Cpu => "processor time in cores, such as 1, 0.5 or 500m".into(),
            Self::Memory => "memory in Ki, Mi or Gi".into(),
            Self::NodePath => "a folder below `/var`".into(),
            Self::ManifestUrl => "the https or file address of a manifest".into(),
            Self::MirrorUrl => "the https or file address of a folder".into(),
            Self::Sha256 => "a SHA-256 (64 hexadecimal digits)".into(),
            Self::NameList => "a list of names of objects".into(),
            Self::TextList => "a list of texts".into(),
        }
    }
}

impl Attribute {
    /// The same attribute, for one variant.
    const fn only(self, variant: &'static str) -> Self {
        Self { variant: Some(variant), ..self }
    }

    /// Whether it may stand in this variant; where that is not known, it may.
    pub(crate) fn fits(&self, variant: Option<&str>) -> bool {
        self.variant.is_none() || variant.is_none() || self.variant == variant
    }
}

impl Block {
    /// Whether its label decides what may stand in it.
    pub(crate) fn varies_by_label(&self) -> bool {
        let Label::OneOf(words) = self.label else { return false };
        self.attributes.iter().any(|a| a.variant.is_some_and(|variant| words.contains(&variant)))
    }

    /// The attribute of this key, whatever the variant.
    pub(crate) fn attribute(&self, key: &str) -> Option<&'static Attribute> {
        self.attributes.iter().find(|a| a.key == key)
    }

    /// What a key means in this variant.
    pub(crate) fn meaning(&self, key: &str, variant: Option<&str>) -> Meaning {
        let named = || self.attributes.iter().filter(|a| a.key == key);
        match (named().filter(|a| a.fits(variant)).collect::<Vec<_>>().as_slice(), named().next()) {
            ([one], _) => Meaning::Attribute(one),
            ([_, _, ..], _) => Meaning::Unsure,
            ([], Some(other)) => Meaning::Elsewhere(other.variant.unwrap_or_default()),
            ([], None) => Meaning::Unknown,
        }
    }

    /// The block of this keyword inside.
    pub(crate) fn block(&self, keyword: &str) -> Option<&'static Self> {
        self.blocks.iter().find(|b| b.keyword == keyword)
    }

    /// Whether a word has a meaning in this block or in one inside.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.keyword == word
            || self.attribute(word).is_some()
            || self.blocks.iter().any(|inner| inner.knows(word))
    }

    /// Every word that may begin a line in this variant of the block.
    pub(crate) fn words(&self, variant: Option<&str>) -> Vec<&'static str> {
        let attributes = self.attributes.iter().filter(|a| a.fits(variant)).map(|a| a.key);
        let mut words: Vec<_> = attributes.chain(self.blocks.iter().map(|b| b.keyword)).collect();
        words.dedup();
        words
    }

    /// How the block begins, with an example label.
    pub(crate) fn opening(&self) -> String {
        match self.label {
            Label::None => self.keyword.to_owned(),
            Label::Name(example) => format!("{} \"{example}\"", self.keyword),
            Label::OneOf(words) => format!("{} \"{}\"", self.keyword, words[0]),
        }
    }
}
