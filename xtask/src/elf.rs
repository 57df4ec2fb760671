//! Reads just enough of an ELF file to tell whether it needs anything from the machine it runs on.

use anyhow::{Result, bail};

const INTERPRETER: u32 = 3;

/// Whether the program is fully static: it names no dynamic loader, so nothing is loaded beside it.
pub(crate) fn is_static(file: &[u8]) -> Result<bool> {
    if file.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        bail!("not a 64-bit little-endian ELF file");
    }
    let start = usize::try_from(u64::from_le_bytes(field(file, 32)?))?;
    let size = usize::from(u16::from_le_bytes(field(file, 54)?));
    let count = usize::from(u16::from_le_bytes(field(file, 56)?));
    for index in 0..count {
        if u32::from_le_bytes(field(file, start + index * size)?) == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

fn field<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N]> {
    match file.get(at..at + N) {
        Some(bytes) => Ok(bytes.try_into()?),
        None => bail!("the ELF file ends at {} bytes, before a field at {at}", file.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(kinds: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * kinds.len()];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        (file[32], file[54], file[56]) = (64, 56, u8::try_from(kinds.len()).unwrap());
        for (index, kind) in kinds.iter().enumerate() {
            file[64 + 56 * index] = *kind;
        }
        file
    }

    #[test]
    fn a_loader_makes_it_dynamic() {
        assert!(is_static(&program(&[1, 1, 2])).unwrap());
        assert!(!is_static(&program(&[6, 3, 1])).unwrap());
    }

    #[test]
    fn anything_else_is_an_error() {
        assert!(is_static(b"#!/bin/sh").is_err());
        assert!(is_static(&program(&[1])[..64]).is_err());
    }
}
