//! Where the body of a request ends.

/// The longest line of a chunk's size, and the longest trailers, that are read.
const LINE_MAX: usize = 4096;
const TRAILERS_MAX: usize = 16 * 1024;
/// More digits make no size.
const DIGITS_MAX: usize = 16;

/// A body that is being read.
#[derive(Debug)]
pub(super) enum Body {
    /// So many bytes are still to come.
    Length(u64),
    /// It comes in chunks.
    Chunked(Chunks),
}

/// What was made of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fed {
    /// How many of them are the body's.
    pub(super) taken: usize,
    /// Whether it ends with them.
    pub(super) over: bool,
    /// Why what follows is none of a body, if it is none.
    pub(super) broken: Option<&'static str>,
}

impl Body {
    /// The one of a request that says so; none if there is nothing to come.
    pub(super) fn announced(chunked: bool, length: u64) -> Option<Self> {
        match (chunked, length) {
            (true, _) => Some(Self::Chunked(Chunks::default())),
            (false, 0) => None,
            (false, length) => Some(Self::Length(length)),
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Fed {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).map_or(bytes.len(), |l| l.min(bytes.len()));
                *left -= taken as u64;
                Fed { taken, over: *left == 0, broken: None }
            }
            Self::Chunked(chunks) => chunks.feed(bytes),
        }
    }
}

/// Where in its chunks a body is.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    at: At,
    /// What came of a line.
    line: Vec<u8>,
    /// How much of a chunk is still to come, and of what trailers may be.
    size: u64,
    trailers: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the line that tells the size of a chunk.
    #[default]
    Size,
    Data,
    /// Behind a chunk.
    Return,
    Newline,
    /// In the lines behind the last chunk.
    Trailers,
    Over,
}

impl Chunks {
    fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken).copied() {
            if self.at == At::Data {
                let rest = bytes.len() - taken;
                let data = usize::try_from(self.size).map_or(rest, |size| size.min(rest));
                taken += data;
                self.size -= data as u64;
                if self.size == 0 {
                    self.at = At::Return;
                }
                continue;
            }
            match self.step(byte) {
                Ok(at) => self.at = at,
                Err(why) => return Fed { taken, over: false, broken: Some(why) },
            }
            taken += 1;
            if self.at == At::Over {
                return Fed { taken, over: true, broken: None };
            }
        }
        Fed { taken, over: false, broken: None }
    }

    /// Where a byte leads; or why it has no place there, in the words of Go's reader.
    fn step(&mut self, byte: u8) -> Result<At, &'static str> {
        match self.at {
            At::Size | At::Trailers => {
                self.line.push(byte);
                if self.line.len() > LINE_MAX {
                    return Err("http chunk length too large");
                }
                if byte != b'\n' {
                    return Ok(self.at);
                }
                let line = std::mem::take(&mut self.line);
                if self.at == At::Size { self.sized(&line) } else { self.trailed(&line) }
            }
            At::Return if byte == b'\r' => Ok(At::Newline),
            At::Newline if byte == b'\n' => Ok(At::Size),
            At::Return | At::Newline | At::Data | At::Over => Err("malformed chunked encoding"),
        }
    }

    fn sized(&mut self, line: &[u8]) -> Result<At, &'static str> {
        let line = ended(line)?.trim_ascii_end();
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        if digits.is_empty() {
            return Err("empty hex number for chunk length");
        }
        self.size = 0;
        for (place, byte) in digits.iter().enumerate() {
            let digit = char::from(*byte).to_digit(16).ok_or("invalid byte in chunk length")?;
            if place == DIGITS_MAX {
                return Err("http chunk length too large");
            }
            self.size = self.size << 4 | u64::from(digit);
        }
        Ok(if self.size == 0 { At::Trailers } else { At::Data })
    }

    fn trailed(&mut self, line: &[u8]) -> Result<At, &'static str> {
        self.trailers += line.len();
        match ended(line)? {
            [] => Ok(At::Over),
            _ if self.trailers > TRAILERS_MAX => {
                Err("http: suspiciously long trailer after chunked body")
            }
            _ => Ok(At::Trailers),
        }
    }
}

/// A line without its end, which has to be whole.
fn ended(line: &[u8]) -> Result<&[u8], &'static str> {
    let bare = line.strip_suffix(b"\r\n").ok_or("chunked line ends with bare LF")?;
    if bare.contains(&b'\r') { Err("invalid CR in chunked line") } else { Ok(bare) }
}
