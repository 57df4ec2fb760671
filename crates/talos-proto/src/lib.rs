//! The Talos API as castle speaks it: a hand-written subset of its protocol, for the client and for the rehearsal.
//!
//! Names and field numbers are those of Talos 1.13 and of the COSI runtime it uses; everything that castle
//! does not call is left out, and unknown fields are skipped on reading, as protobuf wants it. Generated code only, but for [`document`].

pub mod document;

/// The health check of a whole cluster.
pub mod cluster {
    #![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated code")]
    tonic::include_proto!("cluster");
}

/// Messages that several services share.
pub mod common {
    #![expect(missing_docs, reason = "generated code")]
    tonic::include_proto!("common");
}

/// The machine service: configuration, bootstrap, etcd, services.
pub mod machine {
    #![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated code")]
    tonic::include_proto!("machine");
}

/// The resource service: what a machine says about itself.
pub mod cosi {
    #![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated code")]
    tonic::include_proto!("cosi.resource");
}

/// The disks of a machine.
pub mod storage {
    #![expect(missing_docs, clippy::pedantic, clippy::allow_attributes, reason = "generated code")]
    tonic::include_proto!("storage");
}
