//! The page `docs/operators.md`: every operator, who computes it, and how many of ONNX's cases pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use galatea_formats::onnx::proto::ModelProto;
use galatea_graph::ops::blocked::BLOCKED_DOMAIN;
use galatea_graph::{GALATEA_DOMAIN, ML_DOMAIN, ONNX_DOMAIN, ops};
use prost::Message;

use crate::conformance::operators;
use crate::expectations::{CPU, CaseExpectations, OPERATORS, REFERENCE};

/// The domain of ONNX Runtime's operators.
const MICROSOFT_DOMAIN: &str = "com.microsoft";

/// Finds the kernel of an operator on the `cpu` provider: domain, operator, and the kernel's name.
pub type KernelName = (&'static str, &'static str, &'static str);

/// The cases of one version of ONNX's operators, and how many of them pass.
#[derive(Clone, Copy, Debug, Default)]
struct VersionCount {
    /// Number of cases of one node, of a few nodes, written by PyTorch, light.
    kinds: [usize; 4],
    reference: usize,
    cpu: usize,
}

/// The headings of [`VersionCount::kinds`].
const KINDS: [&str; 4] = ["node", "simple", "PyTorch", "light"];
/// The kind of the networks that `python/tests/test_light.py` runs.
const LIGHT: usize = 3;

impl VersionCount {
    fn cells(self) -> String {
        let all: usize = self.kinds.iter().sum();
        let of = |passed: usize, all: usize| match all {
            0 => "–".to_owned(),
            all if passed == all => format!("all {all}"),
            all => format!("{passed} of {all}"),
        };
        let kinds: Vec<String> = self.kinds.iter().map(usize::to_string).collect();
        let reference = of(self.reference, all - self.kinds[LIGHT]);
        format!("{} | {reference} | {}", kinds.join(" | "), of(self.cpu, all))
    }

    fn add(&mut self, other: Self) {
        for (sum, kind) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += kind;
        }
        self.reference += other.reference;
        self.cpu += other.cpu;
    }
}

/// The text of the page, from the cases in a folder that `python/onnx_node_cases.py` has filled.
///
/// # Errors
/// When the folder cannot be read.
pub fn operators_page(root: &Path, kernels: &[KernelName]) -> Result<String, String> {
    let read = |name: &str| {
        let file = root.join(name);
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let version = read("VERSION")?;
    let light = read("LIGHT")?;
    let mut page = format!(
        "# Operators\n\n`cargo xtask operators` writes this page from the tables of operators and \
         kernels, the cases of {} and the files in `crates/testkit/expectations`.\n\n",
        version.trim()
    );
    conformance(&mut page, &cases(root)?, &light)?;
    exceptions(&mut page)?;
    let schemas = versions(&read("SCHEMAS")?);
    let domains = [
        (ONNX_DOMAIN, "ONNX"),
        (ML_DOMAIN, "ai.onnx.ml"),
        (MICROSOFT_DOMAIN, "com.microsoft"),
        (BLOCKED_DOMAIN, "com.microsoft.nchwc: images with channels in blocks"),
        (GALATEA_DOMAIN, "ai.galatea: made by rewriting and for language models"),
    ];
    page.push_str(
        "## Operators\n\nThe `reference` evaluation computes all of them. Where `cpu` has no kernel \
         of its own for a node, the reference evaluation runs there too; a *view* costs nothing, \
         and *bodies* are compiled like graphs.\n\nONNX Runtime's optimiser writes operators of \
         `com.microsoft.nchwc` into models that it saves at its highest level. Such a file does not \
         tell how many channels a block has. Galatea takes what ONNX Runtime has on the same \
         processor: 16 with AVX-512 and on ARM, 8 elsewhere. A model whose weights do not fill \
         blocks of 16 has blocks of 8. Those with constant weights become \
         operators of ONNX and run on their kernels.\n\nWhere ONNX Runtime's results depend on the \
         processor, Galatea has one on all. In a cast to an integer a NaN becomes 0. A number that 32 \
         bits (64 for types of 64) cannot hold becomes their end before it is narrowed. ONNX Runtime \
         has it so on ARM. A maximum or minimum with a NaN among its elements is NaN.\n\n",
    );
    for (domain, title) in domains {
        domain_table(&mut page, domain, title, &schemas, kernels);
    }
    Ok(page)
}

/// The number of the version of ONNX's operators that a case's model imports, by its name.
fn cases(root: &Path) -> Result<Vec<(String, Option<i64>, bool)>, String> {
    let failed =
        |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root).map_err(|error| failed(root, &error))? {
        let file = entry.map_err(|error| failed(root, &error))?.path().join("model.onnx");
        let Ok(bytes) = std::fs::read(&file) else { continue };
        let model = ModelProto::decode(Bytes::from(bytes)).map_err(|e| failed(&file, &e))?;
        let imports = model.opset_import.iter();
        let onnx = imports.filter(|import| matches!(import.domain.as_str(), "" | "ai.onnx"));
        let mut found = BTreeSet::new();
        let mut nodes = 0;
        if let Some(graph) = &model.graph {
            operators(graph, &mut found, &mut nodes);
        }
        let is_known = |(domain, name): &(String, String)| ops::find(domain, name, None).is_some();
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
        let name = folder.to_string_lossy().into_owned();
        all.push((name, onnx.map(|import| import.version).max(), found.iter().all(is_known)));
    }
    Ok(all)
}

fn conformance(
    page: &mut String,
    cases: &[(String, Option<i64>, bool)],
    light: &str,
) -> Result<(), String> {
    let reference = CaseExpectations::parse(REFERENCE)?;
    let cpu = CaseExpectations::parse(CPU)?;
    let mut counts: BTreeMap<Option<i64>, VersionCount> = BTreeMap::new();
    let mut machine = 0;
    let mut contrib = 0;
    for (name, opset, known) in cases {
        if let Some(rest) = name.strip_prefix("contrib_") {
            *if rest.starts_with("ml_") { &mut machine } else { &mut contrib } += 1;
            continue;
        }
        let kinds = ["test_simple_", "test_pytorch-"].map(|start| name.starts_with(start));
        let kind = kinds.iter().position(|&is| is).map_or(0, |at| at + 1);
        let count = counts.entry(*opset).or_default();
        count.kinds[kind] += 1;
        count.reference += usize::from(*known && !reference.fails(name));
        count.cpu += usize::from(*known && !cpu.fails(name));
    }
    for line in light.lines() {
        let count = counts.entry(line.trim().parse().ok()).or_default();
        count.kinds[LIGHT] += 1;
        count.cpu += 1;
    }
    page.push_str(
        "## Conformance\n\nCases by the version of ONNX's operators that they import, and how many \
         pass. The light networks run on `cpu` alone.\n\n",
    );
    let _ = writeln!(page, "| opset | {} | `reference` | `cpu` |", KINDS.join(" | "));
    page.push_str("|---|---|---|---|---|---|---|\n");
    let mut sum = VersionCount::default();
    for (opset, count) in &counts {
        sum.add(*count);
        let opset = opset.map_or_else(|| "none".to_owned(), |opset| opset.to_string());
        let _ = writeln!(page, "| {opset} | {} |", count.cells());
    }
    let _ = writeln!(page, "| all | {} |\n", sum.cells());
    let _ = writeln!(
        page,
        "Further cases, which ONNX Runtime computes, pass on both: {contrib} of com.microsoft and \
         {machine} of ai.onnx.ml.\n"
    );
    Ok(())
}

/// Known failures, loose comparisons and versions without a definition, with their reasons.
fn exceptions(page: &mut String) -> Result<(), String> {
    let lines = |text: &'static str| {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(": ")).collect::<BTreeSet<_>>()
    };
    let reference = lines(REFERENCE);
    let cpu = lines(CPU);
    page.push_str(
        "## Exceptions\n\nA case fails only where it is listed here or needs an operator without a \
         definition. `[within N]` and `[shapes]` say that it passes, compared less strictly than \
         others.\n\n| case | provider | why |\n\
         |---|---|---|\n",
    );
    for line in reference.union(&cpu) {
        let provider = match (reference.contains(line), cpu.contains(line)) {
            (true, true) => "both",
            (true, false) => "`reference`",
            _ => "`cpu`",
        };
        let _ = writeln!(page, "| `{}` | {provider} | {} |", line.0, line.1);
    }
    page.push_str(
        "\nOperators without a definition:\n\n| operator and version | why |\n|---|---|\n",
    );
    for (name, why) in lines(OPERATORS) {
        let _ = writeln!(page, "| `{name}` | {why} |");
    }
    page.push('\n');
    Ok(())
}

/// The versions of each operator of the package.
fn versions(schemas: &str) -> BTreeMap<(String, String), BTreeSet<i64>> {
    let mut all: BTreeMap<_, BTreeSet<i64>> = BTreeMap::new();
    for line in schemas.lines() {
        let mut fields = line.split('\t').map(str::to_owned);
        if let (Some(domain), Some(name), Some(since)) =
            (fields.next(), fields.next(), fields.next())
        {
            all.entry((domain, name)).or_default().extend(since.parse::<i64>().ok());
        }
    }
    all
}

fn domain_table(
    page: &mut String,
    domain: &str,
    title: &str,
    schemas: &BTreeMap<(String, String), BTreeSet<i64>>,
    kernels: &[KernelName],
) {
    let mut names: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for def in ops::all().filter(|def| def.domain == domain) {
        names.entry(def.name).or_default().insert(def.since);
    }
    let _ = writeln!(page, "### {title} ({})\n", names.len());
    page.push_str("| operator | versions | `cpu` |\n|---|---|---|\n");
    for (name, own) in names {
        let stated = schemas.get(&(domain.to_owned(), name.to_owned())).unwrap_or(&own);
        let has = |since: &&i64| ops::find(domain, name, Some(**since)).is_some();
        let versions: Vec<String> = stated.iter().filter(has).map(i64::to_string).collect();
        let mut used: Vec<&str> = Vec::new();
        for (_, _, kernel) in kernels.iter().filter(|row| (row.0, row.1) == (domain, name)) {
            if !used.contains(kernel) {
                used.push(kernel);
            }
        }
        let _ = writeln!(page, "| {name} | {} | {} |", versions.join(", "), used.join(", "));
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_say_all_or_how_many() {
        let some = VersionCount { kinds: [3, 1, 0, 2], reference: 4, cpu: 5 };
        assert_eq!(some.cells(), "3 | 1 | 0 | 2 | all 4 | 5 of 6");
        let light = VersionCount { kinds: [0, 0, 0, 1], reference: 0, cpu: 1 };
        assert_eq!(light.cells(), "0 | 0 | 0 | 1 | – | all 1");
    }

    #[test]
    fn an_operator_has_its_versions_and_kernels() {
        let schemas = versions("\tRelu\t1\t1\n\tRelu\t6\t1\n");
        let mut page = String::new();
        let kernels = [("", "Relu", "unary-f32"), ("ai.galatea", "Relu", "other")];
        domain_table(&mut page, "", "ONNX", &schemas, &kernels);
        assert!(page.contains("| Relu | 1, 6 | unary-f32 |"), "{page}");
    }
}
