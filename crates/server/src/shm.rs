//! Shared memory that clients have registered, for tensors that do not travel through the socket.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use galatea_serving::{ErrorCode, ServingError};
use galatea_tensor::{OrderedMap, SharedRegion, SharedRegionError};

/// Names that Triton keeps for itself.
const RESERVED_PREFIX: &str = "triton_python_backend_shm_region_";

/// A registered region.
#[derive(Debug)]
pub(crate) struct RegisteredRegion {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) offset: u64,
    pub(crate) byte_size: u64,
    memory: SharedRegion,
    /// Windows of requests on it.
    windows: AtomicUsize,
    /// It is unregistered as soon as no request uses it.
    leaves: AtomicBool,
}

/// Regions by name.
type RegionTable = Mutex<OrderedMap<String, Arc<RegisteredRegion>>>;

/// The place of one tensor. A request keeps it to its end: a region that is unregistered meanwhile stays until then.
#[derive(Debug)]
pub(crate) struct RegionWindow {
    region: Arc<RegisteredRegion>,
    table: Arc<RegionTable>,
    offset: usize,
    len: usize,
}

impl Drop for RegionWindow {
    fn drop(&mut self) {
        let is_last = self.region.windows.fetch_sub(1, Ordering::SeqCst) == 1;
        if !is_last || !self.region.leaves.load(Ordering::SeqCst) {
            return;
        }
        let mut regions = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = |known: &Arc<RegisteredRegion>| Arc::ptr_eq(known, &self.region);
        // Another window may have been made meanwhile.
        if self.region.windows.load(Ordering::SeqCst) == 0
            && regions.get(&self.region.name).is_some_and(listed)
        {
            regions.remove(&self.region.name);
        }
    }
}

impl RegionWindow {
    /// A copy of the bytes.
    pub(crate) fn read(&self) -> Result<Vec<u8>, ServingError> {
        Ok(self.region.memory.read(self.offset, self.len)?)
    }

    /// Puts an output's bytes into the region.
    pub(crate) fn write(&self, output: &str, bytes: &[u8]) -> Result<(), ServingError> {
        if bytes.len() > self.len {
            return Err(ServingError::internal(format!(
                "shared memory size specified with the request for output '{output}' ({} bytes) should be at least {} \
                 bytes to hold the results",
                self.len,
                bytes.len()
            )));
        }
        Ok(self.region.memory.write(self.offset, bytes)?)
    }
}

/// The regions of a server.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    allowed: bool,
    regions: Arc<RegionTable>,
}

impl SharedMemory {
    /// `allowed`: clients may register regions.
    pub(crate) fn new(allowed: bool) -> Self {
        Self { allowed, regions: Arc::default() }
    }

    fn check_allowed(&self) -> Result<(), ServingError> {
        if self.allowed {
            return Ok(());
        }
        Err(ServingError::unsupported(
            "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
        ))
    }

    pub(crate) fn register(
        &self,
        name: &str,
        key: &str,
        offset: u64,
        byte_size: u64,
    ) -> Result<(), ServingError> {
        self.check_allowed()?;
        let bare = key.trim_start_matches('/');
        if bare.is_empty() {
            return Err(ServingError::invalid_arg(format!(
                "cannot register shared memory region '{name}' - invalid shm key '{key}'"
            )));
        }
        if bare.starts_with(RESERVED_PREFIX) {
            return Err(ServingError::invalid_arg(format!(
                "cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved \
                 prefix '{RESERVED_PREFIX}'"
            )));
        }
        let mut regions = self.regions();
        if regions.contains_key(name) {
            let text = format!("shared memory region '{name}' already in manager");
            return Err(ServingError::new(ErrorCode::AlreadyExists, text));
        }
        let memory = SharedRegion::open(key, offset, byte_size).map_err(|error| match error {
            SharedRegionError::NotFound => {
                ServingError::internal(format!("Unable to open shared memory region: '{key}'"))
            }
            SharedRegionError::Outside => ServingError::invalid_arg(format!(
                "failed to register shared memory region '{name}': invalid args"
            )),
            // The missing space is Triton's.
            SharedRegionError::NotMappable => ServingError::invalid_arg(format!(
                "failed to register shared memory region '{name}': unable to process address spaceInvalid argument"
            )),
        })?;
        let region = RegisteredRegion {
            name: name.to_owned(),
            key: key.to_owned(),
            offset,
            byte_size,
            memory,
            windows: AtomicUsize::new(0),
            leaves: AtomicBool::new(false),
        };
        regions.insert(name.to_owned(), Arc::new(region));
        Ok(())
    }

    /// One region, or all by name.
    pub(crate) fn status(
        &self,
        name: Option<&str>,
    ) -> Result<Vec<Arc<RegisteredRegion>>, ServingError> {
        let regions = self.regions();
        let Some(name) = name else { return Ok(regions.values().cloned().collect()) };
        let found = regions.get(name).cloned().map(|region| vec![region]);
        found.ok_or_else(|| {
            ServingError::not_found(format!("Unable to find system shared memory region: '{name}'"))
        })
    }

    /// Forgets one region or all; one that is not there is no error. As in Triton, a region that a request uses is
    /// listed until that is done.
    pub(crate) fn unregister(&self, name: Option<&str>) -> Result<(), ServingError> {
        self.check_allowed()?;
        let mut regions = self.regions();
        regions.retain(|known, region| {
            let meant = name.is_none_or(|name| name == known.as_str());
            if meant {
                region.leaves.store(true, Ordering::SeqCst);
            }
            // A window that is dropped after this sees the flag.
            !meant || region.windows.load(Ordering::SeqCst) > 0
        });
        Ok(())
    }

    /// The place of a tensor in a region; without a size there is none.
    pub(crate) fn window(
        &self,
        name: &str,
        offset: u64,
        byte_size: Option<u64>,
    ) -> Result<RegionWindow, ServingError> {
        let regions = self.regions();
        let region = regions.get(name).cloned().ok_or_else(|| {
            ServingError::not_found(format!("Unable to find shared memory region: '{name}'"))
        })?;
        if offset >= region.byte_size {
            return Err(ServingError::invalid_arg(format!(
                "Invalid offset for shared memory region: '{name}'"
            )));
        }
        if byte_size.is_some_and(|size| size.checked_add(offset).is_none()) {
            return Err(ServingError::invalid_arg(format!(
                "Integer overflow detected: byte_size ({}) + offset ({offset}) of shared memory region '{name}'",
                byte_size.unwrap_or_default()
            )));
        }
        let inside = byte_size.filter(|size| offset + size <= region.byte_size);
        let sizes = inside
            .and_then(|size| Some((usize::try_from(offset).ok()?, usize::try_from(size).ok()?)));
        let Some((offset, len)) = sizes else {
            return Err(ServingError::invalid_arg(format!(
                "Invalid offset + byte size for shared memory region: '{name}'"
            )));
        };
        region.windows.fetch_add(1, Ordering::SeqCst);
        Ok(RegionWindow { region, table: Arc::clone(&self.regions), offset, len })
    }

    fn regions(&self) -> MutexGuard<'_, OrderedMap<String, Arc<RegisteredRegion>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the error for registering CUDA memory with a server that has no CUDA.
pub(crate) fn no_cuda(name: &str) -> ServingError {
    ServingError::invalid_arg(format!(
        "failed to register CUDA shared memory region: '{name}', GPUs not supported"
    ))
}

/// Makes the error for a CUDA region by name with a server that has no CUDA.
pub(crate) fn no_cuda_region(name: &str) -> ServingError {
    ServingError::not_found(format!("Unable to find cuda shared memory region: '{name}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_tensor::SharedBlock;

    fn register(memory: &SharedMemory, name: &str) {
        let key = format!("/gshm_{name}_{}", std::process::id());
        let _block = SharedBlock::create(&key, 64, 1).unwrap();
        memory.register(name, &key, 0, 64).unwrap();
        SharedBlock::unlink(&key);
    }

    #[test]
    fn a_region_in_use_leaves_with_its_last_request() {
        let memory = SharedMemory::new(true);
        ["a", "b"].into_iter().for_each(|name| register(&memory, name));
        let names = || -> Vec<String> {
            memory.status(None).unwrap().iter().map(|region| region.name.clone()).collect()
        };
        let first = memory.window("a", 0, Some(8)).unwrap();
        let second = memory.window("a", 8, Some(8)).unwrap();
        memory.unregister(Some("a")).unwrap();
        assert_eq!(names(), ["a", "b"]);
        second.write("O", &[7; 8]).unwrap();
        assert_eq!(second.read().unwrap(), [7; 8]);
        drop(first);
        assert_eq!(names(), ["a", "b"]);
        drop(second);
        assert_eq!(names(), ["b"]);
        let window = memory.window("b", 0, Some(8)).unwrap();
        memory.unregister(None).unwrap();
        assert_eq!(names(), ["b"]);
        drop(window);
        assert!(names().is_empty());
    }

    #[test]
    fn refusals_have_their_texts() {
        let off = SharedMemory::new(false);
        assert_eq!(off.register("a", "/k", 0, 1).unwrap_err().code, ErrorCode::Unsupported);
        assert_eq!(off.unregister(None).unwrap_err().code, ErrorCode::Unsupported);
        assert!(off.status(None).unwrap().is_empty());
        let on = SharedMemory::new(true);
        let message = |key: &str| on.register("a", key, 0, 1).unwrap_err().message;
        assert!(message("//").ends_with("- invalid shm key '//'"));
        assert!(message("/triton_python_backend_shm_region_1").contains("reserved prefix"));
        assert!(message("/no_such_object_here").starts_with("Unable to open shared memory region"));
        assert_eq!(on.status(Some("a")).unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(on.window("a", 0, Some(1)).unwrap_err().code, ErrorCode::NotFound);
        on.unregister(Some("a")).unwrap();
    }
}
