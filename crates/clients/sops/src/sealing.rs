//! Encrypts a tree: with a data key of its own, or with that of the file it was in.

use castle_model::Secret;
use castle_model::time::Moment;

use crate::cipher::{self, DataKey, Nonces};
use crate::keys::Recipients;
use crate::opening::Mac;
use crate::rules::{Rules, Selection};
use crate::sealed::{SOPS, Sealed, metadata_error};
use crate::tree::{Branch, Element, Item, List, Tree, Value};
use crate::walk::{Place, Visitor, walk};
use crate::{Format, SopsError, age_file, limits, scalar};

/// The version of sops whose format we write.
const VERSION: &str = "3.11.0";

/// Seals a tree with a new data key.
///
/// # Errors
/// If there is no recipient, the tree has a key `sops` at the top, or it can not be written in that format.
pub fn seal(
    tree: &Tree,
    format: Format,
    recipients: &Recipients,
    rules: &Rules,
    now: Moment,
    fill: &mut dyn FnMut(&mut [u8]),
) -> Result<String, SopsError> {
    if recipients.is_empty() {
        return Err(SopsError::NoRecipients);
    }
    let key = DataKey::new(fill);
    let text = |text: &str| Value::Text(Secret::new(text));
    let mut keys = Vec::new();
    for recipient in recipients.all() {
        let file = age_file::seal_for(key.expose(), recipient)?;
        let items = vec![
            Item::Entry("recipient".to_owned(), text(&recipient.text)),
            Item::Entry("enc".to_owned(), text(&file)),
        ];
        keys.push(Element::Value(Value::Branch(Branch(items))));
    }
    let mut metadata = vec![
        Item::Entry("age".to_owned(), Value::List(List(keys))),
        Item::Entry("lastmodified".to_owned(), Value::Null),
        Item::Entry("mac".to_owned(), Value::Null),
    ];
    metadata.extend(rules.to_metadata());
    metadata.push(Item::Entry("version".to_owned(), text(VERSION)));
    Sealing { key, nonces: Nonces::default(), rules, format }.seal(
        tree,
        Branch(metadata),
        now,
        fill,
    )
}

/// All that is needed to encrypt a tree.
pub(crate) struct Sealing<'rules> {
    pub(crate) key: DataKey,
    /// Those of the file as it was.
    pub(crate) nonces: Nonces,
    pub(crate) rules: &'rules Rules,
    pub(crate) format: Format,
}

impl Sealing<'_> {
    pub(crate) fn seal(
        &self,
        tree: &Tree,
        mut metadata: Branch,
        now: Moment,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<String, SopsError> {
        if tree.keys().any(|key| key == SOPS) {
            return Err(SopsError::AlreadySealed);
        }
        let mut documents = tree.documents.clone();
        let mut visitor = Closing { sealing: self, mac: Mac::new(self.rules), fill };
        walk(&mut documents, self.rules, &mut visitor)?;
        let mac = visitor.mac.text();
        let now = scalar::time_in_seconds(&now.to_string()).unwrap_or_default();
        let mac = self.key.seal(mac.as_bytes(), "str", &now, &Nonces::default(), fill);
        for item in &mut metadata.0 {
            if let Item::Entry(key, value) = item {
                match key.as_str() {
                    "lastmodified" => *value = Value::Text(Secret::new(now.as_str())),
                    "mac" => *value = Value::Text(Secret::new(mac.as_str())),
                    _ => {}
                }
            }
        }
        for document in &mut documents {
            document.0.push(Item::Entry(SOPS.to_owned(), Value::Branch(metadata.clone())));
        }
        let tree = Tree { documents };
        let text = tree.to_text(self.format)?;
        if text.expose().len() > limits::BYTES {
            return Err(SopsError::TooLarge);
        }
        // What can not be opened again is never given out.
        let opened = Sealed::read(text.expose(), self.format)
            .and_then(|sealed| sealed.open_with(&self.key, None));
        if opened.is_err() {
            let why = "something in it has no form that is read again as the same";
            return Err(SopsError::Unwritable { place: "the tree".to_owned(), why });
        }
        Ok(text.expose().to_owned())
    }
}

struct Closing<'close, 'rules> {
    sealing: &'close Sealing<'rules>,
    mac: Mac,
    fill: &'close mut dyn FnMut(&mut [u8]),
}

impl Visitor for Closing<'_, '_> {
    fn value(
        &mut self,
        value: &mut Value,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError> {
        self.mac.add(value, encrypted);
        if let Some(plain) = scalar::bytes(value).filter(|_| encrypted) {
            let (kind, bound) = (cipher::kind_of(value), place.bound());
            let sealed =
                self.sealing.key.seal(&plain, kind, &bound, &self.sealing.nonces, self.fill);
            *value = Value::Text(Secret::new(sealed));
        }
        Ok(())
    }

    fn comment(
        &mut self,
        text: &mut Secret,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError> {
        if !encrypted {
            return Ok(());
        }
        let plain = text.expose().as_bytes();
        let sealed = self.sealing.key.seal(
            plain,
            "comment",
            &place.bound(),
            &self.sealing.nonces,
            self.fill,
        );
        // sops refuses this too: reading would take the values after it for unencrypted.
        if let Selection::UnencryptedCommentRegex(pattern) = &self.sealing.rules.selection
            && pattern.matches(&sealed)
        {
            return Err(metadata_error(
                "unencrypted_comment_regex",
                "it also matches encrypted comments",
            ));
        }
        *text = Secret::new(sealed);
        Ok(())
    }

    fn lists_comments_as_values(&self) -> bool {
        true
    }
}
