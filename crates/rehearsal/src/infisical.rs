//! The emulated infisical. (Being built.)
