//! The largest and smallest elements of lines.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::reduce::{ArgReduce, ArgReduceKind, TopK};
use galatea_kernels::order::{FirstElements, LineAxis, LineExtreme, find_extreme, take_first};

use super::rowwise::resolve_axis;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "arg_reduce-f32",
        domain: ONNX_DOMAIN,
        ops: &["ArgMax", "ArgMin"],
        supports: |view| view.floats(&[0]),
        build: |view| Ok(Box::new(*view.operator::<ArgReduce>()?)),
    },
    CpuKernelRow {
        name: "top_k-f32",
        domain: ONNX_DOMAIN,
        ops: &["TopK"],
        supports: |view| view.floats(&[0]),
        build: |view| Ok(Box::new(*view.operator::<TopK>()?)),
    },
];

/// The axis of a shape along which lines lie.
fn lines(shape: &[usize], axis: i64) -> Result<(usize, LineAxis), String> {
    let axis = resolve_axis(axis, shape.len())?;
    let inner = shape[axis + 1..].iter().product();
    if shape.contains(&0) {
        return Err("there are no elements".into());
    }
    Ok((axis, LineAxis { len: shape[axis], inner }))
}

impl CpuKernel for ArgReduce {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (_, axis) = lines(shapes.input(0)?, self.axis)?;
        let largest = self.kind == ArgReduceKind::Max;
        let wanted = LineExtreme { largest, last: self.select_last_index };
        Ok(CpuStep::new(move |call| {
            let x = call.input::<f32>(0)?;
            let mut y = call.output::<i64>(0)?;
            find_extreme(call.exec, x, axis, wanted, y.slice());
            Ok(())
        }))
    }
}

impl CpuKernel for TopK {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (at, axis) = lines(shapes.input(0)?, self.axis)?;
        let (first, second) = (shapes.outputs.first(), shapes.outputs.get(1));
        let shape = first.or(second).and_then(Option::as_ref).or(second.and_then(Option::as_ref));
        let k = shape.and_then(|value| value.shape.get(at)).copied().ok_or("nothing is wanted")?;
        if k > axis.len {
            return Err(format!("k is {k}, the axis has {}", axis.len));
        }
        let count = shapes.input(0)?.iter().product::<usize>() / axis.len * k;
        let largest = self.largest;
        let wants = [shapes.wants(0), shapes.wants(1)];
        Ok(CpuStep::new(move |call| {
            let x = call.input::<f32>(0)?;
            let mut values = wants[0].then(|| call.output::<f32>(0)).transpose()?;
            let mut places = wants[1].then(|| call.output::<i64>(1)).transpose()?;
            // What nobody wants is written aside.
            let mut other_values = vec![0.0; if wants[0] { 0 } else { count }];
            let mut other_places = vec![0; if wants[1] { 0 } else { count }];
            let to = FirstElements {
                values: values.as_mut().map_or(&mut other_values[..], |own| own.slice()),
                places: places.as_mut().map_or(&mut other_places[..], |own| own.slice()),
            };
            take_first(call.exec, x, axis, k, largest, to);
            Ok(())
        }))
    }
}
