//! Registration of shared memory, and tensors in it.

use std::collections::HashMap;

use galatea_serving::ServingError;

use super::proto::inference::infer_parameter::ParameterChoice;
use super::proto::inference::system_shared_memory_status_response::RegionStatus;
use super::proto::inference::{
    InferParameter, SystemSharedMemoryRegisterRequest, SystemSharedMemoryStatusResponse,
};
use crate::shm::{RegionWindow, SharedMemory};

pub(super) fn status(
    memory: &SharedMemory,
    name: &str,
) -> Result<SystemSharedMemoryStatusResponse, ServingError> {
    let regions = memory.status(Some(name).filter(|name| !name.is_empty()))?;
    let message = |region: &crate::shm::RegisteredRegion| RegionStatus {
        name: region.name.clone(),
        key: region.key.clone(),
        offset: region.offset,
        byte_size: region.byte_size,
    };
    let regions = regions.iter().map(|region| (region.name.clone(), message(region))).collect();
    Ok(SystemSharedMemoryStatusResponse { regions })
}

pub(super) fn register(
    memory: &SharedMemory,
    request: &SystemSharedMemoryRegisterRequest,
) -> Result<(), ServingError> {
    memory.register(&request.name, &request.key, request.offset, request.byte_size)
}

/// Place in shared memory as a tensor's parameters name it.
pub(super) struct NamedWindow<'a> {
    region: &'a str,
    offset: u64,
    bytes: u64,
}

impl NamedWindow<'_> {
    /// Looks the region up.
    ///
    /// # Errors
    /// Fails when there is no such region, or the place does not lie inside.
    pub(super) fn window(&self, memory: &SharedMemory) -> Result<RegionWindow, ServingError> {
        memory.window(self.region, self.offset, Some(self.bytes))
    }
}

/// Reads the place that the parameters of a tensor name; none if they name none.
///
/// # Errors
/// Fails when a parameter is of a wrong type or the size is missing.
pub(super) fn named<'a>(
    tensor: &str,
    parameters: &'a HashMap<String, InferParameter>,
) -> Result<Option<NamedWindow<'a>>, ServingError> {
    let Some(region) = parameters.get("shared_memory_region") else {
        let alone = ["shared_memory_offset", "shared_memory_byte_size"]
            .into_iter()
            .find(|name| parameters.contains_key(*name));
        return match alone {
            Some(name) => Err(ServingError::invalid_arg(format!(
                "'{name}' can not be specified without 'shared_memory_region' parameter for tensor '{tensor}'"
            ))),
            None => Ok(None),
        };
    };
    let wrong = |name: &str, what: &str| {
        ServingError::invalid_arg(format!(
            "invalid value type for '{name}' parameter for tensor '{tensor}', expected {what}."
        ))
    };
    let Some(ParameterChoice::StringParam(region)) = &region.parameter_choice else {
        return Err(wrong("shared_memory_region", "string_param"));
    };
    let number = |name: &str| match parameters.get(name).map(|value| &value.parameter_choice) {
        None => Ok(None),
        Some(Some(ParameterChoice::Int64Param(value))) => {
            u64::try_from(*value).map(Some).map_err(|_| {
                ServingError::invalid_arg(format!(
                    "invalid value for '{name}' parameter for tensor '{tensor}', expected >= 0"
                ))
            })
        }
        Some(_) => Err(wrong(name, "int64_param")),
    };
    let offset = number("shared_memory_offset")?.unwrap_or(0);
    let Some(size) = number("shared_memory_byte_size")? else {
        return Err(ServingError::invalid_arg(format!(
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor \
             '{tensor}'"
        )));
    };
    Ok(Some(NamedWindow { region, offset, bytes: size }))
}
