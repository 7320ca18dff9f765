//! Every ONNX backend node case in a session on the CPU provider, rewrites included; and the page of
//! operators.

use std::path::Path;

use galatea_graph::{Datum, Graph, ONNX_DOMAIN, ops};
use galatea_providers::{by_name, cpu};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_testkit::conformance::{TestedProvider, run_with};
use galatea_testkit::expectations::CPU;
use galatea_testkit::page::{KernelName, operators_page};
use libtest_mimic::Trial;

/// With this variable set, the page is written instead of compared.
const WRITE: &str = "GALATEA_WRITE_OPERATORS";

/// Returns the names of the kernels that compute operators on the CPU provider, in the order of its
/// tables.
fn kernels() -> Vec<KernelName> {
    let rows = cpu::KERNELS.rows();
    let rows = rows.flat_map(|row| row.ops.iter().map(|&name| (row.domain, name, row.name)));
    let views = ops::views().into_iter().map(|name| (ONNX_DOMAIN, name, "*view*"));
    let bodies = ["If", "Loop", "Scan", "SequenceMap"].map(|name| (ONNX_DOMAIN, name, "*bodies*"));
    rows.chain(views).chain(bodies).collect()
}

/// Compares `docs/operators.md` with what the cases and tables say now, or writes it.
fn page(root: &Path) -> Result<(), String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operators.md");
    let page = operators_page(root, &kernels())?;
    if std::env::var_os(WRITE).is_some() {
        return std::fs::write(&file, page).map_err(|error| error.to_string());
    }
    let found = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    // Another release of the package has other cases.
    let release =
        |text: &str| text.split_once("the cases of ").map(|(_, rest)| rest[..12].to_owned());
    if found == page || release(&found) != release(&page) {
        return Ok(());
    }
    let mut lines = page.lines().zip(found.lines());
    let (new, old) = lines.find(|(new, old)| new != old).unwrap_or(("a line more or less", ""));
    Err(format!("`cargo xtask operators` would change the page: '{new}' for '{old}'"))
}

fn run_session(graph: &Graph, inputs: Vec<Datum>) -> Result<Vec<Datum>, String> {
    let provider = by_name(cpu::NAME).ok_or("there is no CPU provider")?;
    let options = SessionOptions { threads: 2, ..SessionOptions::default() };
    let session =
        Session::new(graph.clone(), &[provider], &options).map_err(|error| error.to_string())?;
    let names: Vec<String> = session.inputs().iter().map(|info| info.name.clone()).collect();
    if names.len() != inputs.len() {
        return Err(format!("the model takes {names:?}, {} inputs are given", inputs.len()));
    }
    let bound: Vec<(&str, Datum)> = names.iter().map(String::as_str).zip(inputs).collect();
    session.run(Run::values(&bound)).map(|ran| ran.outputs).map_err(|error| error.to_string())
}

fn main() {
    let provider = TestedProvider {
        name: cpu::NAME,
        expectations: CPU,
        run: Box::new(run_session),
        claims: None,
    };
    run_with(vec![provider], |root| {
        let root = root.to_owned();
        vec![Trial::test("docs/operators.md", move || page(&root).map_err(Into::into))]
    })
    .exit();
}
