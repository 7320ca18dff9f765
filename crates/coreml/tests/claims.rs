//! Claims of the provider `coreml` for a Neural Engine, and the partitions that follow.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use galatea_coreml::{CoreMlProvider, NeuralEngine};
use galatea_graph::{
    AttributeValue, Attributes, Fact, Graph, ONNX_DOMAIN, ValueId, infer, rewrite,
};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::partition::{live_bytes, partition};
use galatea_runtime::{ClaimRequest, ExecutionProvider, OptimiseLevel, ProviderClaims, sized};
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::exported::file;

/// A graph in the making, whose nodes follow each other.
struct Chain {
    graph: Graph,
    at: ValueId,
}

impl Chain {
    fn new(dtype: DataType, shape: &[usize]) -> Self {
        let mut graph = Graph::new("chain");
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
        let at = graph.value_named("x");
        graph.value_mut(at).declared = Some(Fact::fixed(dtype, shape));
        graph.inputs.push(at);
        Self { graph, at }
    }

    /// A node on what was last, and constants.
    fn then(mut self, operator: &str, attributes: Attributes, constants: &[Tensor]) -> Self {
        let count = self.graph.nodes.len();
        let mut inputs = vec![Some(self.at)];
        for (index, tensor) in constants.iter().enumerate() {
            let id = self.graph.value_named(&format!("c{count}_{index}"));
            self.graph.value_mut(id).initializer = Some(tensor.clone());
            inputs.push(Some(id));
        }
        // A table is looked up at what was last.
        if operator == "Gather" {
            inputs.swap(0, 1);
        }
        let to = self.graph.value_named(&format!("v{count}"));
        self.graph
            .add_node(ONNX_DOMAIN, operator, "", &attributes, inputs, vec![Some(to)])
            .unwrap();
        self.at = to;
        self
    }

    fn plain(self, operator: &str, constants: &[Tensor]) -> Self {
        self.then(operator, Attributes::new(), constants)
    }

    fn done(mut self) -> Graph {
        self.graph.outputs.push(self.at);
        self.graph
    }
}

fn zeros(shape: &[usize]) -> Tensor {
    Tensor::zeros(DataType::Fp32, shape).unwrap()
}

/// Returns the claims of an engine's provider, and the partitions that follow with the CPU behind
/// it: provider and number of nodes.
fn planned(
    graph: &Graph,
    provider: &dyn ExecutionProvider,
) -> (ProviderClaims, Vec<(usize, usize)>) {
    let facts = infer::facts(graph, &HashMap::new()).unwrap();
    let mut graph = graph.clone();
    let asked = ClaimRequest { with_order: true, ..ClaimRequest::new(&graph, &facts) };
    if let Some(order) = provider.claim(&asked).order {
        graph.nodes = order.iter().map(|&node| graph.nodes[node].clone()).collect();
        // Nothing runs before what it reads.
        let mut sorted = graph.clone();
        sorted.sort().unwrap();
        assert_eq!(sorted.nodes.len(), graph.nodes.len());
        infer::facts(&graph, &HashMap::new()).unwrap();
    }
    let graph = &graph;
    let typical = sized(&facts);
    let request = ClaimRequest { typical: &typical, ..ClaimRequest::new(graph, &facts) };
    let own = provider.claim(&request);
    let offers = [own.clone(), CpuProvider::new().claim(&request)];
    let live = live_bytes(graph, &facts);
    let parts = partition(graph.nodes.len(), &offers, &live, 16).unwrap();
    (own, parts.iter().map(|part| (part.provider, part.nodes.len())).collect())
}

fn on(chip: &str) -> CoreMlProvider {
    CoreMlProvider::new().with_engine(NeuralEngine::of(chip).unwrap())
}

/// The reason why a node is left to others.
fn reason(claims: &ProviderClaims, node: usize) -> String {
    let found = claims.refusals.iter().find(|refusal| refusal.node == node);
    found.map_or_else(String::new, |refusal| refusal.reason.clone())
}

/// Four products of about a millisecond each.
fn heavy() -> Graph {
    let weights = zeros(&[4096, 4096]);
    let chain = Chain::new(DataType::Fp32, &[1, 512, 4096]);
    let chain = chain.plain("MatMul", std::slice::from_ref(&weights)).plain("Relu", &[]);
    chain.plain("MatMul", &[weights]).plain("Softmax", &[]).done()
}

#[test]
fn work_for_an_engine_is_one_partition() {
    let (claims, parts) = planned(&heavy(), &on("M1"));
    assert_eq!(parts, [(0, 4)], "{claims:?}");
    // Half a generation's halves take twice as long.
    let cost = |chip: &str| planned(&heavy(), &on(chip)).0.claims[0].cost_ns;
    assert!(cost("M1") > 1.5 * cost("M4"), "{} and {}", cost("M1"), cost("M4"));
}

#[test]
fn without_an_engine_only_who_insists_claims() {
    let graph = heavy();
    let (claims, parts) = planned(&graph, &CoreMlProvider::new());
    assert_eq!(parts, [(1, 4)]);
    assert_eq!(reason(&claims, 0), "this machine has no Neural Engine");
    let insisting = CoreMlProvider::new().forced();
    assert_eq!(planned(&graph, &*insisting).1, [(0, 4)]);
}

#[test]
fn little_work_is_left_to_others_unless_somebody_insists() {
    let graph = Chain::new(DataType::Fp32, &[1, 64]).plain("Relu", &[]).plain("Tanh", &[]).done();
    let (claims, parts) = planned(&graph, &on("M4"));
    assert_eq!(parts, [(1, 2)]);
    let text = reason(&claims, 0);
    assert!(
        text.ends_with("work in this stretch of 2 nodes, a start is worth 0.8 ms at least"),
        "{text}"
    );
    let insisting = on("M4").forced();
    assert_eq!(planned(&graph, &*insisting).1, [(0, 2)]);
}

#[test]
fn tables_are_looked_up_before_the_engine_begins() {
    let chain = Chain::new(DataType::Int64, &[1, 512]).plain("Gather", &[zeros(&[1000, 4096])]);
    let weights = zeros(&[4096, 4096]);
    let graph =
        chain.plain("MatMul", std::slice::from_ref(&weights)).plain("MatMul", &[weights]).done();
    let (claims, parts) = planned(&graph, &on("M1"));
    assert_eq!(parts, [(1, 1), (0, 2)]);
    // Places that count from the end are made others before.
    assert!(reason(&claims, 0).starts_with("rule 'integers': less"), "{}", reason(&claims, 0));
}

#[test]
fn what_others_must_do_goes_before_the_engine() {
    // A table between two products, which does not wait for the first.
    let mut chain =
        Chain::new(DataType::Fp32, &[1, 512, 4096]).plain("MatMul", &[zeros(&[4096, 4096])]);
    let graph = &mut chain.graph;
    let [places, rows, sum] = ["places", "rows", "sum"].map(|name| graph.value_named(name));
    graph.value_mut(places).declared = Some(Fact::fixed(DataType::Int64, &[1, 512]));
    graph.inputs.push(places);
    let table = graph.value_named("table");
    graph.value_mut(table).initializer = Some(zeros(&[100, 4096]));
    let none = Attributes::new();
    let read = vec![Some(table), Some(places)];
    graph.add_node(ONNX_DOMAIN, "Gather", "", &none, read, vec![Some(rows)]).unwrap();
    let read = vec![Some(chain.at), Some(rows)];
    graph.add_node(ONNX_DOMAIN, "Add", "", &none, read, vec![Some(sum)]).unwrap();
    chain.at = sum;
    let graph = chain.plain("MatMul", &[zeros(&[4096, 4096])]).done();
    assert_eq!(planned(&graph, &on("M1")).1, [(1, 1), (0, 3)]);
}

#[test]
fn rules_look_at_types_axes_and_parameters() {
    let refused = |graph: Graph| {
        let insisting = on("M4").forced();
        let (claims, _) = planned(&graph, &*insisting);
        claims.refusals.iter().map(|refusal| refusal.reason.clone()).collect::<Vec<_>>().join("; ")
    };
    let integers = Chain::new(DataType::Int32, &[2, 3]).plain("Abs", &[]).done();
    assert!(refused(integers).contains("rule 'integers': abs"), "a chain of integers");
    let deep = Chain::new(DataType::Fp32, &[1, 2, 3, 4, 5]).plain("Relu", &[]).done();
    assert!(refused(deep).contains("rule 'five-axes': relu"));
    let long = Chain::new(DataType::Fp32, &[1, 20000]).plain("Relu", &[]).done();
    assert!(refused(long).contains("rule 'long-rows': relu"));
    let pool = |length: i64| {
        let window = Attributes::from([(
            "kernel_shape".to_owned(),
            AttributeValue::Ints(vec![length, length]),
        )]);
        Chain::new(DataType::Fp32, &[1, 4, 32, 32]).then("MaxPool", window, &[]).done()
    };
    assert!(refused(pool(14)).contains("rule 'large-windows': max_pool"));
    assert_eq!(refused(pool(13)), "");
}

/// The file of a model, rewritten as far as the provider likes best.
fn loaded(path: &Path) -> Option<Graph> {
    let mut graph = galatea_formats::onnx::load(path).ok()?;
    graph.sort().unwrap();
    rewrite::optimise(&mut graph, OptimiseLevel::O1).unwrap();
    graph.sort().unwrap();
    Some(graph)
}

/// How many partitions of a model are the engine's, and a line about all of them.
fn of_engine(name: &str, graph: &Graph, provider: &dyn ExecutionProvider) -> (usize, String) {
    let (claims, parts) = planned(graph, provider);
    let mut reasons: galatea_tensor::OrderedMap<&str, usize> = galatea_tensor::OrderedMap::new();
    for refusal in &claims.refusals {
        *reasons.entry(refusal.reason.split(':').next().unwrap_or("")).or_default() += 1;
    }
    let own = parts.iter().filter(|(provider, _)| *provider == 0).count();
    let work: f64 = claims.claims.iter().map(|claim| claim.cost_ns / 1e6).sum();
    (own, format!("{name}: {own} of the engine among {parts:?}, {work:.2} ms; {reasons:?}"))
}

#[test]
fn exports_have_few_partitions() {
    let mut wrong = Vec::new();
    for (name, most) in [
        ("vit", 1),
        ("vit.dynamo", 1),
        // What the mask is made of waits for a reshape that the engine takes, in models as small as these.
        ("bert-base", 2),
        ("bert-base.dynamo", 1),
        ("t5-encoder", 2),
        ("gpt2", 3),
        ("gpt2.dynamo", 3),
        ("llama", 3),
        ("llama.dynamo", 3),
    ] {
        let provider = on("M4").forced();
        let (found, text) = of_engine(name, &loaded(&file(name)).unwrap(), &*provider);
        println!("{text}");
        wrong.extend((!(1..=most).contains(&found)).then_some(text));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Models of full size, where there are some: `GALATEA_EXPORTS` is their folder.
#[test]
fn large_exports_have_few_partitions() {
    let Some(folder) = std::env::var_os("GALATEA_EXPORTS") else { return };
    println!();
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|kind| kind == "onnx")) {
        let Some(graph) = loaded(path) else { continue };
        for chip in ["M1", "M4"] {
            let name = format!("{} on {chip}", path.display());
            println!("{}", of_engine(&name, &graph, &on(chip)).1);
        }
    }
}

#[test]
fn a_provider_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Arc::new(on("M4")));
}
