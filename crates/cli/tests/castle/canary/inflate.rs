//! Unpacks gzip and zlib streams (RFC 1950 to 1952) as far as they go, to look inside. Check sums are not of interest.

/// No stream that castle could write is larger.
const LIMIT: usize = 4 * 1024 * 1024;

const LENGTH_BASE: [usize; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
    163, 195, 227, 258,
];
const DISTANCE_BASE: [usize; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
    2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
const CODE_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// What is in the stream that begins here, up to where it breaks off; none if none begins.
pub(crate) fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let body = match bytes {
        [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] => after_names(*flags, rest)?,
        [0x78, check, rest @ ..] if (0x7800 + u32::from(*check)) % 31 == 0 && check & 0x20 == 0 => {
            rest
        }
        _ => return None,
    };
    let mut stream = Stream { bytes: body, at: 0, out: Vec::new() };
    while stream.block() == Some(false) && stream.out.len() < LIMIT {}
    (!stream.out.is_empty()).then_some(stream.out)
}

/// What comes after the optional parts of gzip's header.
fn after_names(flags: u8, mut rest: &[u8]) -> Option<&[u8]> {
    if flags & 4 != 0 {
        let length = usize::from(*rest.first()?) + 256 * usize::from(*rest.get(1)?);
        rest = rest.get(2 + length..)?;
    }
    for bit in [8, 16] {
        if flags & bit != 0 {
            rest = rest.get(rest.iter().position(|byte| *byte == 0)? + 1..)?;
        }
    }
    if flags & 2 != 0 { rest.get(2..) } else { Some(rest) }
}

/// A stream that is being read, bit by bit.
struct Stream<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
    out: Vec<u8>,
}

impl Stream<'_> {
    fn bits(&mut self, count: usize) -> Option<usize> {
        (0..count).try_fold(0, |sum, place| {
            let bit = (self.bytes.get(self.at / 8)? >> (self.at % 8)) & 1;
            self.at += 1;
            Some(sum | usize::from(bit) << place)
        })
    }

    /// Reads one block, and says whether it was the last. None where the stream breaks off.
    fn block(&mut self) -> Option<bool> {
        let last = self.bits(1)? == 1;
        match self.bits(2)? {
            0 => self.stored()?,
            1 => {
                let lengths: Vec<u8> = (0..288)
                    .map(|n| {
                        [8, 9, 7, 8]
                            [usize::from(n > 143) + usize::from(n > 255) + usize::from(n > 279)]
                    })
                    .collect();
                self.coded(&Code::of(&lengths), &Code::of(&[5; 30]))?;
            }
            2 => {
                let (literals, distances) = self.codes()?;
                self.coded(&literals, &distances)?;
            }
            _ => return None,
        }
        Some(last)
    }

    fn stored(&mut self) -> Option<()> {
        let from = self.at.div_ceil(8);
        let length =
            usize::from(*self.bytes.get(from)?) + 256 * usize::from(*self.bytes.get(from + 1)?);
        let whole = self.bytes.get(from + 4..)?;
        self.out.extend_from_slice(&whole[..length.min(whole.len())]);
        self.at = (from + 4 + length) * 8;
        (length <= whole.len()).then_some(())
    }

    /// The codes of a block that brings its own.
    fn codes(&mut self) -> Option<(Code, Code)> {
        let (literals, distances) = (self.bits(5)? + 257, self.bits(5)? + 1);
        let mut lengths = [0; 19];
        for place in CODE_ORDER.into_iter().take(self.bits(4)? + 4) {
            lengths[place] = u8::try_from(self.bits(3)?).ok()?;
        }
        let code = Code::of(&lengths);
        let mut lengths: Vec<u8> = Vec::new();
        while lengths.len() < literals + distances {
            let (value, count) = match self.symbol(&code)? {
                16 => (*lengths.last()?, self.bits(2)? + 3),
                17 => (0, self.bits(3)? + 3),
                18 => (0, self.bits(7)? + 11),
                length => (u8::try_from(length).ok()?, 1),
            };
            lengths.extend(std::iter::repeat_n(value, count));
        }
        let (literals, distances) = lengths.split_at(literals);
        Some((Code::of(literals), Code::of(distances)))
    }

    fn symbol(&mut self, code: &Code) -> Option<usize> {
        let (mut word, mut first, mut index) = (0, 0, 0);
        for count in &code.counts[1..] {
            word = word * 2 + self.bits(1)?;
            first *= 2;
            if word < first + count {
                return code.symbols.get(index + word - first).copied();
            }
            index += count;
            first += count;
        }
        None
    }

    fn coded(&mut self, literals: &Code, distances: &Code) -> Option<()> {
        while self.out.len() < LIMIT {
            let symbol = self.symbol(literals)?;
            match symbol {
                0..256 => self.out.push(u8::try_from(symbol).ok()?),
                256 => return Some(()),
                _ => {
                    let place = symbol - 257;
                    let extra = if (8..28).contains(&place) { place / 4 - 1 } else { 0 };
                    let length = LENGTH_BASE.get(place)? + self.bits(extra)?;
                    let place = self.symbol(distances)?;
                    let distance =
                        DISTANCE_BASE.get(place)? + self.bits((place / 2).saturating_sub(1))?;
                    let from = self.out.len().checked_sub(distance)?;
                    for at in from..from + length {
                        self.out.push(self.out[at]);
                    }
                }
            }
        }
        None
    }
}

/// A canonical Huffman code.
struct Code {
    /// How many words there are of each length.
    counts: [usize; 16],
    /// Their symbols in order.
    symbols: Vec<usize>,
}

impl Code {
    fn of(lengths: &[u8]) -> Self {
        let mut counts = [0; 16];
        for length in lengths.iter().filter(|length| **length > 0) {
            counts[usize::from(*length)] += 1;
        }
        let mut symbols: Vec<usize> = (0..lengths.len()).filter(|n| lengths[*n] > 0).collect();
        symbols.sort_by_key(|symbol| lengths[*symbol]);
        Self { counts, symbols }
    }
}
