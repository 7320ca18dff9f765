//! Inputs that lie on the device, and parts of them.

use std::sync::atomic::Ordering;

use crate::support;
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::DataType;

/// A session that takes bytes' worth of floats.
fn session() -> Option<(std::sync::Arc<galatea_gpu::GpuDevice>, Session)> {
    let device = support::own_device()?;
    let mut graph = Graph::new("placed");
    graph.opsets.insert(String::new(), 20);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, vec![Dim::symbol("n")]));
    graph.inputs.push(x);
    graph.add_node("", "Relu", "", &Attributes::default(), vec![Some(x)], vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
    Some((device, session))
}

#[test]
fn parts_of_an_input_on_the_device_move_alone() {
    let Some((device, session)) = session() else { return };
    let mut placed = session.allocate_input(0, &[1000]).unwrap().unwrap();
    assert_eq!((placed.shape(), placed.dtype()), (&[1000][..], DataType::Fp32));
    let before = device.counters.download_bytes.load(Ordering::Relaxed);
    let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let parts = placed.parts_mut().unwrap();
    parts.write_parts(&[0, 3992], 8, &bytes).unwrap();
    parts.copy_parts(&[(0, 16), (16, 80), (3992, 0)], 8).unwrap();
    assert_eq!(parts.read_parts(&[80, 0], 8).unwrap(), bytes);
    assert!(parts.read_parts(&[3996], 8).is_err());
    assert!(parts.write_parts(&[0], 8, &bytes[..4]).is_err());
    let moved = device.counters.download_bytes.load(Ordering::Relaxed) - before;
    assert_eq!(moved, 16, "nothing but the parts is read");
    // A shared tensor is not changed.
    let shared = placed.clone();
    assert!(placed.parts_mut().is_none());
    let all = shared.to_vec::<f32>().unwrap();
    assert_eq!((&all[..2], &all[4..6]), (&[3.0, 4.0][..], &[1.0, 2.0][..]));
    assert_eq!((all[20], all[998], all[500]), (1.0, 3.0, 0.0));
    drop(shared);
    // What was copied to the host before is copied anew.
    placed.parts_mut().unwrap().write_parts(&[4], 4, &9.0_f32.to_le_bytes()).unwrap();
    let found = session.run_tensors(Run::owned(vec![placed.clone()])).unwrap();
    assert_eq!(found[0].to_vec::<f32>().unwrap()[..2], [3.0, 9.0]);
    assert_eq!(placed.to_vec::<f32>().unwrap()[..2], [3.0, 9.0]);
}

#[test]
fn parts_need_not_begin_and_end_at_words() {
    let Some((_, session)) = session() else { return };
    let mut placed = session.allocate_input(0, &[4]).unwrap().unwrap();
    let parts = placed.parts_mut().unwrap();
    let bytes: Vec<u8> = (1..=15).collect();
    parts.write_parts(&[1], 15, &bytes).unwrap();
    parts.write_parts(&[3, 9], 2, &[90, 91, 92, 93]).unwrap();
    parts.copy_parts(&[(3, 6), (9, 13)], 3).unwrap();
    let expected = [0, 1, 2, 90, 91, 5, 90, 91, 5, 92, 93, 11, 12, 92, 93, 11];
    assert_eq!(parts.read_parts(&[0], 16).unwrap(), expected);
    assert_eq!(parts.read_parts(&[5, 0], 0).unwrap(), Vec::<u8>::new());
}

#[test]
fn what_does_not_fit_the_device_is_told() {
    let Some((_, session)) = session() else { return };
    assert!(session.allocate_input(0, &[usize::MAX / 8]).is_err());
    assert!(session.allocate_input(1, &[1]).unwrap().is_none());
}
