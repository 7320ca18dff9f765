//! The rate limiter: which instances may execute, given resources that they share.
//!
//! A state machine without thread, lock or clock. An instance asks with [`RateLimiter::request`]; it may run once it
//! is among the granted ones, and gives its resources back with [`RateLimiter::release`]. Of those that wait, the one
//! with the smallest product of executions so far and priority is next, so that priority 2 has half the turns of
//! priority 1. Nobody overtakes it, so that large needs do not starve.

use std::fmt;

use galatea_tensor::{OrderedMap, OrderedSet};

use crate::config::inference::ModelRateLimiter;
use crate::error::ServingError;

/// Where a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceDevice {
    /// Once in the whole server.
    Global,
    /// The processor.
    Host,
    /// The GPU of this number.
    Gpu(u32),
}

/// A resource that the operator gives in a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceLimit {
    /// Name.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// The device of this number; `None` for each device. For a resource that is global it does not matter.
    pub device: Option<u32>,
}

/// Number of an instance in the rate limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(u64);

type ResourceKey = (ResourceDevice, String);

#[derive(Debug)]
struct LimitedInstance {
    needs: OrderedMap<ResourceKey, u64>,
    priority: u64,
    executions: u64,
    state: InstanceTurn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstanceTurn {
    Idle,
    Waiting,
    Running,
}

impl LimitedInstance {
    fn rank(&self) -> u64 {
        self.executions.saturating_mul(self.priority)
    }
}

/// The resources of a server and the instances that share them.
#[derive(Debug, Default)]
pub struct RateLimiter {
    explicit: Vec<ResourceLimit>,
    instances: OrderedMap<InstanceId, LimitedInstance>,
    in_use: OrderedMap<ResourceKey, u64>,
    next: u64,
}

impl RateLimiter {
    /// A limiter with the operator's resources, beside which there are no others, as in Triton. Where the operator
    /// gives none, there is as much of each as the instance with the largest need of it asks for.
    #[must_use]
    pub fn new(explicit: Vec<ResourceLimit>) -> Self {
        Self { explicit, ..Self::default() }
    }

    /// Makes an instance known.
    ///
    /// # Errors
    /// When it needs more of a resource than there is, or a resource is both global and of devices.
    pub fn register(
        &mut self,
        wishes: Option<&ModelRateLimiter>,
        device: ResourceDevice,
    ) -> Result<InstanceId, ServingError> {
        let mut needs = OrderedMap::new();
        for resource in wishes.map_or(&[][..], |wishes| &wishes.resources) {
            let place = if resource.global { ResourceDevice::Global } else { device };
            self.check_place(&resource.name, resource.global, &needs)?;
            let need = needs.entry((place, resource.name.clone())).or_insert(0_u64);
            *need = (*need).max(u64::from(resource.count));
        }
        for ((place, name), &count) in &needs {
            if let Some(limit) = self.explicit_limit(*place, name).filter(|&limit| limit < count) {
                return Err(ServingError::invalid_arg(format!(
                    "Resource count for \"{name}\" is limited to {limit} which will prevent scheduling of one or more \
                     model instances, the minimum required count is {count}"
                )));
            }
        }
        let id = InstanceId(self.next);
        self.next += 1;
        let priority = wishes.map_or(1, |wishes| u64::from(wishes.priority.max(1)));
        // One that joins late does not get all the turns that the others have had already.
        let executions =
            self.instances.values().map(LimitedInstance::rank).min().unwrap_or(0) / priority;
        let instance = LimitedInstance { needs, priority, executions, state: InstanceTurn::Idle };
        self.instances.insert(id, instance);
        Ok(id)
    }

    fn check_place(
        &self,
        name: &str,
        global: bool,
        needs: &OrderedMap<ResourceKey, u64>,
    ) -> Result<(), ServingError> {
        let known = self.instances.values().flat_map(|instance| instance.needs.keys());
        let clash = known
            .chain(needs.keys())
            .any(|(place, other)| other == name && (*place == ResourceDevice::Global) != global);
        if clash {
            return Err(ServingError::invalid_arg(format!(
                "Resource \"{name}\" is present as both global and device-specific resource in the model configuration."
            )));
        }
        Ok(())
    }

    /// Forgets an instance, giving back what it holds; tells who may run now.
    pub fn unregister(&mut self, id: InstanceId) -> Vec<InstanceId> {
        self.give_back(id);
        self.instances.remove(&id);
        self.grant()
    }

    /// An instance has work. Tells who may run now; the instance itself may be among them, or come later.
    pub fn request(&mut self, id: InstanceId) -> Vec<InstanceId> {
        if let Some(instance) = self.instances.get_mut(&id)
            && instance.state == InstanceTurn::Idle
        {
            instance.state = InstanceTurn::Waiting;
        }
        self.grant()
    }

    /// An instance has ended an execution. Tells who may run now.
    pub fn release(&mut self, id: InstanceId) -> Vec<InstanceId> {
        self.give_back(id);
        self.grant()
    }

    /// An instance has ended an execution and has work for another. It competes with those that wait, instead of
    /// standing behind them. Tells who may run now.
    pub fn renew(&mut self, id: InstanceId) -> Vec<InstanceId> {
        self.give_back(id);
        self.request(id)
    }

    /// An instance that waits or may run does not need to; its turn does not count. Tells who may run now.
    pub fn cancel(&mut self, id: InstanceId) -> Vec<InstanceId> {
        if let Some(instance) = self.instances.get_mut(&id)
            && instance.state == InstanceTurn::Running
        {
            instance.executions = instance.executions.saturating_sub(1);
        }
        self.give_back(id);
        self.grant()
    }

    fn give_back(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        if std::mem::replace(&mut instance.state, InstanceTurn::Idle) != InstanceTurn::Running {
            return;
        }
        for (resource, count) in &instance.needs {
            if let Some(used) = self.in_use.get_mut(resource) {
                *used = used.saturating_sub(*count);
            }
        }
    }

    fn grant(&mut self) -> Vec<InstanceId> {
        let waiting = self.instances.iter().filter(|(_, one)| one.state == InstanceTurn::Waiting);
        let queue: OrderedSet<(u64, InstanceId)> =
            waiting.map(|(&id, instance)| (instance.rank(), id)).collect();
        let mut granted = Vec::new();
        for (_, id) in queue {
            let Some(needs) = self.instances.get(&id).map(|instance| &instance.needs) else {
                break;
            };
            let fits = needs.iter().all(|(resource, count)| {
                let used = self.in_use.get(resource).copied().unwrap_or(0);
                used.saturating_add(*count) <= self.limit(resource)
            });
            if !fits {
                break;
            }
            for (resource, count) in needs {
                *self.in_use.entry(resource.clone()).or_default() += count;
            }
            if let Some(instance) = self.instances.get_mut(&id) {
                instance.state = InstanceTurn::Running;
                instance.executions += 1;
            }
            granted.push(id);
        }
        granted
    }

    fn limit(&self, resource: &ResourceKey) -> u64 {
        self.explicit_limit(resource.0, &resource.1).unwrap_or_else(|| {
            let needs = self.instances.values().filter_map(|instance| instance.needs.get(resource));
            needs.copied().max().unwrap_or(0)
        })
    }

    fn explicit_limit(&self, place: ResourceDevice, name: &str) -> Option<u64> {
        if self.explicit.is_empty() {
            return None;
        }
        let number = match place {
            // For one that is global a device is passed over.
            ResourceDevice::Global => None,
            ResourceDevice::Host => Some(0),
            ResourceDevice::Gpu(number) => Some(number),
        };
        let counts = |limit: &&ResourceLimit| {
            limit.name == name
                && (number.is_none() || limit.device.is_none() || limit.device == number)
        };
        let found = self.explicit.iter().filter(counts).map(|limit| limit.count);
        Some(found.max().unwrap_or(0))
    }

    /// Lists how much there is of each resource by its device, as Triton writes it to its log; empty where no instance
    /// needs any.
    #[must_use]
    pub fn resource_map(&self) -> String {
        let keys: OrderedSet<&ResourceKey> =
            self.instances.values().flat_map(|instance| instance.needs.keys()).collect();
        let mut text = String::new();
        let mut device = None;
        for key in keys {
            if device != Some(key.0) {
                text += &format!("\tDevice: {}\n", key.0);
                device = Some(key.0);
            }
            text += &format!("\t\tResource: {}\t Count: {}\n", key.1, self.limit(key));
        }
        if text.is_empty() { text } else { format!("Max Resource Map===>\n{text}") }
    }
}

impl fmt::Display for ResourceDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("GLOBAL"),
            Self::Host => f.write_str("0"),
            Self::Gpu(number) => number.fmt(f),
        }
    }
}

impl fmt::Display for ResourceLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.count)?;
        self.device.map_or(Ok(()), |device| write!(f, ":{device}"))
    }
}

#[cfg(test)]
#[path = "rate_limiter_tests.rs"]
mod tests;
