//! Plain age files, armored or not: opened with identities, sealed for recipients.

use std::io::{self, Read as _, Write as _};

use age::armor::{ArmoredReadError, ArmoredReader, ArmoredWriter, Format};
use age::{DecryptError, Decryptor, Encryptor};
use zeroize::Zeroizing;

use crate::error::AgeFault;
use crate::keys::{Identities, Recipient, Recipients};
use crate::{SopsError, limits};

/// How armor begins.
const ARMOR: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";

/// Opens an age file, armored or binary. Nothing is given out unless all of it is right.
///
/// # Errors
/// If it is damaged, or none of the identities fits.
pub fn open_age(file: &[u8], identities: &Identities) -> Result<Zeroizing<Vec<u8>>, SopsError> {
    if file.len() > limits::BYTES {
        return Err(SopsError::TooLarge);
    }
    open(file, identities).map_err(|why| SopsError::AgeFile { why })
}

pub(crate) fn open(file: &[u8], identities: &Identities) -> Result<Zeroizing<Vec<u8>>, AgeFault> {
    // White space may stand around armor; the reader skips only what follows it.
    let armor = file.trim_ascii_start();
    let file = if armor.starts_with(ARMOR) { armor } else { file };
    let decryptor =
        Decryptor::new_buffered(ArmoredReader::new(file)).map_err(|error| fault(&error))?;
    let mut reader = decryptor.decrypt(identities.all()).map_err(|error| fault(&error))?;
    // Never more than the file: no reallocation leaves a copy behind.
    let mut plain = Zeroizing::new(Vec::with_capacity(file.len()));
    reader.read_to_end(&mut plain).map_err(|error| body_fault(&error))?;
    Ok(plain)
}

fn fault(error: &DecryptError) -> AgeFault {
    match error {
        DecryptError::InvalidMac => AgeFault::HeaderMac,
        DecryptError::NoMatchingKeys
        | DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed => AgeFault::NoMatch,
        DecryptError::ExcessiveWork { .. } => AgeFault::Work,
        DecryptError::Io(error) if is_armor(error) => AgeFault::Armor,
        DecryptError::InvalidHeader | DecryptError::Io(_) => AgeFault::Header,
        _ => AgeFault::Format,
    }
}

fn body_fault(error: &io::Error) -> AgeFault {
    if is_armor(error) { AgeFault::Armor } else { AgeFault::Body }
}

fn is_armor(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<ArmoredReadError>()).is_some()
}

/// Seals bytes for recipients, armored.
///
/// # Errors
/// If there is no recipient, or two that age does not let stand beside each other.
pub fn seal_age(plain: &[u8], recipients: &Recipients) -> Result<String, SopsError> {
    let keys = recipients.all().map(|recipient| &*recipient.key as &dyn age::Recipient);
    seal(plain, keys).ok_or(SopsError::NoRecipients)
}

pub(crate) fn seal_for(plain: &[u8], recipient: &Recipient) -> Result<String, SopsError> {
    seal(plain, recipient.once()).ok_or_else(|| SopsError::DataKey {
        recipient: recipient.text.clone(),
        why: "age can not encrypt for it".to_owned(),
    })
}

fn seal<'keys>(
    plain: &[u8],
    keys: impl Iterator<Item = &'keys dyn age::Recipient>,
) -> Option<String> {
    let encryptor = Encryptor::with_recipients(keys).ok()?;
    let mut out = Vec::new();
    let armor = ArmoredWriter::wrap_output(&mut out, Format::AsciiArmor).ok()?;
    let mut writer = encryptor.wrap_output(armor).ok()?;
    writer.write_all(plain).ok()?;
    writer.finish().and_then(ArmoredWriter::finish).ok()?;
    String::from_utf8(out).ok()
}
