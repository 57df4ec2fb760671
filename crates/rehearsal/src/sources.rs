//! The emulated sources. (Being built.)
