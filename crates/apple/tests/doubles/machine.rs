//! Chips, their features, the load of a machine and classes of threads.

use std::time::{Duration, Instant};

use galatea_apple::machine_load::{CoreTicks, UsedPages};
use galatea_apple::qos::{RaisedQos, ThreadQos};
use galatea_apple::{ChipIdentity, CpuFeature, LiveSysctl, SysctlSource};

use crate::{on, passes_on};

fn chip(mac: &str) -> ChipIdentity {
    on(mac, ChipIdentity::detect).unwrap()
}

#[test]
fn a_chip_is_what_the_kernel_says() {
    let base = chip("m1-16gb");
    assert_eq!(
        (base.name.as_str(), base.memory_bytes, base.page_bytes),
        ("Apple M1", 16 << 30, 16_384)
    );
    assert_eq!((base.fastest_cores(), base.physical_cores()), (4, 8));
    assert!(base.has(CpuFeature::Fp16) && !base.has(CpuFeature::Bf16));
    let ultra = chip("m2-ultra-192gb");
    assert_eq!((ultra.memory_bytes, ultra.physical_cores()), (192 << 30, 24));
    assert!(ultra.has(CpuFeature::Bf16) && ultra.has(CpuFeature::Int8Matrix));
    assert_eq!((ultra.has(CpuFeature::Sme), ultra.streaming_vector_bytes), (false, None));
    let max = chip("m5-max-128gb,macos=26.0");
    let names: Vec<_> = max.clusters.iter().filter_map(|kind| kind.name.as_deref()).collect();
    assert_eq!(names, ["Super", "Performance"]);
    assert_eq!(max.streaming_vector_bytes, Some(64));
    assert!(max.has(CpuFeature::Sme2));
}

#[test]
fn each_macos_tells_its_version_and_build() {
    let told = |version: &str| {
        let system = chip(&format!("m4-16gb,macos={version}")).system;
        (system.version.unwrap(), system.build.unwrap())
    };
    for (version, build) in
        [("13.0", "22A100"), ("13.3", "22D100"), ("15.0", "24A100"), ("27.0", "26A100")]
    {
        assert_eq!(told(version), (version.to_owned(), build.to_owned()));
    }
}

#[test]
fn a_kernel_that_does_not_know_a_feature_does_not_give_it() {
    let old = chip("m4-16gb,macos=13.3");
    assert!(!old.has(CpuFeature::Sme) && old.streaming_vector_bytes.is_none());
    assert!(old.has(CpuFeature::Bf16));
    assert!(chip("m4-16gb").has(CpuFeature::Sme));
}

#[test]
fn a_value_that_is_missing_or_has_another_size_is_absent() {
    let reason = |mac: &str| on(mac, ChipIdentity::detect).unwrap_err().to_string();
    assert!(reason("m1-16gb,without=hw.memsize").contains("hw.memsize"));
    assert!(reason("m1-16gb,size=hw.memsize:2").contains("hw.memsize"));
    let without = chip("m1-16gb,without=kern.osproductversion,without=hw.perflevel0.l2cachesize");
    assert_eq!((without.system.version, without.clusters[0].l2_bytes), (None, None));
    // Without kinds of core there is one, under plain names.
    let one = chip("m1-16gb,without=hw.nperflevels");
    assert_eq!((one.clusters.len(), one.physical_cores()), (1, 8));
    let narrow = chip("m1-16gb,size=hw.pagesize:4");
    assert_eq!(narrow.page_bytes, 16_384);
}

#[test]
fn texts_and_numbers_of_the_kernel_are_read() {
    let live = LiveSysctl::open().unwrap();
    assert_eq!(live.text("kern.hostname").as_deref(), Some("double.local"));
    assert_eq!(live.integer("kern.memorystatus_vm_pressure_level"), Some(1));
    assert_eq!((live.integer("hw.odd"), live.text("with\0zero")), (None, None));
}

#[test]
fn time_of_cores_goes_on_where_their_counters_begin_again() {
    passes_on("m1-16gb", "machine::counters_begin_again");
}

#[test]
#[ignore = "runs in processes of its own"]
fn counters_begin_again() {
    let first = CoreTicks::now().unwrap();
    let mut last = first;
    let start = Instant::now();
    while last.since(first).idle < 200 && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
        last = CoreTicks::now().unwrap();
    }
    assert!(last.user < first.user, "{first:?}, {last:?}");
    let between = last.since(first);
    let busy = between.busy() as f64 / between.total() as f64;
    assert!((0.1..0.4).contains(&busy), "{between:?}");
}

#[test]
fn memory_in_use_is_the_same_whatever_more_a_kernel_tells() {
    // A quarter less a sixty-fourth, an eighth and a thirty-second of the machine.
    let expected = (16_u64 << 30) / 64 * (16 - 1 + 8 + 2);
    for version in ["13.0", "15.0", "26.0"] {
        let used = on(&format!("m1-16gb,macos={version}"), UsedPages::now).unwrap();
        assert_eq!(used.bytes(16_384), expected, "{version}");
    }
}

#[test]
fn a_kernel_that_refuses_is_an_error_and_no_zero() {
    let error = on("m1-16gb,refused=host_statistics", CoreTicks::now).unwrap_err();
    assert_eq!((error.door, error.reason.as_str()), ("time of cores", "the kernel answers 5"));
    let error = on("m1-16gb,refused=host_statistics64", UsedPages::now).unwrap_err();
    assert_eq!((error.door, error.reason.as_str()), ("memory in use", "the kernel answers 5"));
}

#[test]
fn a_thread_has_the_class_that_it_was_given() {
    let all = [
        ThreadQos::Background,
        ThreadQos::Utility,
        ThreadQos::Default,
        ThreadQos::Initiated,
        ThreadQos::Interactive,
    ];
    std::thread::spawn(move || {
        assert_eq!(ThreadQos::current(), Ok(ThreadQos::Default));
        for class in all {
            class.set().unwrap();
            assert_eq!(ThreadQos::current(), Ok(class));
        }
        // Nothing is raised that is urgent already.
        drop(RaisedQos::to(ThreadQos::Initiated));
        assert_eq!(ThreadQos::current(), Ok(ThreadQos::Interactive));
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_that_may_not_change_its_class_keeps_it() {
    on("m1-16gb,refused=pthread_set_qos_class_self_np", || {
        let error = ThreadQos::Utility.set().unwrap_err();
        assert_eq!(error.reason, "pthread_set_qos_class_self_np: 1");
        drop(RaisedQos::to(ThreadQos::Interactive));
        assert_eq!(ThreadQos::current(), Ok(ThreadQos::Default));
    });
    let refused = on("m1-16gb,refused=pthread_get_qos_class_np", ThreadQos::current);
    assert_eq!(refused.unwrap_err().reason, "pthread_get_qos_class_np: 22");
}
