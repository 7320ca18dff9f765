//! Tests of failing devices: a device is lost, it hangs, it has no memory, a shader does not compile. The run
//! falls back or fails with the reason, and everything else goes on.

use std::sync::Arc;
use std::time::Duration;

use crate::support;
use crate::support::node::floats;
use galatea_gpu::{DeviceFault, GpuDevice, GpuError, GpuProvider, KernelShader, PoolConfig};
use galatea_graph::{Attributes, Datum, Dim, Fact, Graph, evaluate};
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, NodeClaim, PartitionRun,
    ProviderClaims, ProviderTraits, Run, RunFence, RuntimeError, Session, SessionOptions,
};
use galatea_tensor::{DataType, Tensor};

/// Runs everything on the host, at a higher price than a GPU.
#[derive(Debug)]
struct Host;

struct Evaluated(Arc<Graph>);

impl ExecutionProvider for Host {
    fn traits(&self) -> ProviderTraits {
        ProviderTraits::named("host")
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let graph = request.graph;
        let claim = |node| NodeClaim { nodes: vec![node], cost_ns: 1e12, kernel: "host".into() };
        ProviderClaims {
            claims: (0..graph.nodes.len()).map(claim).collect(),
            ..ProviderClaims::default()
        }
    }

    fn compile(&self, request: CompileRequest<'_>) -> Result<Box<dyn Executable>, RuntimeError> {
        Ok(Box::new(Evaluated(request.graph)))
    }
}

impl Executable for Evaluated {
    fn submit(&self, run: PartitionRun<'_>) -> RunFence {
        let inputs = run.inputs;
        let inputs: Vec<Tensor> =
            inputs.into_iter().map(|input| input.into_tensor().unwrap()).collect();
        let outputs = evaluate::run(&self.0, &inputs).unwrap();
        let outputs: Vec<Datum> = outputs.into_iter().map(Datum::Tensor).collect();
        RunFence::ready(Ok(outputs))
    }
}

/// The product of rows of any number and a square matrix of this width.
fn product(width: usize) -> Graph {
    let mut graph = Graph::new("product");
    graph.opsets.insert(String::new(), 17);
    let (x, y) = (graph.value_named("x"), graph.value_named("y"));
    let dims = vec![Dim::symbol("n"), Dim::Known(width)];
    graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
    graph.inputs.push(x);
    let w = graph.add_constant("w", floats(&[width, width], 1.0));
    let none = Attributes::new();
    graph.add_node("", "MatMul", "", &none, vec![Some(x), Some(w)], vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    graph
}

/// A session on the device, with the host behind it where that is wanted.
fn session(device: &Arc<GpuDevice>, width: usize, behind: bool) -> Result<Session, String> {
    let gpu: Arc<dyn ExecutionProvider> = Arc::new(GpuProvider::on(Arc::clone(device)));
    let mut providers = vec![gpu];
    if behind {
        providers.push(Arc::new(Host));
    }
    let options = SessionOptions::default();
    Session::new(product(width), &providers, &options).map_err(|error| error.to_string())
}

/// Runs a session on so many rows, and checks what it gives.
fn run(session: &Session, rows: usize, width: usize) -> Result<(), String> {
    let x = floats(&[rows, width], 1.0);
    let found =
        session.run_tensors(Run::named(&[("x", x.clone())])).map_err(|error| error.to_string())?;
    let expected = evaluate::run(&product(width), &[x]).unwrap();
    let near = galatea_tensor::Tolerance::Within(1e-3);
    galatea_tensor::compare(&found[0], &expected[0], near).map_err(|error| error.to_string())
}

#[test]
fn what_was_on_a_lost_device_runs_on_the_one_opened_in_its_place() {
    let Some(device) = support::own_device() else { return };
    let (one, other) = (session(&device, 20, false).unwrap(), session(&device, 24, false).unwrap());
    run(&one, 3, 20).unwrap();
    run(&other, 3, 24).unwrap();
    let placed = one.allocate_input(0, &[2, 20]).unwrap().unwrap();
    device.give_up("pulled out");
    assert!(device.alive().unwrap_err().to_string().contains("pulled out"));
    run(&one, 3, 20).unwrap();
    let second = device.living().unwrap();
    assert!(!Arc::ptr_eq(&device, &second));
    run(&other, 5, 24).unwrap();
    assert!(Arc::ptr_eq(&second, &device.living().unwrap()), "it is opened once");
    run(&session(&device, 20, false).unwrap(), 1, 20).unwrap();
    // What lay on the lost one is not taken for zeros.
    let error = one.run_tensors(Run::owned(vec![placed])).unwrap_err().to_string();
    assert!(error.contains("an input lies where the GPU was lost: pulled out"), "{error}");
    // A run that gave its inputs away fails with the device, and the next one succeeds.
    second.give_up("pulled out again");
    let error = one.run_tensors(Run::owned(vec![floats(&[3, 20], 1.0)])).unwrap_err().to_string();
    assert!(error.contains("pulled out again"), "{error}");
    one.run_tensors(Run::owned(vec![floats(&[3, 20], 1.0)])).unwrap();
    // Memory of runs is placed anew too.
    device.living().unwrap().give_up("pulled out for good");
    assert!(one.allocate_input(0, &[2, 20]).unwrap().is_some());
}

#[test]
fn a_device_that_is_lost_again_and_again_is_left_alone() {
    let Some(device) = support::own_device() else { return };
    for _ in 0..9 {
        device.living().unwrap().give_up("a loose contact");
    }
    let error = session(&device, 20, false).unwrap_err();
    assert!(error.contains("9 times") && error.contains("a loose contact"), "{error}");
    run(&session(&device, 20, true).unwrap(), 3, 20).unwrap();
}

#[test]
fn what_hangs_is_left_to_others_and_not_tried_again() {
    let Some(device) = support::own_device() else { return };
    let (hanging, alone) =
        (session(&device, 512, true).unwrap(), session(&device, 20, false).unwrap());
    run(&alone, 3, 20).unwrap();
    device.set_watchdog(Duration::from_micros(1));
    run(&hanging, 256, 512).unwrap();
    assert_eq!(hanging.partition_providers(), ["host"]);
    let notes = hanging.explain().notes.join("\n");
    assert!(notes.contains("did not finish within"), "{notes}");
    device.living().unwrap().set_watchdog(Duration::from_secs(120));
    run(&alone, 3, 20).unwrap();
    assert_eq!(alone.partition_providers(), ["gpu"]);
    // With nobody behind, the reason is given, the second time at once.
    let second = device.living().unwrap();
    let hanging = session(&second, 512, false).unwrap();
    second.set_watchdog(Duration::from_micros(1));
    let error = run(&hanging, 256, 512).unwrap_err();
    assert!(error.contains("did not finish within"), "{error}");
    second.living().unwrap().set_watchdog(Duration::from_secs(120));
    let error = run(&hanging, 256, 512).unwrap_err();
    assert!(error.contains("did not finish within"), "{error}");
    run(&alone, 3, 20).unwrap();
}

#[test]
fn a_model_without_room_goes_to_the_host_or_is_refused_with_the_numbers() {
    if support::device().is_none() {
        return;
    }
    let budget = PoolConfig::default().within(100_000);
    let device = GpuDevice::open_with(support::index(), &budget).unwrap();
    let error = session(&device, 200, false).and_then(|one| run(&one, 3, 200)).unwrap_err();
    assert!(error.contains("160000") && error.contains("100000"), "{error}");
    let behind = session(&device, 200, true).unwrap();
    run(&behind, 3, 200).unwrap();
    assert_eq!(behind.partition_providers(), ["host"]);
    // What a run cannot have, its inputs given away or not, the host has too.
    for owned in [false, true] {
        let small = session(&device, 20, true).unwrap();
        let x = floats(&[10_000, 20], 1.0);
        let found = match owned {
            true => small.run_tensors(Run::owned(vec![x])),
            false => small.run_tensors(Run::named(&[("x", x)])),
        };
        assert_eq!(found.unwrap()[0].shape(), [10_000, 20]);
        assert_eq!(small.partition_providers(), ["host"]);
    }
    // A partition that has run keeps its place when a later run asks for too much.
    let small = session(&device, 20, true).unwrap();
    run(&small, 3, 20).unwrap();
    let error = run(&small, 10_000, 20).unwrap_err();
    assert!(error.contains("100000"), "{error}");
    run(&small, 3, 20).unwrap();
    assert_eq!(small.partition_providers(), ["gpu"]);
}

#[test]
fn a_shader_that_does_not_compile_is_named_and_harms_no_other() {
    let Some(device) = support::own_device() else { return };
    let texts = ["nonsense", "@compute @workgroup_size(4096) fn main() {}", "fn other() {}"];
    for text in texts {
        let found = device.pipeline(&KernelShader::new("wrong", text)).unwrap_err();
        assert!(matches!(&found, GpuError::Shader { kernel, .. } if kernel == "wrong"), "{found}");
    }
    run(&session(&device, 20, false).unwrap(), 3, 20).unwrap();
}

/// Ways in which work is not done and counts as done.
const SILENT: [DeviceFault; 2] = [DeviceFault::LastDispatch, DeviceFault::IgnoredWork];

fn lost_runs(device: &GpuDevice) -> u64 {
    device.counters.lost_runs.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_run_that_is_lost_without_a_word_is_repeated_on_the_device_opened_in_its_place() {
    for fault in SILENT {
        let Some(device) = support::own_device() else { return };
        let session = session(&device, 20, false).unwrap();
        // The third run has its commands ready before.
        for rows in [3, 3, 3] {
            run(&session, rows, 20).unwrap();
        }
        assert_eq!(lost_runs(&device), 0);
        device.act_out(fault, 0);
        for rows in [3, 3, 4] {
            run(&session, rows, 20).unwrap();
        }
        assert_eq!(lost_runs(&device), 1, "{fault:?}");
        let why = device.alive().unwrap_err().to_string();
        assert!(why.contains("did not come to its end"), "{why}");
        assert_eq!(lost_runs(&device.living().unwrap()), 1);
    }
}

#[test]
fn a_run_whose_inputs_are_gone_fails_and_never_gives_numbers_of_an_earlier_one() {
    for fault in SILENT {
        let Some(device) = support::own_device() else { return };
        let session = session(&device, 20, false).unwrap();
        let owned = || session.run_tensors(Run::owned(vec![floats(&[3, 20], 1.0)]));
        let first = owned().unwrap();
        device.act_out(fault, 0);
        // Its commands may have been ready before the device began to fail.
        let failed = (0..2).find_map(|_| owned().err()).unwrap().to_string();
        assert!(failed.contains("did not come to its end"), "{failed}");
        let again = owned().unwrap();
        assert_eq!(first[0].to_vec::<f32>().unwrap(), again[0].to_vec::<f32>().unwrap());
    }
}

#[test]
fn weights_inputs_and_outputs_that_did_not_come_are_brought_anew() {
    if support::device().is_none() {
        return;
    }
    for fault in [DeviceFault::LostUploads, DeviceFault::LostCopies] {
        let pool = PoolConfig::default().unified_up_to(0);
        let device = GpuDevice::open_with(support::index(), &pool).unwrap();
        run(&session(&device, 20, false).unwrap(), 3, 20).unwrap();
        assert_eq!(lost_runs(&device), 0);
        device.act_out(fault, 0);
        let later = session(&device, 24, false).unwrap();
        for rows in [3, 3, 4] {
            run(&later, rows, 24).unwrap();
        }
        assert_eq!(lost_runs(&device), 1, "{fault:?}");
        let why = device.alive().unwrap_err().to_string();
        assert!(why.contains("a copy") && why.contains("did not come to its end"), "{why}");
    }
}

#[test]
fn parts_that_were_not_moved_on_the_device_are_an_error_to_read() {
    if support::device().is_none() {
        return;
    }
    let pool = PoolConfig::default().unified_up_to(0);
    for fault in [DeviceFault::LostUploads, DeviceFault::LostCopies] {
        let device = GpuDevice::open_with(support::index(), &pool).unwrap();
        let session = session(&device, 20, false).unwrap();
        let mut placed = session.allocate_input(0, &[2, 20]).unwrap().unwrap();
        let parts = placed.parts_mut().unwrap();
        parts.write_parts(&[0], 4, b"once").unwrap();
        parts.copy_parts(&[(0, 80)], 4).unwrap();
        assert_eq!(parts.read_parts(&[80], 4).unwrap(), b"once");
        device.act_out(fault, 0);
        match fault {
            DeviceFault::LostUploads => parts.write_parts(&[80], 4, b"over").unwrap(),
            _ => parts.copy_parts(&[(4, 80)], 4).unwrap(),
        }
        let error = parts.read_parts(&[80], 4).unwrap_err().to_string();
        assert!(error.contains("a copy did not come to its end"), "{fault:?}: {error}");
        assert!(placed.to_vec::<f32>().is_err());
    }
}

#[test]
fn more_copies_than_there_are_marks_may_be_on_their_way() {
    if support::device().is_none() {
        return;
    }
    let pool = PoolConfig::default().unified_up_to(0);
    let device = GpuDevice::open_with(support::index(), &pool).unwrap();
    let session = session(&device, 20, false).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let session = &session;
            scope.spawn(move || {
                let mut placed = session.allocate_input(0, &[20, 20]).unwrap().unwrap();
                let parts = placed.parts_mut().unwrap();
                parts.write_parts(&[0], 4, &[thread; 4]).unwrap();
                for at in 0..100 {
                    parts.copy_parts(&[(at * 4, at * 4 + 4)], 4).unwrap();
                }
                assert_eq!(parts.read_parts(&[400], 4).unwrap(), [thread; 4]);
            });
        }
    });
    assert!(device.alive().is_ok());
}

#[test]
fn a_tensor_that_stays_on_a_lost_device_is_an_error_to_read() {
    let pool = PoolConfig::default().unified_up_to(0);
    if support::device().is_none() {
        return;
    }
    let placed = |device: &Arc<GpuDevice>| {
        let session = session(device, 20, false).unwrap();
        run(&session, 3, 20).unwrap();
        (session.allocate_input(0, &[2, 20]).unwrap().unwrap(), session)
    };
    for fault in SILENT {
        let device = GpuDevice::open_with(support::index(), &pool).unwrap();
        let (unread, session) = placed(&device);
        let (read, _session) = placed(&device);
        assert_eq!(read.to_vec::<f32>().unwrap(), [0.0; 40]);
        device.act_out(fault, 0);
        // Its commands may have been ready before the device began to fail.
        (0..2).for_each(|_| run(&session, 3, 20).unwrap());
        assert!(device.alive().is_err(), "{fault:?}");
        let why = unread.as_bytes().unwrap_err().to_string();
        assert!(why.contains("cannot be read: the GPU was lost"), "{why}");
        assert!(unread.to_vec::<f32>().is_err() && unread.unaligned_bytes().is_err());
        assert!(unread.contiguous().unwrap().as_view().is_err());
        // What was read before lies on the host.
        assert_eq!(read.to_vec::<f32>().unwrap(), [0.0; 40]);
    }
    let device = GpuDevice::open_with(support::index(), &pool).unwrap();
    let (mut unread, _session) = placed(&device);
    device.give_up("pulled out");
    assert!(unread.to_vec::<f32>().unwrap_err().to_string().contains("pulled out"));
    let part = unread.parts_mut().unwrap().read_parts(&[0], 4);
    assert!(part.unwrap_err().to_string().contains("pulled out"));
}

#[test]
fn what_is_lost_on_every_device_is_left_to_others_or_refused() {
    for fault in SILENT {
        let Some(device) = support::own_device() else { return };
        device.act_out(fault, u32::MAX);
        let alone = session(&device, 20, false).unwrap();
        let error = run(&alone, 3, 20).unwrap_err();
        assert!(error.contains("did not come to its end"), "{error}");
        for _ in 0..8 {
            drop(run(&alone, 3, 20));
        }
        // The device is given up for good then, and the host has the model.
        run(&session(&device, 20, true).unwrap(), 3, 20).unwrap();
    }
}

#[test]
fn under_load_every_run_on_a_failing_device_ends_in_an_error_or_in_the_right_answer() {
    for fault in SILENT {
        let Some(device) = support::own_device() else { return };
        let session = session(&device, 20, false).unwrap();
        run(&session, 3, 20).unwrap();
        let right = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (session, device, right) = (&session, &device, &right);
                scope.spawn(move || {
                    for turn in 0..12 {
                        if thread == 0 && turn == 4 {
                            device.act_out(fault, 1);
                        }
                        match run(session, 1 + (thread + turn) % 5, 20) {
                            Ok(()) => {
                                right.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            }
                            Err(error) => assert!(error.contains("the GPU was lost"), "{error}"),
                        }
                    }
                });
            }
        });
        assert!(right.into_inner() > 8, "{fault:?}");
        run(&session, 3, 20).unwrap();
    }
}
