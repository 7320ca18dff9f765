//! HTTP/2 on the running server: what RFC 9113 and RFC 7541 demand of a server, one requirement after another.
//!
//! The list is `docs/http2.md`, which a test holds against the tables here. `GALATEA_WRITE_DOCS=1` writes it.

mod connections;
mod fields;
mod frames;
mod headers;
mod streams;
mod windows;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use frames::Http2Client;

use crate::start;

/// One requirement, and how the server is asked for it.
pub(crate) struct WireRequirement {
    /// Section of RFC 9113, or of RFC 7541 behind its number.
    section: &'static str,
    /// Answer that the server owes.
    text: &'static str,
    /// Asks the server over a connection that both sides have opened.
    check: fn(&mut Http2Client),
}

/// All requirements in the order of the page.
fn requirements() -> impl Iterator<Item = &'static WireRequirement> {
    [
        connections::ROWS,
        streams::ROWS,
        windows::ROWS,
        headers::ROWS,
        headers::MALFORMED,
        fields::ROWS,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn every_requirement_of_http2_and_hpack_is_met() {
    let fixture = start(&[]);
    let address = fixture.server.addresses().grpc.unwrap();
    let mut failed = Vec::new();
    for WireRequirement { section, text, check } in requirements() {
        let mut client = Http2Client::open(address, &[]);
        if catch_unwind(AssertUnwindSafe(|| check(&mut client))).is_err() {
            failed.push(format!("{section}: {text}"));
        }
    }
    assert!(failed.is_empty(), "not met:\n{}", failed.join("\n"));
    assert!(fixture.stop());
}

#[test]
fn the_page_lists_the_requirements() {
    const MARK: &str = "<!-- requirements -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http2.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, found) = page.split_once(MARK).unwrap();
    let mut table = "\n| section | requirement | result |\n|---|---|---|\n".to_owned();
    for WireRequirement { section, text, .. } in requirements() {
        table.push_str(&format!("| {section} | {text} | met |\n"));
    }
    if std::env::var_os("GALATEA_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{head}{MARK}{table}")).unwrap();
        return;
    }
    assert_eq!(found, table, "the page is old; GALATEA_WRITE_DOCS=1 writes it");
}
