//! Results whose elements are made of a few of the source, which tables name for each axis.

use std::sync::Arc;

use galatea_tensor::DataType;

use crate::cell::{CellPair, ElementCell};
use crate::device::GpuDevice;
use crate::element::{DispatchParams, entry};
use crate::kernel::{DispatchStep, ShaderBinding, param};
use crate::memory::DeviceBlock;

use super::strided::{BoundValue, StridedPlaces, copy, start};
use crate::elementwise::broadcast::contiguous;

/// Positions of the source, with weights, that make up one position of an axis; empty if it lies outside.
pub(crate) type AxisSamples = Vec<(usize, f32)>;

/// Value of an element outside the source.
#[derive(Clone, Debug)]
pub(crate) enum OutsideFill {
    /// A float.
    Float(f32),
    /// Bits that are all zero.
    Zero,
    /// The bits of a half.
    Bits(u32),
    /// The element of a value.
    Value(BoundValue),
}

/// Sampling that makes the elements of a result.
#[derive(Clone, Debug)]
pub(crate) struct SampledMovement {
    /// The places of each axis of the result.
    pub(crate) axes: Vec<Vec<AxisSamples>>,
    /// Value outside the source.
    pub(crate) fill: OutsideFill,
    /// True if source positions are weighted, as for floats; otherwise the first counts.
    pub(crate) weighed: bool,
}

/// The mark of a place outside.
const OUTSIDE: u32 = u32::MAX;

struct SampledAxis {
    len: usize,
    /// Entries of a place; none where each place is the same one of the source.
    taps: usize,
    first: usize,
    step: usize,
}

impl SampledMovement {
    fn tables(&self, shape: &[usize]) -> Result<(Vec<SampledAxis>, Vec<u8>), String> {
        let (mut axes, mut bytes): (Vec<SampledAxis>, Vec<u8>) = (Vec::new(), Vec::new());
        for ((places, step), &len) in self.axes.iter().zip(contiguous(shape)).zip(shape) {
            #[allow(clippy::float_cmp, reason = "a weight of exactly 1")]
            let still = |(at, place): (usize, &AxisSamples)| matches!(place[..], [(from, 1.0)] if from == at);
            if places.len() == len && places.iter().enumerate().all(still) {
                match axes.last_mut() {
                    Some(SampledAxis { len: own, taps: 0, step: by, .. }) => {
                        (*own, *by) = (*own * len, step)
                    }
                    _ => axes.push(SampledAxis { len, taps: 0, first: 0, step }),
                }
                continue;
            }
            let most =
                if self.weighed { places.iter().map(Vec::len).max().unwrap_or(1) } else { 1 };
            let taps = most.max(1);
            axes.push(SampledAxis { len: places.len(), taps, first: bytes.len() / 8, step });
            for place in places {
                for tap in 0..taps {
                    let (from, weight) = match (place.get(tap), place.is_empty()) {
                        (Some(&(from, weight)), _) => (param(from)?, weight),
                        (None, true) => (OUTSIDE, 0.0),
                        // No weight: any place will do.
                        (None, false) => (0, 0.0),
                    };
                    bytes.extend(from.to_le_bytes());
                    bytes.extend(weight.to_bits().to_le_bytes());
                }
            }
        }
        Ok((axes, bytes))
    }

    /// Writes the result of a source of this shape.
    ///
    /// # Errors
    /// Fails when shaders cannot move or count the elements, or the device has no memory for the tables.
    pub(crate) fn write(
        &self,
        shape: &[usize],
        from: BoundValue,
        to: BoundValue,
        device: &Arc<GpuDevice>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let elements: usize = self.axes.iter().map(Vec::len).product();
        param(elements)?;
        param(shape.iter().product())?;
        if elements == 0 {
            return Ok(());
        }
        let half =
            |dtype| if dtype == DataType::Fp16 { ElementCell::Half } else { ElementCell::Float };
        let cells = match self.weighed {
            true => CellPair { from: half(from.1), to: half(to.1) },
            false => CellPair::of(from.1, to.1)?,
        };
        let (axes, bytes) = self.tables(shape)?;
        if bytes.is_empty() {
            return copy(&StridedPlaces::all(shape), from, to, step);
        }
        let block = DeviceBlock::with(device, &bytes).map_err(|error| error.to_string())?;
        let mut words = DispatchParams::default();
        let units = elements.div_ceil(4);
        let count = words.length(elements)?;
        let unit_count = words.length(units)?;
        let mut text = cells.from.declare(0, "x");
        text.push_str(&cells.to.declare(1, "y"));
        text.push_str("@group(0) @binding(2) var<storage, read> tables: array<vec2<u32>>;\n");
        let mut bindings = vec![from.0, to.0, ShaderBinding::Weights(block)];
        let fill = match &self.fill {
            OutsideFill::Zero => format!("{}()", cells.from.value()),
            OutsideFill::Bits(bits) => words.word(*bits),
            OutsideFill::Float(value) => words.float(*value),
            OutsideFill::Value((binding, dtype)) => {
                // It travels as the elements do.
                let float = cells.from.value() == "f32";
                let cell = if float { half(*dtype) } else { cells.from };
                text.push_str(&cell.declare(3, "filling"));
                bindings.push(binding.clone());
                cell.load("filling", "0u")
            }
        };
        let element = self.element(&axes, cells.from, &fill, &mut words)?;
        text.push_str(&words.declare(bindings.len()));
        text.push_str(&element);
        text.push_str(&entry(&unit_count));
        for lane in 0..4 {
            let number = format!("min(at * 4u + {lane}u, {count} - 1u)");
            text.push_str(&format!("let v{lane} = element({number});\n"));
        }
        text.push_str(&cells.to.store_quad("y", "at", &count));
        text.push_str("}\n");
        start("sample", &text, bindings, words, units, step)
    }

    /// The function `element(number)`.
    fn element(
        &self,
        axes: &[SampledAxis],
        cell: ElementCell,
        fill: &str,
        words: &mut DispatchParams,
    ) -> Result<String, String> {
        let mut text = format!(
            "fn element(number: u32) -> {} {{\nvar r = number;\nvar base = 0u;\n",
            cell.value()
        );
        let mut loops = Vec::new();
        for (at, axis) in axes.iter().enumerate().rev() {
            let len = words.length(axis.len)?;
            let step = words.length(axis.step)?;
            text.push_str(&format!("let c{at} = r % {len};\nr = r / {len};\n"));
            if axis.taps == 0 {
                text.push_str(&format!("base += c{at} * {step};\n"));
                continue;
            }
            let first = words.length(axis.first)?;
            let taps = words.length(axis.taps)?;
            text.push_str(&format!(
                "let f{at} = {first} + c{at} * {taps};\nif tables[f{at}].x == {OUTSIDE}u {{ return {fill}; }}\n"
            ));
            match self.weighed {
                true => loops.push((at, taps, step)),
                false => text.push_str(&format!("base += tables[f{at}].x * {step};\n")),
            }
        }
        if !self.weighed {
            text.push_str(&format!("return {};\n}}\n", cell.load("x", "base")));
            return Ok(text);
        }
        text.push_str("var total = 0.0;\n");
        let mut place = "base".to_owned();
        let mut weight = "1.0".to_owned();
        for (at, taps, step) in &loops {
            text.push_str(&format!(
                "for (var k{at} = 0u; k{at} < {taps}; k{at}++) {{\nlet e{at} = tables[f{at} + k{at}];\n\
                 let p{at} = {place} + e{at}.x * {step};\nlet w{at} = {weight} * bitcast<f32>(e{at}.y);\n"
            ));
            (place, weight) = (format!("p{at}"), format!("w{at}"));
        }
        text.push_str(&format!("total += {weight} * {};\n", cell.load("x", &place)));
        text.push_str(&"}\n".repeat(loops.len()));
        text.push_str("return total;\n}\n");
        Ok(text)
    }
}
