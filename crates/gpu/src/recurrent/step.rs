//! The dispatches of a recurrent layer: products of inputs, and steps.

use std::collections::HashMap;

use galatea_runtime::NodeShapes;
use galatea_tensor::DataType;
use minijinja::context;

use super::activations;
use super::input;
use super::lengths::RecurrentLengths;
use super::node::{CellPhase, RecurrentCell, RecurrentSpec};
use super::states::LayerStates;
use super::way::{RecurrentWay, StepTeam};
use crate::device::{GpuCapabilities, KernelShader};
use crate::element;
use crate::kernel::{DispatchStep, ShaderBinding, ShaderDispatch, param, wgsl_float};
use crate::matmul::{MatMulOperand, MatMulProblem, MatMulSpec, place};
use crate::template::render;

/// Threads of a workgroup where a matrix multiplication computes the sums.
const PLAIN: StepTeam = StepTeam { threads: 128, lanes: 1, rows: 1 };

/// The most workgroups along an axis.
const MAX_GROUPS: usize = 65_535;

/// Steps whose products with inputs are in memory at the same time.
#[derive(Clone, Copy)]
struct StepChunk {
    first: usize,
    end: usize,
}

/// A layer in a run.
pub(super) struct SequenceRun<'a> {
    layer: &'a RecurrentSpec,
    lengths: &'a RecurrentLengths,
    shapes: &'a NodeShapes,
    way: RecurrentWay,
    capabilities: &'a GpuCapabilities,
    /// Memory of states, of products with inputs for each direction, and of those with states.
    states: usize,
    inputs: Vec<usize>,
    products: Option<usize>,
}

/// Bindings of a shader with their declarations.
#[derive(Default)]
struct DeclaredBindings {
    bindings: Vec<ShaderBinding>,
    text: String,
}

impl DeclaredBindings {
    fn add(&mut self, name: &str, array: &str, binding: ShaderBinding) {
        let number = self.bindings.len();
        self.text.push_str(&format!(
            "@group(0) @binding({number}) var<storage, read_write> {name}: array<{array}>;\n"
        ));
        self.bindings.push(binding);
    }
}

impl<'a> SequenceRun<'a> {
    /// Takes memory for a run.
    pub(super) fn new(
        layer: &'a RecurrentSpec,
        lengths: &'a RecurrentLengths,
        shapes: &'a NodeShapes,
        way: RecurrentWay,
        capabilities: &'a GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Self {
        let bytes = |elements: usize| 4 * elements as u64;
        let states = step.scratch(bytes(lengths.kept * lengths.state()));
        let row = lengths.batch * lengths.gates * lengths.hidden;
        let each = bytes(lengths.at_a_time() * row);
        let inputs = (0..lengths.passes).map(|_| step.scratch(each)).collect();
        let products =
            (way == RecurrentWay::Products).then(|| step.scratch(bytes(lengths.passes * row)));
        Self { layer, lengths, shapes, way, capabilities, states, inputs, products }
    }

    /// Adds the dispatches.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(super) fn run(&self, step: &mut DispatchStep) -> Result<(), String> {
        let states = LayerStates {
            layer: self.layer,
            lengths: self.lengths,
            shapes: self.shapes,
            memory: self.states,
        };
        states.begin(step)?;
        let phases: Vec<&'static [CellPhase]> = match self.way {
            RecurrentWay::Resident(_) => vec![self.layer.cell.phases()],
            _ => self.layer.cell.phases().chunks(1).collect(),
        };
        let shaders = phases.into_iter().map(|phases| self.shader(phases));
        let shaders = shaders.collect::<Result<Vec<_>, _>>()?;
        let mut products = StateProducts::default();
        let steps = self.lengths.steps;
        for first in (0..steps).step_by(self.lengths.at_a_time()) {
            let chunk = StepChunk { first, end: (first + self.lengths.at_a_time()).min(steps) };
            for pass in 0..self.lengths.passes {
                self.multiply_inputs(&chunk, pass, step)?;
            }
            if let RecurrentWay::Resident(_) = self.way {
                for shader in &shaders {
                    self.dispatch(shader, &chunk, &chunk, step)?;
                }
                continue;
            }
            for turn in chunk.first..chunk.end {
                let one = StepChunk { first: turn, end: turn + 1 };
                for shader in &shaders {
                    if self.way == RecurrentWay::Products {
                        self.multiply_states(&shader.phase, turn, &mut products, step)?;
                    }
                    self.dispatch(shader, &chunk, &one, step)?;
                }
            }
        }
        states.end(step)
    }

    /// Multiplies the inputs of some steps with the weights of a direction.
    fn multiply_inputs(
        &self,
        chunk: &StepChunk,
        pass: usize,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let RecurrentLengths { steps, batch, input, hidden, gates, .. } = *self.lengths;
        let count = chunk.end - chunk.first;
        let first = if self.layer.is_reversed(pass) { steps - chunk.end } else { chunk.first };
        let by_batch = self.layer.attributes.batch_first;
        // Each sequence by itself where the steps of one lie behind one another.
        let (m, stack, start, along) = match by_batch {
            true => (count, batch, first * input, steps * input),
            false => (count * batch, 1, first * batch * input, 0),
        };
        let rows = gates * hidden;
        let a = MatMulOperand {
            dtype: self.shapes.dtype(input::X)?,
            start,
            outer: input,
            inner: 1,
            batch: vec![along],
        };
        let b = MatMulOperand {
            dtype: self.shapes.dtype(input::W)?,
            start: pass * rows * input,
            outer: input,
            inner: 1,
            batch: vec![0],
        };
        let problem = product([m, rows, input], stack, a, b);
        let operands = [ShaderBinding::Input(input::X), ShaderBinding::Input(input::W)];
        let out = ShaderBinding::Scratch(self.inputs[pass]);
        place(&problem, &operands, &out, self.capabilities, None, step)
    }

    /// Multiplies the states of all sequences with the weights of a phase.
    fn multiply_states(
        &self,
        phase: &CellPhase,
        turn: usize,
        products: &mut StateProducts,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let RecurrentLengths { batch, hidden, gates, passes, .. } = *self.lengths;
        let number = if phase.from_reset { 2 } else { turn % 2 };
        if let Some(known) = products.made.get(&number) {
            step.dispatches.extend(known.iter().cloned());
            return Ok(());
        }
        let a = MatMulOperand {
            dtype: DataType::Fp32,
            start: number * self.lengths.state(),
            outer: hidden,
            inner: 1,
            batch: vec![batch * hidden],
        };
        let b = MatMulOperand {
            dtype: self.shapes.dtype(input::R)?,
            start: phase.first * hidden * hidden,
            outer: hidden,
            inner: 1,
            batch: vec![gates * hidden * hidden],
        };
        let problem = product([batch, phase.gates * hidden, hidden], passes, a, b);
        let operands = [ShaderBinding::Scratch(self.states), ShaderBinding::Input(input::R)];
        let out = self.products.ok_or("products of states have no memory")?;
        let first = step.dispatches.len();
        place(&problem, &operands, &ShaderBinding::Scratch(out), self.capabilities, None, step)?;
        products.made.insert(number, step.dispatches[first..].to_vec());
        Ok(())
    }

    /// Adds the dispatch of some steps.
    fn dispatch(
        &self,
        shader: &StepShader,
        chunk: &StepChunk,
        turns: &StepChunk,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let RecurrentLengths { steps, batch, hidden, passes, .. } = *self.lengths;
        let team = self.team();
        let words = [
            steps,
            chunk.first,
            chunk.end,
            turns.first,
            turns.end,
            batch,
            hidden,
            self.lengths.state(),
        ];
        let params = words.into_iter().map(param).collect::<Result<_, _>>()?;
        let units = team.threads / team.lanes;
        let blocks = match self.way {
            RecurrentWay::Resident(_) => 1,
            _ => hidden.div_ceil(units).min(MAX_GROUPS),
        };
        let rows = batch.div_ceil(team.rows).min(MAX_GROUPS);
        let groups = [param(blocks)?, param(rows)?, param(passes)?];
        step.dispatch(shader.shader.clone(), shader.bindings.clone(), params, groups);
        Ok(())
    }

    fn team(&self) -> StepTeam {
        match self.way {
            RecurrentWay::Resident(team) | RecurrentWay::Steps(team) => team,
            RecurrentWay::Products => PLAIN,
        }
    }

    fn shader_name(&self, phase: &CellPhase) -> String {
        let way = match self.way {
            RecurrentWay::Resident(_) => "resident",
            RecurrentWay::Steps(_) => "steps",
            RecurrentWay::Products => "cells",
        };
        format!("recurrent-{}-{way}", phase.name)
    }

    /// The shader of some phases, with what it binds.
    fn shader(&self, phases: &'static [CellPhase]) -> Result<StepShader, String> {
        let RecurrentLengths { hidden, gates, passes, kept, .. } = *self.lengths;
        let team = self.team();
        let StepTeam { threads, lanes, rows } = team;
        let products = self.way == RecurrentWay::Products;
        let resident = matches!(self.way, RecurrentWay::Resident(_));
        let wide = hidden.is_multiple_of(4);
        let [Some(phase), Some(last)] = [phases.first(), phases.last()] else {
            return Err("a step has no phases".into());
        };
        let declared = self.declared(last, wide, products)?;
        let vector = match phases.iter().map(|phase| phase.gates).max() {
            Some(1) | None => "f32".to_owned(),
            Some(gates) => format!("vec{gates}<f32>"),
        };
        let backward = match passes {
            2 => "direction == 1u",
            _ if self.layer.is_reversed(0) => "true",
            _ => "false",
        };
        let input_forget = self.layer.cell == RecurrentCell::Lstm { input_forget: true };
        let y = match last.last && self.shapes.wants(0) {
            true => wgsl_float(self.shapes.output_dtype(0)?)?,
            false => "",
        };
        let phases: Vec<_> = phases.iter().map(phase_context).collect();
        let text = render(
            include_str!("step.wgsl"),
            context! {
                declarations => declared.text,
                functions => activations::text(self.layer),
                params => declared.bindings.len(),
                weights => if wide { "vec4<f32>" } else { "f32" },
                bias => self.shapes.has(input::BIAS),
                lengths => last.last && self.shapes.has(input::LENGTHS),
                peepholes => self.shapes.has(input::PEEPHOLES),
                cell => matches!(self.layer.cell, RecurrentCell::Lstm { .. }),
                batch_first => self.layer.attributes.batch_first,
                units => threads / lanes,
                phases, wide, products, resident, vector, threads, lanes, rows, hidden, gates, passes, kept, backward,
                input_forget, y,
            },
        )?;
        // What the functions of elements need is told once more, with these before the text.
        let text = text.strip_prefix("enable f16;\n").unwrap_or(&text);
        let shader = element::shader(&self.shader_name(phase), text).proved();
        Ok(StepShader { shader, bindings: declared.bindings, phase: *phase })
    }

    fn declared(
        &self,
        phase: &CellPhase,
        wide: bool,
        products: bool,
    ) -> Result<DeclaredBindings, String> {
        let shapes = self.shapes;
        let vector = |float: &str| if wide { format!("vec4<{float}>") } else { float.to_owned() };
        let mut all = DeclaredBindings::default();
        all.add("states", &vector("f32"), ShaderBinding::Scratch(self.states));
        for (pass, &memory) in self.inputs.iter().enumerate() {
            all.add(&format!("inputs{pass}"), "f32", ShaderBinding::Scratch(memory));
        }
        match self.products.filter(|_| products) {
            Some(memory) => all.add("products", "f32", ShaderBinding::Scratch(memory)),
            None => {
                let float = wgsl_float(shapes.dtype(input::R)?)?;
                all.add("weights", &vector(float), ShaderBinding::Input(input::R));
            }
        }
        let optional = [
            ("biases", input::BIAS, true),
            ("sequence_lengths", input::LENGTHS, phase.last),
            ("peepholes", input::PEEPHOLES, true),
        ];
        for (name, index, used) in optional {
            if used && shapes.has(index) {
                let dtype = shapes.dtype(index)?;
                let array = if dtype == DataType::Int32 { "i32" } else { wgsl_float(dtype)? };
                all.add(name, array, ShaderBinding::Input(index));
            }
        }
        if phase.last && shapes.wants(0) {
            let float = wgsl_float(shapes.output_dtype(0)?)?;
            all.add("y", float, ShaderBinding::Output(0));
        }
        Ok(all)
    }
}

/// Dispatches that multiply states, by the number of the vector that they read: those of a later step are the same,
/// and take no memory of their own.
#[derive(Default)]
struct StateProducts {
    made: HashMap<usize, Vec<ShaderDispatch>>,
}

/// A shader with what it binds, and its first phase.
struct StepShader {
    shader: KernelShader,
    bindings: Vec<ShaderBinding>,
    phase: CellPhase,
}

fn phase_context(phase: &CellPhase) -> minijinja::Value {
    let CellPhase { name, first, gates, from_reset, last } = *phase;
    context!(name, first, gates, from_reset, last)
}

/// A product of these lengths (m, n and k) of rows with rows.
fn product(lengths: [usize; 3], stack: usize, a: MatMulOperand, b: MatMulOperand) -> MatMulProblem {
    let [m, n, k] = lengths;
    let mut spec = MatMulSpec::PLAIN;
    spec.b.matrix = true;
    let mut problem = MatMulProblem {
        spec,
        m,
        n,
        k,
        batch: vec![stack],
        a,
        b,
        bias: None,
        more: None,
        out: DataType::Fp32,
        under: None,
        windows: None,
    };
    problem.join();
    problem
}
