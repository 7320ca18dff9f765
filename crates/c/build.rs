//! Names the shared library as programs ask for it when they start: by the version of its interface.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let system = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let argument = match system.as_str() {
        "linux" => "-Wl,-soname,libgalatea.so.1",
        "macos" => "-Wl,-install_name,@rpath/libgalatea.1.dylib",
        _ => return,
    };
    println!("cargo:rustc-cdylib-link-arg={argument}");
}
