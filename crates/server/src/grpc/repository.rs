//! The parameters of load and unload.

use std::collections::HashMap;

use galatea_serving::ServingError;
use galatea_serving::core::{LoadOverrides, UnloadDependents};

use super::proto::inference::ModelRepositoryParameter;
use super::proto::inference::model_repository_parameter::ParameterChoice;

type RepositoryParameters = HashMap<String, ModelRepositoryParameter>;

/// Refuses a repository's name: models are found by theirs alone.
///
/// # Errors
/// Fails when a name is given.
pub(super) fn no_repository(name: &str) -> Result<(), ServingError> {
    if name.is_empty() {
        Ok(())
    } else {
        Err(ServingError::unsupported("'repository_name' specification is not supported"))
    }
}

/// Reads the overrides of a load, which take the place of files on disk: `config`, and files as `file:PATH`.
///
/// # Errors
/// Fails when a parameter is none of these, or has the wrong type.
pub(super) fn overrides(parameters: RepositoryParameters) -> Result<LoadOverrides, ServingError> {
    let mut overrides = LoadOverrides::default();
    let mut parameters: Vec<_> = parameters.into_iter().collect();
    // A map has no order; of several mistakes always the same one is reported.
    parameters.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    for (key, parameter) in parameters {
        let expected = |kind: &str| {
            let text = format!("invalid value type for load parameter '{key}', expected {kind}.");
            Err(ServingError::invalid_arg(text))
        };
        match (key.as_str(), key.strip_prefix("file:"), parameter.parameter_choice) {
            ("config", _, Some(ParameterChoice::StringParam(text))) => {
                overrides.config = Some(text)
            }
            ("config", ..) => return expected("string_param"),
            (_, Some(path), Some(ParameterChoice::BytesParam(content))) => {
                overrides.files.push((path.to_owned(), content));
            }
            (_, Some(_), _) => return expected("bytes_param"),
            (_, None, _) => {
                return Err(ServingError::invalid_arg(format!(
                    "unrecognized load parameter '{key}'."
                )));
            }
        }
    }
    Ok(overrides)
}

/// Reads whether an unload includes the models that an ensemble is composed of. Other parameters are ignored.
///
/// # Errors
/// Fails when `unload_dependents` is not a boolean.
pub(super) fn dependents(
    parameters: &RepositoryParameters,
) -> Result<UnloadDependents, ServingError> {
    let choice = parameters.get("unload_dependents").map(|given| given.parameter_choice.as_ref());
    match choice {
        None | Some(Some(ParameterChoice::BoolParam(false))) => Ok(UnloadDependents::Keep),
        Some(Some(ParameterChoice::BoolParam(true))) => Ok(UnloadDependents::Unload),
        Some(_) => Err(ServingError::invalid_arg(
            "invalid value type for 'unload_dependents' parameter, expected bool_param.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn given<const N: usize>(
        parameters: [(&str, Option<ParameterChoice>); N],
    ) -> RepositoryParameters {
        let parameter = |choice| ModelRepositoryParameter { parameter_choice: choice };
        parameters.map(|(key, choice)| (key.to_owned(), parameter(choice))).into()
    }

    #[test]
    fn loads_take_a_configuration_and_files() {
        let text = ParameterChoice::StringParam("{}".to_owned());
        let content = ParameterChoice::BytesParam(Bytes::from_static(b"\x00x"));
        let overrides =
            overrides(given([("config", Some(text)), ("file:1/a", Some(content))])).unwrap();
        assert_eq!(overrides.config.as_deref(), Some("{}"));
        assert_eq!(overrides.files, [("1/a".to_owned(), Bytes::from_static(b"\x00x"))]);
    }

    #[test]
    fn loads_refuse_what_they_do_not_know() {
        let text = || Some(ParameterChoice::StringParam("x".to_owned()));
        let cases = [
            ("foo", text(), "unrecognized load parameter 'foo'."),
            (
                "config",
                Some(ParameterChoice::BoolParam(true)),
                "invalid value type for load parameter 'config', expected string_param.",
            ),
            (
                "config",
                None,
                "invalid value type for load parameter 'config', expected string_param.",
            ),
            (
                "file:1/a",
                text(),
                "invalid value type for load parameter 'file:1/a', expected bytes_param.",
            ),
        ];
        for (key, choice, text) in cases {
            assert_eq!(
                overrides(given([(key, choice)])).unwrap_err(),
                ServingError::invalid_arg(text)
            );
        }
    }

    #[test]
    fn unloads_take_dependents_along_on_request() {
        let choice = |choice| dependents(&given([("unload_dependents", choice)]));
        assert_eq!(choice(Some(ParameterChoice::BoolParam(true))), Ok(UnloadDependents::Unload));
        assert_eq!(choice(Some(ParameterChoice::BoolParam(false))), Ok(UnloadDependents::Keep));
        assert_eq!(dependents(&given([("foo", None)])), Ok(UnloadDependents::Keep));
        for wrong in [None, Some(ParameterChoice::Int64Param(1))] {
            let text = "invalid value type for 'unload_dependents' parameter, expected bool_param.";
            assert_eq!(choice(wrong), Err(ServingError::invalid_arg(text)));
        }
    }
}
