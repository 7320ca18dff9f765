//! The compute units of this host, as execution providers.
//!
//! The processor is always there. GPUs are where the program was built with them: on macOS, and elsewhere
//! with the feature `gpu`.

use std::sync::{Arc, OnceLock};

use galatea_coreml::{self as coreml, CoreMlProvider, NeuralEngine};
use galatea_runtime::chips::{self, ChipFacts, ChipFigure};
use galatea_runtime::cost::{ComputeUnit, CostModel, UnitCost};
use galatea_runtime::{DevicePeaks, ExecutionProvider, PlacementOptions};
use galatea_tensor::read_plain_text;

use crate::{Engine, tuning};

/// The name that leaves the choice to the program.
pub const AUTO: &str = "auto";

/// A list of providers, the preferred ones first.
pub type ProviderList = Vec<Arc<dyn ExecutionProvider>>;

/// The processor's providers.
#[must_use]
pub fn processor() -> ProviderList {
    galatea_providers::PROVIDERS.iter().map(|row| (row.make)(processor_cost())).collect()
}

/// Returns facts about this host from a file beside the tuner's records, as `galatea tune --write-chip`
/// writes it. A file that cannot be read is left out, which is logged.
fn host_facts() -> Option<&'static ChipFacts> {
    static FOUND: OnceLock<Option<ChipFacts>> = OnceLock::new();
    let read = || {
        let path = tuning::usual_file()?.with_file_name("chip.toml");
        let text = read_plain_text(&path).ok()?;
        let facts = ChipFacts::read(&text);
        facts.map_err(|error| tracing::warn!("'{}' is left out: {error}", path.display())).ok()
    };
    FOUND.get_or_init(read).as_ref()
}

/// Returns the CPU's cost, if it was measured on this host.
fn processor_cost() -> Option<UnitCost> {
    CostModel::of(host_facts()?, usize::MAX).unit(ComputeUnit::Cpu).copied()
}

/// Returns the provider for a name of Core ML's. `coreml` takes whatever it can. `coreml:CHIP` takes what the
/// Neural Engine of that chip is predicted to take, and the interpreter runs it.
fn core_ml(name: &str) -> Result<Arc<dyn ExecutionProvider>, String> {
    let Some((_, chip)) = name.split_once(':') else {
        let here = CoreMlProvider::here();
        return Ok(here.forced());
    };
    let engine = NeuralEngine::of(chip).ok_or_else(|| {
        format!("provider '{name}' found, expected coreml or coreml:CHIP with a chip such as M1 or M4 Pro")
    })?;
    Ok(Arc::new(CoreMlProvider::new().with_engine(engine)))
}

/// Units that serve the models whose configuration names them.
#[must_use]
pub fn optional() -> ProviderList {
    vec![Arc::new(CoreMlProvider::here())]
}

/// Treatment of a software GPU, which runs on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftwareGpus {
    /// It counts as a GPU, behind the real ones.
    Counted,
    /// It does not count as a GPU.
    Ignored,
}

/// Returns the peaks of an Apple chip's GPU, as far as known of the chip or its nearest relative.
#[must_use]
pub fn peaks_of(chip: &str) -> DevicePeaks {
    peaks(|figure| chips::figure(chip, figure))
}

fn peaks(known: impl Fn(ChipFigure) -> Option<f64>) -> DevicePeaks {
    let tera = known(ChipFigure::GpuTflops);
    let giga = known(ChipFigure::GpuBandwidth).or_else(|| known(ChipFigure::Bandwidth));
    DevicePeaks {
        vector_f32: tera.map(|rate| rate * 1e12),
        bytes: giga.map(|rate| rate * 1e9),
        ..DevicePeaks::default()
    }
}

impl Engine {
    /// Returns the devices for a model that is a graph, by [`providers`](Self::providers). By default the Neural Engine comes first,
    /// if there is one. Language models of checkpoints have lengths that it does not take.
    ///
    /// # Errors
    /// Fails as [`providers`](Self::providers) does.
    pub fn graph_providers(&self, name: Option<&str>) -> Result<ProviderList, String> {
        let units = self.providers(name)?;
        let here = Some(CoreMlProvider::here()).filter(|here| here.engine().is_some());
        match here.filter(|_| name.is_none_or(|name| name == AUTO)) {
            Some(here) => {
                let here: Arc<dyn ExecutionProvider> = Arc::new(here);
                Ok(std::iter::once(here).chain(units).collect())
            }
            None => Ok(units),
        }
    }

    /// Returns the routing that divides runs between these devices, which a name stands for. There is none if the
    /// name is that of one device, or only one device exists.
    #[must_use]
    pub fn routing(&self, name: Option<&str>, units: &ProviderList) -> Option<PlacementOptions> {
        let divides = name.is_none_or(|name| name == AUTO || name.contains(','));
        let several = units.iter().filter(|unit| !unit.traits().is_fallback).count() > 1;
        (divides && several).then(|| self.placement_options())
    }

    /// Returns the devices of served models that ask for none, and the routing that divides runs between them. A
    /// list names the devices; `auto` means the Neural Engine, the first of these GPUs and the CPU, as far as
    /// present.
    ///
    /// # Errors
    /// Fails as [`providers`](Self::providers) does.
    pub fn shared_providers(
        &self,
        name: &str,
        gpus: &ProviderList,
    ) -> Result<(ProviderList, Option<PlacementOptions>), String> {
        if name != AUTO {
            let units = self.providers(Some(name))?;
            // One unit is what all models run on: no model is placed by what GPUs there are.
            return Ok((units, Some(self.placement_options())));
        }
        let here = CoreMlProvider::here();
        let engine = here.engine().is_some().then(|| Arc::new(here) as Arc<dyn ExecutionProvider>);
        let units = engine.into_iter().chain(gpus.iter().take(1).cloned()).chain(processor());
        let units: ProviderList = units.collect();
        let routing = self.routing(Some(name), &units);
        Ok((units, routing))
    }

    /// All units: the first GPU, where there is one, before the processor.
    #[must_use]
    pub fn all_providers(&self) -> ProviderList {
        self.gpu_providers(SoftwareGpus::Ignored).into_iter().take(1).chain(processor()).collect()
    }

    /// The GPUs, in the order of their numbers.
    #[cfg(any(target_os = "macos", feature = "gpu"))]
    #[must_use]
    pub fn gpu_providers(&self, software: SoftwareGpus) -> ProviderList {
        let counts = |gpu: &&galatea_gpu::GpuCapabilities| {
            software == SoftwareGpus::Counted || !gpu.software
        };
        let found = galatea_gpu::devices();
        let numbers =
            found.iter().enumerate().filter(|(_, gpu)| counts(gpu)).map(|(number, _)| number);
        let open = |number| match self.gpu_provider(number) {
            Ok(provider) => Some(provider),
            Err(error) => {
                tracing::warn!(number, "a GPU is not used: {error}");
                None
            }
        };
        numbers.filter_map(open).collect()
    }

    /// The GPUs: none in this program.
    #[cfg(not(any(target_os = "macos", feature = "gpu")))]
    #[must_use]
    pub fn gpu_providers(&self, _software: SoftwareGpus) -> ProviderList {
        Vec::new()
    }

    /// The GPU with this number.
    #[cfg(any(target_os = "macos", feature = "gpu"))]
    fn gpu_provider(&self, number: usize) -> Result<Arc<dyn ExecutionProvider>, String> {
        let gpu = galatea_gpu::GpuProvider::on(self.gpus().device(number)?);
        // Macs have one GPU, which is the chip's.
        let chip = galatea_apple::ChipIdentity::detect().ok();
        let stated = chip.map_or_else(DevicePeaks::default, |chip| match host_facts() {
            Some(facts) => peaks(|figure| facts.least(figure)),
            None => peaks_of(&chip.name),
        });
        Ok(Arc::new(gpu.with_stated(stated)))
    }

    #[cfg(not(any(target_os = "macos", feature = "gpu")))]
    fn gpu_provider(&self, _number: usize) -> Result<Arc<dyn ExecutionProvider>, String> {
        Err(crate::gpus::WITHOUT.to_owned())
    }

    /// Returns the provider of that name, followed by the providers that take the nodes it cannot run. Names are
    /// `cpu`, `reference`, `gpu` or `gpu:N`, where a software GPU counts too, or `coreml`; GPU and `coreml` take
    /// whatever they can. `coreml:CHIP` plans as for that chip. Without a name, or for `auto`, returns all
    /// devices.
    ///
    /// # Errors
    /// Fails when there is no provider of that name.
    pub fn providers(&self, name: Option<&str>) -> Result<ProviderList, String> {
        let Some(name) = name.filter(|name| *name != AUTO) else { return Ok(self.all_providers()) };
        if name.contains(',') {
            return self.several(name);
        }
        let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
        if kind == "gpu" {
            let number = number.parse().map_err(|_| {
                format!("provider '{name}' found, expected gpu or gpu:N with a number")
            })?;
            let first =
                self.gpu_provider(number).map_err(|error| format!("provider '{name}': {error}"))?;
            let first = first.forced().unwrap_or(first);
            return Ok(std::iter::once(first).chain(processor()).collect());
        }
        if kind == coreml::NAME {
            let first = core_ml(name)?;
            return Ok(std::iter::once(first).chain(processor()).collect());
        }
        let provider = |name: &str| {
            let mut rows = galatea_providers::PROVIDERS.iter();
            rows.find(|row| row.name == name).map(|row| (row.make)(processor_cost()))
        };
        let chosen = provider(name).ok_or_else(|| {
            let names = galatea_providers::PROVIDERS.iter().map(|row| row.name);
            let names: Vec<&str> = [AUTO, "gpu", coreml::NAME].into_iter().chain(names).collect();
            format!("there is no provider '{name}'; there are {}", names.join(", "))
        })?;
        let reference = galatea_providers::reference::NAME;
        let behind = (name != reference).then(|| provider(reference)).flatten();
        Ok(std::iter::once(chosen).chain(behind).collect())
    }

    /// The units of a list of names, none of which takes whatever it can; the processor is behind them in any case.
    fn several(&self, names: &str) -> Result<ProviderList, String> {
        let mut units = ProviderList::new();
        for name in names.split(',').map(str::trim) {
            let unit = match name.split_once(':').unwrap_or((name, "0")) {
                ("gpu", number) => {
                    let number = number.parse().map_err(|_| {
                        format!("provider '{name}' found, expected gpu or gpu:N with a number")
                    })?;
                    self.gpu_provider(number)
                        .map_err(|error| format!("provider '{name}': {error}"))?
                }
                (coreml::NAME, _) if name.contains(':') => core_ml(name)?,
                (coreml::NAME, _) => {
                    let here = CoreMlProvider::here();
                    // Without an engine it takes nothing that it is not told to.
                    match here.engine() {
                        None => here.forced(),
                        Some(_) => Arc::new(here),
                    }
                }
                _ => {
                    Arc::clone(self.providers(Some(name))?.first().ok_or("there is no processor")?)
                }
            };
            if units.iter().any(|known| known.name() == unit.name()) {
                return Err(format!("'{name}' found twice in '{names}'"));
            }
            units.push(unit);
        }
        let behind = processor();
        let missing =
            |one: &Arc<dyn ExecutionProvider>| units.iter().all(|known| known.name() != one.name());
        let behind: ProviderList = behind.into_iter().filter(missing).collect();
        units.extend(behind);
        Ok(units)
    }
}

/// Returns whether a provider's name stands for Core ML.
pub fn is_core_ml(name: Option<&str>) -> bool {
    name.and_then(|name| name.split(':').next()) == Some(coreml::NAME)
}

/// Returns the number of the GPU that a provider's name, or no name, stands for, if it does.
pub fn gpu_number(name: Option<&str>) -> Option<usize> {
    let Some(name) = name.filter(|name| *name != AUTO) else {
        // As in `all`: the first one that is no processor.
        return first_gpu();
    };
    match name.split_once(':').unwrap_or((name, "0")) {
        ("gpu", number) => number.parse().ok(),
        _ => None,
    }
}

#[cfg(any(target_os = "macos", feature = "gpu"))]
fn first_gpu() -> Option<usize> {
    galatea_gpu::devices().iter().position(|gpu| !gpu.software)
}

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
fn first_gpu() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine() -> Engine {
        Engine::new()
    }

    fn names(providers: &ProviderList) -> Vec<&'static str> {
        providers.iter().map(|provider| provider.name()).collect()
    }

    #[test]
    fn the_reference_stands_behind_a_provider_of_the_processor() {
        assert_eq!(names(&engine().providers(Some("cpu")).unwrap()), ["cpu", "reference"]);
        assert_eq!(names(&engine().providers(Some("reference")).unwrap()), ["reference"]);
    }

    #[test]
    fn auto_is_no_name() {
        assert_eq!(
            names(&engine().providers(Some("auto")).unwrap()),
            names(&engine().providers(None).unwrap())
        );
        assert_eq!(gpu_number(Some("auto")), gpu_number(None));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = engine().providers(Some("npu")).unwrap_err();
        assert!(error.contains("'npu'") && error.contains("auto, gpu, coreml, cpu"), "{error}");
        assert!(engine().providers(Some("gpu:first")).unwrap_err().contains("gpu:N"));
        assert!(
            engine().providers(Some("coreml:Xeon")).unwrap_err().contains("such as M1 or M4 Pro")
        );
        assert_eq!(
            names(&engine().providers(Some("coreml:M1")).unwrap()),
            ["coreml", "cpu", "reference"]
        );
        assert!(engine().providers(Some("gpu:900")).unwrap_err().contains("gpu:900"));
    }
}
