//! Programs that the interpreter runs in the place of Core ML.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use galatea_coreml::engine::{
    CoreMlEngine, EngineError, EngineLoadOptions, NamedTensor, ProgramInterpreter,
    StatefulInterpreter,
};
use galatea_doubles::objc::core_ml::{
    self, PlayedConfiguration, PlayedCoreMl, PlayedDevice, PlayedFailure, PlayedFunction,
    PlayedInterface, PlayedKind, PlayedModel, PlayedOutput, PlayedStructure, PlayedTensor,
};
use galatea_tensor::{OrderedMap, Tensor};

use crate::{devices, features, values};

/// Function of packages that have one alone.
const MAIN: &str = "main";

fn failed(error: EngineError) -> PlayedFailure {
    PlayedFailure::error(1, &error.text)
}

/// A function of a package.
pub struct PlayedProgram {
    model: StatefulInterpreter,
    interface: PlayedInterface,
}

impl std::fmt::Debug for PlayedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlayedProgram").field("interface", &self.interface).finish()
    }
}

impl PlayedProgram {
    /// Number of `MLFeatureType` of an output; `None` for arrays.
    fn plain(&self, name: &str) -> Option<isize> {
        let feature = self.interface.outputs.iter().find(|one| one.name == name)?;
        match feature.kind {
            PlayedKind::Plain(number) => Some(number),
            _ => None,
        }
    }
}

impl PlayedModel for PlayedProgram {
    fn interface(&self) -> PlayedInterface {
        self.interface.clone()
    }

    fn predict(
        &self,
        inputs: Vec<PlayedOutput>,
        states: &mut [PlayedTensor],
    ) -> Result<Vec<PlayedOutput>, PlayedFailure> {
        let mut given: Vec<NamedTensor> = Vec::with_capacity(inputs.len());
        for input in inputs {
            if let Some(tensor) = values::given(&input.value)? {
                given.push((input.name, tensor));
            }
        }
        let mut held: OrderedMap<String, Tensor> = OrderedMap::new();
        for (feature, state) in self.interface.states.iter().zip(&*states) {
            held.insert(feature.name.clone(), values::tensor(state)?);
        }
        let outputs = self.model.run(given, &mut held).map_err(failed)?;
        for (feature, state) in self.interface.states.iter().zip(states) {
            let lost = || PlayedFailure::error(1, "a state was lost");
            *state = values::played(held.get(&feature.name).ok_or_else(lost)?)?;
        }
        let output = |(name, tensor): NamedTensor| {
            let value = values::output(&tensor, self.plain(&name))?;
            Ok(PlayedOutput { name, value })
        };
        outputs.into_iter().map(output).collect()
    }
}

/// Core ML that the interpreter plays: on the devices of the Mac that is played, with its results.
#[derive(Debug, Clone, Copy, Default)]
pub struct InterpretedCoreMl;

impl InterpretedCoreMl {
    /// Lets it play Core ML in this process.
    pub fn install() {
        core_ml::install(Arc::new(Self));
    }

    fn options(configuration: &PlayedConfiguration) -> EngineLoadOptions {
        EngineLoadOptions {
            function: configuration.function.clone(),
            ..EngineLoadOptions::default()
        }
    }
}

impl PlayedCoreMl for InterpretedCoreMl {
    fn compile(&self, package: &Path) -> Result<PathBuf, PlayedFailure> {
        let folder =
            tempfile::tempdir().map_err(|error| PlayedFailure::error(1, &error.to_string()))?;
        let into = folder.keep().join("model.mlpackage");
        ProgramInterpreter.compile(package, &into).map_err(failed)?;
        Ok(into)
    }

    fn load(
        &self,
        compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<Arc<dyn PlayedModel>, PlayedFailure> {
        let model = StatefulInterpreter::load(compiled, &Self::options(configuration));
        let model = model.map_err(failed)?;
        let interface = features::interface(model.interface())?;
        Ok(Arc::new(PlayedProgram { model, interface }))
    }

    fn plan(
        &self,
        compiled: &Path,
        configuration: &PlayedConfiguration,
    ) -> Result<PlayedStructure, PlayedFailure> {
        let rows = ProgramInterpreter.plan(compiled, &Self::options(configuration));
        let operations = devices::planned(rows.map_err(failed)?, configuration.units);
        let name = configuration.function.clone().unwrap_or_else(|| MAIN.to_owned());
        Ok(PlayedStructure::Program(vec![PlayedFunction { name, operations }]))
    }

    fn devices(&self) -> Option<Vec<PlayedDevice>> {
        devices::listed()
    }
}
