//! `branch`, `loop` and what jumps out of loops, as `If` and `LoopLayerProto`.
//!
//! Networks inside layers read and write the blobs around them by name. What a branch writes is an
//! output of the `If`; what a loop writes and reads again is carried. Behind a layer that may have
//! jumped, the rest of its network is a branch that runs where it has not.

use bytes::Bytes;
use galatea_graph::{AttributeValue, Dim, Fact, SubgraphAttribute, ValueId};
use galatea_tensor::{DataType, OrderedSet, Tensor};

use super::lower::{LayerCall, LayerOutputs, NetworkLowering, NetworkScope, ScopeBlob, int, size};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::network::layers::{BranchLayerProto, LoopLayerProto};
use crate::coreml::proto::network::{NetworkLayerProto, NetworkProto};

/// The numbers of layers that control others.
pub(super) const BRANCH: u32 = 605;
pub(super) const LOOP: u32 = 615;
const BREAK: u32 = 620;
const CONTINUE: u32 = 625;

/// Deepest nesting of networks.
const MAX_DEPTH: usize = 16;
/// Deepest nesting of loops: what is inside is lowered several times at each level.
const MAX_LOOPS: usize = 4;
/// How often a body is lowered until the shapes of what it carries agree: lengths, then ranks.
const MAX_ATTEMPTS: usize = 4;
/// Distance from 0 up to which a condition does not hold.
const HOLDS: f32 = 1e-6;

/// Effect of a layer on whether the layers behind it run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerJump {
    /// Always.
    Never,
    /// Only where it did not jump.
    Maybe,
    /// Not at all.
    Always,
}

fn check_depth(depth: usize) -> Result<(), CoreMlError> {
    match depth > MAX_DEPTH {
        true => {
            let text = format!("networks are nested more than {MAX_DEPTH} deep");
            Err(CoreMlError::unsupported(text))
        }
        false => Ok(()),
    }
}

/// The networks inside a layer.
fn inside(layer: &NetworkLayerProto) -> Result<Vec<NetworkProto>, CoreMlError> {
    let networks = match &layer.kind {
        Some((BRANCH, message)) => {
            let found: BranchLayerProto = decode(Bytes::clone(message))?;
            [found.if_branch, found.else_branch]
        }
        Some((LOOP, message)) => {
            let found: LoopLayerProto = decode(Bytes::clone(message))?;
            [found.condition_network, found.body_network]
        }
        _ => [None, None],
    };
    Ok(networks.into_iter().flatten().collect())
}

/// Returns whether a layer jumps out of the loop around it, or to its next iteration.
pub(super) fn jump(layer: &NetworkLayerProto, depth: usize) -> Result<LayerJump, CoreMlError> {
    check_depth(depth)?;
    match layer.kind {
        Some((BREAK | CONTINUE, _)) => Ok(LayerJump::Always),
        Some((BRANCH, _)) => {
            for network in inside(layer)? {
                for layer in &network.layers {
                    if jump(layer, depth + 1)? != LayerJump::Never {
                        return Ok(LayerJump::Maybe);
                    }
                }
            }
            Ok(LayerJump::Never)
        }
        _ => Ok(LayerJump::Never),
    }
}

/// Calls `found` with every name that layers read (true) or write (false).
pub(super) fn names(
    layers: &[NetworkLayerProto],
    depth: usize,
    found: &mut dyn FnMut(&str, bool),
) -> Result<(), CoreMlError> {
    check_depth(depth)?;
    for layer in layers {
        layer.input.iter().for_each(|name| found(name, true));
        layer.output.iter().for_each(|name| found(name, false));
        for network in inside(layer)? {
            names(&network.layers, depth + 1, found)?;
        }
        if let Some((LOOP, message)) = &layer.kind {
            let looped: LoopLayerProto = decode(Bytes::clone(message))?;
            found(&looped.condition_var, true);
        }
    }
    Ok(())
}

/// A condition as one truth value.
fn holds(cx: &mut NetworkLowering, blob: ScopeBlob) -> Result<ValueId, CoreMlError> {
    let size = cx.node("Abs", &[blob.id], &[])?;
    let limit = cx.scalar(HOLDS);
    let holds = cx.node("Greater", &[size, limit], &[])?;
    cx.reshape(holds, &[])
}

fn not(cx: &mut NetworkLowering, id: ValueId) -> Result<ValueId, CoreMlError> {
    cx.node("Not", &[id], &[])
}

fn flag(name: &str, cx: &NetworkLowering) -> String {
    // No blob of a file has such a name by accident, and one that has is carried as well.
    format!("#{name} {}", cx.loops)
}

fn raise(cx: &mut NetworkLowering, names: &[&str], value: f32) {
    for name in names {
        let name = flag(name, cx);
        let id = cx.constant(Tensor::vector(vec![value]));
        cx.bind(&name, ScopeBlob::exact(id));
    }
}

/// `loopBreak` and `loopContinue`.
pub(super) fn leave(cx: &mut NetworkLowering, ends: bool) -> LayerOutputs {
    if cx.loops == 0 {
        return Err(CoreMlError::invalid("it is in no loop"));
    }
    raise(cx, if ends { &["skip", "break"] } else { &["skip"] }, 1.0);
    Ok(Vec::new())
}

/// Lowers layers that run where the loop has not been left.
pub(super) fn unless_left(
    cx: &mut NetworkLowering,
    rest: &[NetworkLayerProto],
) -> Result<(), CoreMlError> {
    if rest.is_empty() {
        return Ok(());
    }
    let name = flag("skip", cx);
    let left = cx.find(&name).ok_or_else(|| CoreMlError::invalid("it is in no loop"))?;
    let left = holds(cx, left)?;
    let goes_on = not(cx, left)?;
    choose(cx, goes_on, [rest, &[]])
}

/// `branch`.
pub(super) fn branch(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: BranchLayerProto = call.read()?;
    let missing = || CoreMlError::invalid("it has no 'ifBranch'");
    let then = params.if_branch.ok_or_else(missing)?;
    let other = params.else_branch.unwrap_or_default();
    let condition = holds(cx, call.input(0)?)?;
    choose(cx, condition, [&then.layers, &other.layers])?;
    Ok(Vec::new())
}

/// A value that a nested graph may give: not one that it only reads.
fn given(cx: &mut NetworkLowering, id: ValueId) -> Result<ValueId, CoreMlError> {
    let read = cx.scope().graph.inputs.contains(&id);
    if read { cx.node("Identity", &[id], &[]) } else { Ok(id) }
}

fn subgraph(scope: NetworkScope) -> AttributeValue {
    AttributeValue::Graph(Box::new(SubgraphAttribute {
        graph: scope.graph,
        captured: scope.captured,
    }))
}

/// Lowers one of two lists of layers, whichever a condition chooses.
fn choose(
    cx: &mut NetworkLowering,
    condition: ValueId,
    bodies: [&[NetworkLayerProto]; 2],
) -> Result<(), CoreMlError> {
    check_depth(cx.depth())?;
    let layer = cx.layer.clone();
    let mut scopes = Vec::with_capacity(bodies.len());
    let mut written = OrderedSet::new();
    for layers in bodies {
        cx.open("branch");
        cx.layers(layers)?;
        written.append(&mut cx.scope().written.clone());
        scopes.push(cx.suspend());
    }
    // A branch that does not write a blob leaves it as it is; what only one makes is only there.
    written.retain(|name| {
        let shown = name.starts_with('#') || cx.wanted.contains_key(name);
        shown && scopes.iter().all(|scope| scope.has(name))
    });
    let mut attributes = Vec::with_capacity(scopes.len());
    for (scope, name) in scopes.into_iter().zip(["then_branch", "else_branch"]) {
        cx.resume(scope);
        for name in &written {
            let blob = cx.find(name).ok_or_else(|| missing(name))?;
            let exact = cx.exact(blob)?;
            let id = given(cx, exact)?;
            cx.scope().graph.outputs.push(id);
        }
        attributes.push((name, subgraph(cx.close()?)));
    }
    cx.layer = layer;
    if written.is_empty() {
        return Ok(());
    }
    let ids = cx.nodes("If", vec![Some(condition)], &attributes, written.len())?;
    for (name, id) in written.iter().zip(ids) {
        cx.bind(name, ScopeBlob::exact(id));
    }
    Ok(())
}

fn missing(name: &str) -> CoreMlError {
    CoreMlError::invalid(format!("there is no blob '{name}'"))
}

/// The parts of a loop.
struct LoopParts<'n> {
    body: &'n NetworkProto,
    condition: Option<&'n NetworkProto>,
    variable: &'n str,
    jumps: bool,
}

/// `loop`.
pub(super) fn looped(cx: &mut NetworkLowering, call: &LayerCall) -> LayerOutputs {
    let params: LoopLayerProto = call.read()?;
    let no_body = || CoreMlError::invalid("it has no 'bodyNetwork'");
    let body = params.body_network.as_ref().ok_or_else(no_body)?;
    // A network without layers and a variable stands for none.
    let stated =
        |network: &&NetworkProto| !network.layers.is_empty() || !params.condition_var.is_empty();
    let condition = params.condition_network.as_ref().filter(stated);
    if condition.is_some() == params.condition_var.is_empty() {
        let text = "it has a 'conditionVar' without a 'conditionNetwork', or the other way round";
        return Err(CoreMlError::invalid(text));
    }
    if cx.loops == MAX_LOOPS || cx.depth() > MAX_DEPTH {
        let text = format!("loops are nested more than {MAX_LOOPS} deep");
        return Err(CoreMlError::unsupported(text));
    }
    let mut jumps = false;
    for layer in &body.layers {
        jumps |= jump(layer, cx.depth())? != LayerJump::Never;
    }
    let parts = LoopParts { body, condition, variable: &params.condition_var, jumps };
    let count = match (call.inputs.first(), params.max_loop_iterations) {
        (Some(&count), _) => {
            let count = cx.whole(count)?;
            Some(cx.reshape(count, &[])?)
        }
        (None, 0) if condition.is_some() => None,
        (None, count) => Some(cx.constant(Tensor::scalar(int(size(count)?)))),
    };
    cx.loops += 1;
    let lowered = repeat(cx, count, &parts);
    cx.loops -= 1;
    lowered.map(|()| Vec::new())
}

fn repeat(
    cx: &mut NetworkLowering,
    count: Option<ValueId>,
    parts: &LoopParts<'_>,
) -> Result<(), CoreMlError> {
    let layer = cx.layer.clone();
    let first = check(cx, parts)?;
    cx.layer.clone_from(&layer);
    if parts.jumps {
        raise(cx, &["break"], 0.0);
    }
    let mut carried = carried(cx, parts)?;
    let (scope, late) = settled(cx, parts, &mut carried)?;
    // A loop that leaves nothing behind need not run.
    if carried.is_empty() {
        cx.layer = layer;
        return Ok(());
    }
    let attributes = [("body", subgraph(scope))];
    cx.layer = layer;
    let mut inputs = vec![count, first];
    for (name, fact) in &carried {
        inputs.push(Some(match cx.find(name).filter(|_| !late.contains(name)) {
            Some(blob) => cx.exact(blob)?,
            None => zeros(cx, name, fact)?,
        }));
    }
    let ids = cx.nodes("Loop", inputs, &attributes, carried.len())?;
    for ((name, fact), id) in carried.iter().zip(ids) {
        // Inference of a loop gives up ranks where bodies are deep; these have settled.
        if fact.shape.is_some() {
            cx.know(id, fact.clone());
        }
        if !name.starts_with('#') {
            cx.bind(name, ScopeBlob::exact(id));
        }
    }
    Ok(())
}

/// Makes the value of a blob before the loop that makes it: zeros of its shape, which are read only
/// if the loop never runs.
fn zeros(cx: &mut NetworkLowering, name: &str, fact: &Fact) -> Result<ValueId, CoreMlError> {
    let unknown = || {
        let text = format!("blob '{name}' is read behind the loop that makes it, with {fact}");
        CoreMlError::unsupported(text)
    };
    let shape = fact.known_shape().ok_or_else(unknown)?;
    let shape = cx.longs(&super::lower::ints(&shape));
    let zero = AttributeValue::Tensor(Tensor::vector(vec![0.0_f32]));
    cx.node("ConstantOfShape", &[shape], &[("value", zero)])
}

/// Lowers the condition network; its variable as a truth value.
fn check(cx: &mut NetworkLowering, parts: &LoopParts<'_>) -> Result<Option<ValueId>, CoreMlError> {
    let Some(network) = parts.condition else { return Ok(None) };
    cx.layers(&network.layers)?;
    let blob = cx.find(parts.variable).ok_or_else(|| missing(parts.variable))?;
    holds(cx, blob).map(Some)
}

/// The blobs that a loop carries: those that it writes and that are there before, and those that it
/// makes and that something behind it reads. Facts are those of the former.
fn carried(
    cx: &mut NetworkLowering,
    parts: &LoopParts<'_>,
) -> Result<Vec<(String, Fact)>, CoreMlError> {
    let mut written = OrderedSet::new();
    let mut read = galatea_tensor::OrderedMap::new();
    let depth = cx.depth();
    let mut note = |name: &str, reads: bool| match reads {
        true => *read.entry(name.to_owned()).or_insert(0_usize) += 1,
        false => {
            written.insert(name.to_owned());
        }
    };
    names(&parts.body.layers, depth, &mut note)?;
    if let Some(network) = parts.condition {
        names(&network.layers, depth, &mut note)?;
    }
    if parts.jumps {
        written.insert(flag("break", cx));
    }
    let mut all = Vec::new();
    for name in written {
        if let Some(blob) = cx.find(&name) {
            let exact = cx.exact(blob)?;
            let fact = cx.fact(exact)?;
            all.push((name, Fact::shaped(fact.dtype, fact.shape)));
        } else if cx.wanted.get(&name).copied().unwrap_or(0) > read.get(&name).copied().unwrap_or(0)
        {
            all.push((name, Fact::unranked(DataType::Fp32)));
        }
    }
    Ok(all)
}

/// Returns the fact of a value that is one or the other.
fn relaxed(before: &Fact, after: &Fact) -> Fact {
    let shape = match (&before.shape, &after.shape) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            let dim = |(a, b): (&Dim, &Dim)| if a.same(b) { a.clone() } else { Dim::Unknown };
            Some(a.iter().zip(b).map(dim).collect())
        }
        _ => None,
    };
    Fact::shaped(before.dtype, shape)
}

/// Lowers the body until the facts of what it carries hold before and after an iteration. Also says
/// which blobs only the body makes.
fn settled(
    cx: &mut NetworkLowering,
    parts: &LoopParts<'_>,
    carried: &mut [(String, Fact)],
) -> Result<(NetworkScope, OrderedSet<String>), CoreMlError> {
    let late = |name: &String, cx: &mut NetworkLowering| !cx.exists(name);
    let late: OrderedSet<String> =
        carried.iter().map(|(name, _)| name.clone()).filter(|name| late(name, cx)).collect();
    for _ in 0..MAX_ATTEMPTS {
        let (scope, after) = iteration(cx, parts, carried, &late)?;
        let mut agree = true;
        for ((name, before), after) in carried.iter_mut().zip(after) {
            // A blob that only the body makes has the shape that the body gives it.
            let next = match late.contains(name) {
                true => Fact::shaped(after.dtype, after.shape),
                false => relaxed(before, &after),
            };
            agree &= next == *before || late.contains(name);
            *before = next;
        }
        if agree {
            return Ok((scope, late));
        }
    }
    Err(CoreMlError::unsupported("the shapes of what the loop carries do not settle"))
}

/// Lowers the body once; the facts of what it carries afterwards.
fn iteration(
    cx: &mut NetworkLowering,
    parts: &LoopParts<'_>,
    carried: &[(String, Fact)],
    late: &OrderedSet<String>,
) -> Result<(NetworkScope, Vec<Fact>), CoreMlError> {
    let layer = cx.layer.clone();
    cx.open("body");
    cx.own_input("iteration", Fact::fixed(DataType::Int64, &[]));
    cx.own_input("condition", Fact::fixed(DataType::Bool, &[]));
    for (name, fact) in carried {
        let id = cx.own_input(name, fact.clone());
        if !late.contains(name) {
            cx.bind(name, ScopeBlob::exact(id));
        }
    }
    if parts.jumps {
        raise(cx, &["skip"], 0.0);
    }
    cx.layers(&parts.body.layers)?;
    let next = check(cx, parts)?;
    cx.layer = layer;
    let stays = if parts.jumps {
        let name = flag("break", cx);
        let left = cx.find(&name).ok_or_else(|| missing(&name))?;
        let left = holds(cx, left)?;
        Some(not(cx, left)?)
    } else {
        None
    };
    let goes_on = match (next, stays) {
        (Some(next), Some(stays)) => cx.node("And", &[next, stays], &[])?,
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => cx.constant(Tensor::scalar(true)),
    };
    let mut outputs = vec![goes_on];
    let mut facts = Vec::with_capacity(carried.len());
    for (name, _) in carried {
        let blob = cx.find(name).ok_or_else(|| missing(name))?;
        let exact = cx.exact(blob)?;
        facts.push(cx.fact(exact)?);
        outputs.push(given(cx, exact)?);
    }
    cx.scope().graph.outputs = outputs;
    Ok((cx.close()?, facts))
}
