//! Description of the devices of a machine, for people and programs that choose one.

use galatea_coreml::CoreMlProvider;
use galatea_providers::HostCapabilities;
use galatea_runtime::chips::MatrixUnit;
use serde_json::{Map, Value, json};

use crate::Engine;

/// Kind of a device.
///
/// ```
/// assert_eq!(galatea::DeviceClass::Cpu.name(), "cpu");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceClass {
    /// The CPU, its matrix unit included.
    Cpu,
    /// A GPU.
    Gpu,
    /// The Neural Engine.
    NeuralEngine,
}

impl DeviceClass {
    /// Returns the name of the kind.
    ///
    /// ```
    /// assert_eq!(galatea::DeviceClass::NeuralEngine.name(), "neural_engine");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::NeuralEngine => "neural_engine",
        }
    }
}

/// A device of this machine.
///
/// ```
/// let engine = galatea::Engine::new();
/// let cpu = &engine.device_list()[0];
/// assert_eq!((cpu.class, cpu.provider.as_str()), (galatea::DeviceClass::Cpu, "cpu"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceDescription {
    /// Kind.
    pub class: DeviceClass,
    /// Name by which a model asks for the device.
    pub provider: String,
    /// Name that the system or the driver gives.
    pub name: Option<String>,
    /// True if the CPU emulates the device.
    pub is_emulated: bool,
    /// Further facts, as JSON; those that the machine does not tell are absent.
    pub facts: Value,
}

impl DeviceDescription {
    /// Returns the description as JSON.
    ///
    /// ```
    /// let devices = galatea::Engine::new().device_list();
    /// assert_eq!(devices[0].json()["class"], "cpu");
    /// ```
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "class": self.class.name(),
            "provider": self.provider,
            "name": self.name,
            "emulated": self.is_emulated,
            "facts": self.facts,
        })
    }
}

impl Engine {
    /// Lists the devices of this machine: the CPU first, then GPUs, then the Neural Engine.
    ///
    /// ```
    /// for device in galatea::Engine::new().device_list() {
    ///     println!("{}: {:?}", device.provider, device.name);
    /// }
    /// ```
    #[must_use]
    pub fn device_list(&self) -> Vec<DeviceDescription> {
        std::iter::once(cpu()).chain(gpus()).chain(neural_engine()).collect()
    }
}

/// Adds a member where there is something to say.
fn put(facts: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        facts.insert(name.to_owned(), value.into());
    }
}

fn cpu() -> DeviceDescription {
    let found = HostCapabilities::detect();
    let mut facts = Map::new();
    let cores: u64 = found.cores.iter().map(|kind| kind.cores).sum();
    put(&mut facts, "cores", Some(cores));
    put(&mut facts, "kernels", Some(found.kernels.to_vec()));
    put(&mut facts, "memory_bytes", crate::host::machine_memory_bytes());
    let unit = found.matrix_unit.map(|unit| match unit {
        MatrixUnit::Amx => "amx",
        MatrixUnit::Sme => "sme",
        _ => "unknown",
    });
    put(&mut facts, "matrix_unit", unit);
    for peak in &found.peaks {
        put(&mut facts, &format!("{}_gflops", peak.unit.replace('-', "_")), Some(peak.gflops));
    }
    put(&mut facts, "bandwidth_gb_per_s", found.bandwidth_gb_per_s);
    DeviceDescription {
        class: DeviceClass::Cpu,
        provider: galatea_providers::cpu::NAME.to_owned(),
        name: found.chip,
        is_emulated: false,
        facts: Value::Object(facts),
    }
}

#[cfg(any(target_os = "macos", feature = "gpu"))]
fn gpus() -> Vec<DeviceDescription> {
    let of = |(number, gpu): (usize, galatea_gpu::GpuCapabilities)| DeviceDescription {
        class: DeviceClass::Gpu,
        provider: format!("gpu:{number}"),
        name: Some(gpu.name),
        is_emulated: gpu.software,
        facts: json!({
            "driver": gpu.driver,
            "interface": gpu.backend,
            "unified_memory": gpu.unified,
            "fp16": gpu.f16,
            "buffer_bytes": gpu.buffer_bytes,
        }),
    };
    galatea_gpu::devices().into_iter().enumerate().map(of).collect()
}

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
fn gpus() -> Vec<DeviceDescription> {
    Vec::new()
}

fn neural_engine() -> Option<DeviceDescription> {
    let here = CoreMlProvider::here();
    let engine = here.engine()?;
    let mut facts = Map::new();
    put(&mut facts, "cores", Some(engine.cores));
    put(&mut facts, "engines", Some(engine.engines));
    put(&mut facts, "generation", engine.generation);
    put(&mut facts, "fp16_tops", Some(engine.fp16_tops));
    put(&mut facts, "stated_tops", engine.stated_tops);
    Some(DeviceDescription {
        class: DeviceClass::NeuralEngine,
        provider: galatea_coreml::NAME.to_owned(),
        name: Some(engine.chip.clone()),
        is_emulated: false,
        facts: Value::Object(facts),
    })
}
