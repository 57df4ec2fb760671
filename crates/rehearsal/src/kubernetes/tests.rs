//! The emulated API, call by call.
