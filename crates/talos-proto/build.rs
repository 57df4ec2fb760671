//! Compiles the .proto files to Rust, in Rust: no protoc is needed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let files =
        ["common", "machine", "cosi", "storage", "cluster"].map(|f| format!("proto/{f}.proto"));
    for file in &files {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure()
        // Ordered maps, and no default transport: clients bring their own connector.
        .btree_map(".")
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}
