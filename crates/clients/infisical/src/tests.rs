//! The traps of the real server, one test each, by number:
//!
//! (1) an expired token is a 403; (2) a refused login must not be repeated; (3) an empty list is not absence; (4) hidden
//! values come as 200; (5) values are trimmed; (6) references are expanded; (7) the same value is a new version; (8) imports;
//! (9) two writers of a new key, and missing folders; (10) names; (11) names of folders; (12) a missing environment looks
//! like a missing folder; (13) approvals; (14) comments and metadata that a write leaves out; (15) old servers; (16) what is
//! tried again.

mod login;
mod patience;
mod reading;
mod server;
mod writing;
