//! The compute units of this host, as execution providers.
//!
//! The processor is always there. GPUs are where the program was built with them: on macOS, and elsewhere
//! with the feature `gpu`.

use std::sync::Arc;

use galatea_runtime::ExecutionProvider;

/// A list of providers, the preferred ones first.
pub type Providers = Vec<Arc<dyn ExecutionProvider>>;

/// The processor's providers.
#[must_use]
pub fn processor() -> Providers {
    galatea_providers::all()
}

/// All units: the first GPU, where there is one, before the processor.
#[must_use]
pub fn all() -> Providers {
    gpus(Software::Ignored).into_iter().take(1).chain(processor()).collect()
}

/// Whether a processor that plays a GPU counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// It does, behind the real ones.
    Counted,
    /// It does not.
    Ignored,
}

/// The GPUs, in the order of their numbers.
#[cfg(any(target_os = "macos", feature = "gpu"))]
#[must_use]
pub fn gpus(software: Software) -> Providers {
    let counts = |gpu: &&galatea_gpu::Capabilities| software == Software::Counted || !gpu.software;
    let found = galatea_gpu::devices();
    let numbers = found.iter().enumerate().filter(|(_, gpu)| counts(gpu)).map(|(number, _)| number);
    let open = |number| match gpu(number) {
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
pub fn gpus(_software: Software) -> Providers {
    Vec::new()
}

/// The GPU with this number.
#[cfg(any(target_os = "macos", feature = "gpu"))]
fn gpu(number: usize) -> Result<Arc<dyn ExecutionProvider>, String> {
    Ok(Arc::new(galatea_gpu::GpuProvider::on(crate::gpus::device(number)?)))
}

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
fn gpu(_number: usize) -> Result<Arc<dyn ExecutionProvider>, String> {
    Err(crate::gpus::WITHOUT.to_owned())
}

/// The provider of that name with those behind it that take what it cannot run: `cpu`, `reference`,
/// `gpu` or `gpu:N`, where a processor that plays a GPU counts too, or `coreml`; both take whatever they can.
/// Without a name, all units.
///
/// # Errors
/// When there is none of that name.
pub fn named(name: Option<&str>) -> Result<Providers, String> {
    let Some(name) = name else { return Ok(all()) };
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    if kind == "gpu" {
        let number = number
            .parse()
            .map_err(|_| format!("provider '{name}' found, expected gpu or gpu:N with a number"))?;
        let first = gpu(number).map_err(|error| format!("provider '{name}': {error}"))?;
        let first = first.insisting().unwrap_or(first);
        return Ok(std::iter::once(first).chain(processor()).collect());
    }
    if name == galatea_providers::coreml::NAME {
        let first: Arc<dyn ExecutionProvider> =
            Arc::new(galatea_providers::coreml::CoreMlProvider::new());
        let first = first.insisting().unwrap_or(first);
        return Ok(std::iter::once(first).chain(processor()).collect());
    }
    let chosen = galatea_providers::by_name(name).ok_or_else(|| {
        let names = galatea_providers::PROVIDERS.iter().map(|row| row.name);
        let names: Vec<&str> = ["gpu", "coreml"].into_iter().chain(names).collect();
        format!("there is no provider '{name}'; there are {}", names.join(", "))
    })?;
    let reference = galatea_providers::reference::NAME;
    let behind = (name != reference).then(|| galatea_providers::by_name(reference)).flatten();
    Ok(std::iter::once(chosen).chain(behind).collect())
}

/// The number of the GPU that a provider's name, or no name, stands for, where it does.
pub(crate) fn gpu_number(name: Option<&str>) -> Option<usize> {
    let Some(name) = name else {
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

    fn names(providers: &Providers) -> Vec<&'static str> {
        providers.iter().map(|provider| provider.name()).collect()
    }

    #[test]
    fn the_reference_stands_behind_a_provider_of_the_processor() {
        assert_eq!(names(&named(Some("cpu")).unwrap()), ["cpu", "reference"]);
        assert_eq!(names(&named(Some("reference")).unwrap()), ["reference"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = named(Some("npu")).unwrap_err();
        assert!(error.contains("'npu'") && error.contains("gpu, coreml, cpu"), "{error}");
        assert!(named(Some("gpu:first")).unwrap_err().contains("gpu:N"));
        assert!(named(Some("gpu:900")).unwrap_err().contains("gpu:900"));
    }
}
