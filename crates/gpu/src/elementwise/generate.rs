//! One kernel's text for a program and the way its operands are read.

use galatea_tensor::DataType;

use super::broadcast::{MergedBroadcast, OperandWalk};
use super::element_program::ElementProgram;
use crate::element::{
    DispatchParams, THREADS, declare, entry, load, load_quad, shader, store_quad,
};
use crate::kernel::{DispatchStep, ShaderBinding, fold};

/// Operands that a kernel reads and writes.
pub(super) struct ElementwiseOperands<'a> {
    pub(super) types: &'a [DataType],
    pub(super) output: DataType,
    pub(super) broadcast: &'a MergedBroadcast,
    pub(super) elements: usize,
}

/// Adds the dispatch of a program.
///
/// # Errors
/// Fails when the device has no such elements or cannot count them.
pub(super) fn dispatch(
    program: &ElementProgram,
    operands: &ElementwiseOperands<'_>,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let types = operands.types;
    let quads = operands.elements.div_ceil(4);
    let mut words = DispatchParams::default();
    let count = words.length(operands.elements)?;
    let quad_count = words.length(quads)?;
    let body = ElementwiseBody::new(operands, &mut words)?.text(program, &count);
    let mut text = String::new();
    let mut bindings = Vec::new();
    for (at, (&index, &dtype)) in program.inputs.iter().zip(types).enumerate() {
        text.push_str(&declare(at, &format!("x{at}"), dtype)?);
        bindings.push(ShaderBinding::Input(index));
    }
    text.push_str(&declare(types.len(), "y", operands.output)?);
    bindings.push(ShaderBinding::Output(0));
    text.push_str(&words.declare(types.len() + 1));
    text.push_str(&entry(&quad_count));
    text.push_str(&body);
    text.push_str("}\n");
    let shader = shader("elementwise", &text);
    // Integers of 64 bits are not padded to a quad, so the compiler guards them.
    let padded = types.iter().chain([&operands.output]).all(|dtype| *dtype != DataType::Int64);
    let shader = if padded { shader.proved() } else { shader };
    step.dispatch(shader, bindings, words.into_params(), fold(quads.div_ceil(THREADS))?);
    Ok(())
}

struct ElementwiseBody<'a> {
    operands: &'a ElementwiseOperands<'a>,
    /// Lengths of all axes but the first, as the text reads them.
    lengths: Vec<String>,
    /// Steps of the operands that have some.
    steps: Vec<Option<Vec<String>>>,
}

impl<'a> ElementwiseBody<'a> {
    fn new(
        operands: &'a ElementwiseOperands<'a>,
        words: &mut DispatchParams,
    ) -> Result<Self, String> {
        let MergedBroadcast { lengths, walks } = operands.broadcast;
        let stepped = walks.iter().any(|walk| matches!(walk, OperandWalk::Steps(_)));
        let lengths: Result<Vec<String>, String> = match stepped {
            true => lengths[1..].iter().map(|&len| words.length(len)).collect(),
            false => Ok(Vec::new()),
        };
        let mut steps = Vec::new();
        for walk in walks {
            steps.push(match walk {
                OperandWalk::Steps(all) => Some(
                    all.iter().map(|&step| words.length(step)).collect::<Result<Vec<_>, _>>()?,
                ),
                OperandWalk::Same | OperandWalk::One => None,
            });
        }
        Ok(Self { operands, lengths: lengths?, steps })
    }

    fn text(&self, program: &ElementProgram, count: &str) -> String {
        let ElementwiseOperands { types, output, broadcast, .. } = self.operands;
        let mut text = String::new();
        let stepped = self.steps.iter().any(Option::is_some);
        let in_quads = broadcast.in_quads();
        if stepped && in_quads {
            text.push_str(&self.coordinates("at * 4u", ""));
        } else if stepped {
            for lane in 0..4 {
                // Places behind the end are as good as the last.
                let from = format!("min(at * 4u + {lane}u, {count} - 1u)");
                text.push_str(&self.coordinates(&from, &format!("_{lane}")));
            }
        }
        for (at, dtype) in types.iter().enumerate() {
            let name = format!("x{at}");
            let value = match &broadcast.walks[at] {
                OperandWalk::Same => load_quad(&name, *dtype, "at"),
                OperandWalk::One => splat(*dtype, &load(&name, *dtype, "0u")),
                OperandWalk::Steps(steps) if in_quads => {
                    text.push_str(&format!("let o{at} = {};\n", self.offset(at, "")));
                    self.quad(at, steps)
                }
                OperandWalk::Steps(_) => {
                    let lane = |lane: usize| {
                        let suffix = format!("_{lane}");
                        text.push_str(&format!(
                            "let o{at}_{lane} = {};\n",
                            self.offset(at, &suffix)
                        ));
                        load(&name, *dtype, &format!("o{at}_{lane}"))
                    };
                    let lanes: Vec<String> = (0..4).map(lane).collect();
                    splat(*dtype, &lanes.join(", "))
                }
            };
            text.push_str(&format!("let a{at} = {value};\n"));
        }
        for line in &program.lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&format!("let result = {};\n", program.result));
        text.push_str(&store_quad("y", *output, "at", "result", count));
        text
    }

    /// Places along the merged axes of the element with this number.
    fn coordinates(&self, number: &str, suffix: &str) -> String {
        let rank = self.lengths.len() + 1;
        let mut text = format!("var r{suffix} = {number};\n");
        for axis in (1..rank).rev() {
            let len = &self.lengths[axis - 1];
            text.push_str(&format!("let c{axis}{suffix} = r{suffix} % {len};\n"));
            text.push_str(&format!("r{suffix} = r{suffix} / {len};\n"));
        }
        text.push_str(&format!("let c0{suffix} = r{suffix};\n"));
        text
    }

    /// Returns the expression for the offset of an operand at those coordinates.
    fn offset(&self, operand: usize, suffix: &str) -> String {
        let steps = self.steps[operand].as_deref().unwrap_or_default();
        let term = |(axis, step): (usize, &String)| format!("c{axis}{suffix} * {step}");
        let terms: Vec<String> = steps.iter().enumerate().map(term).collect();
        terms.join(" + ")
    }

    /// Four elements from an offset on along the last axis.
    fn quad(&self, operand: usize, steps: &[usize]) -> String {
        let dtype = self.operands.types[operand];
        let name = format!("x{operand}");
        let offset = format!("o{operand}");
        let lane = |at: &str| load(&name, dtype, at);
        match steps.split_last() {
            Some((0, _)) => splat(dtype, &lane(&offset)),
            Some((1, outer)) if outer.iter().all(|step| step % 4 == 0) => {
                load_quad(&name, dtype, &format!("({offset} / 4u)"))
            }
            _ => {
                let own = self.steps[operand].as_deref().unwrap_or_default();
                let step = own.last().map_or("0u", String::as_str);
                let lanes = (0..4).map(|at| lane(&format!("({offset} + {at}u * {step})")));
                splat(dtype, &lanes.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// One or four elements as a vector.
fn splat(dtype: DataType, elements: &str) -> String {
    let scalar = match dtype {
        DataType::Fp32 | DataType::Fp16 => "f32",
        DataType::Int32 | DataType::Int8 => "i32",
        DataType::Uint32 | DataType::Uint8 => "u32",
        DataType::Bool => "bool",
        _ => "i64",
    };
    format!("vec4<{scalar}>({elements})")
}
