//! Doubles of the functions that list temperature sensors, which the sensor crate asks where the SMC has none.
//!
//! Source: the crate `macmon`, and what it cites.

use std::ffi::c_void;

use super::core_foundation::{CfContents, CfReference};
use super::played::{EnergyCounters, PlayedMac};
use super::refuse;

/// Sensor with its degrees.
struct TemperatureSensor {
    name: &'static str,
    celsius: f64,
}

/// The sensors; one of them is broken.
const SENSORS: [TemperatureSensor; 4] = [
    TemperatureSensor { name: "pACC MTR Temp Sensor0", celsius: 47.0 },
    TemperatureSensor { name: "eACC MTR Temp Sensor3", celsius: 43.0 },
    TemperatureSensor { name: "eACC MTR Temp Sensor4", celsius: -4.0 },
    TemperatureSensor { name: "GPU MTR Temp Sensor1", celsius: 39.5 },
];

/// Type of an event, and where its value is.
const TEMPERATURE: i64 = 15;

/// Begin of the numbers of clients, services and events.
const CLIENT: u64 = 0x100;
const SERVICE: u64 = 0x200;
const EVENT: u64 = 0x300;

/// The sensor that an object stands for.
fn sensor(function: &str, of: *const c_void, start: u64) -> &'static TemperatureSensor {
    let contents = CfReference::given(function, of).contents(function);
    let number = match contents {
        CfContents::Other(number) => number.checked_sub(start),
        _ => None,
    };
    let index = number.and_then(|number| usize::try_from(number).ok());
    let found = index.and_then(|index| SENSORS.get(index));
    found.unwrap_or_else(|| refuse(function, &format!("expected a sensor, found {contents:?}")))
}

/// Double of `IOHIDEventSystemClientCreate`.
#[unsafe(no_mangle)]
extern "C" fn IOHIDEventSystemClientCreate(_allocator: *const c_void) -> *const c_void {
    match PlayedMac::here().refuses("IOHIDEventSystemClientCreate") {
        true => std::ptr::null(),
        false => CfReference::new(CfContents::Other(CLIENT)).pointer(),
    }
}

/// Double of `IOHIDEventSystemClientSetMatching`, for temperatures.
#[unsafe(no_mangle)]
extern "C" fn IOHIDEventSystemClientSetMatching(
    client: *const c_void,
    matching: *const c_void,
) -> i32 {
    const NAME: &str = "IOHIDEventSystemClientSetMatching";
    let client = CfReference::given(NAME, client).contents(NAME);
    let number = |key: &str| {
        let key = CfContents::Text(key.to_owned());
        let found = CfReference::given(NAME, matching).value(NAME, &key);
        found.map(|value| value.contents(NAME))
    };
    let page = number("PrimaryUsagePage") == Some(CfContents::Number(0xff00));
    let usage = number("PrimaryUsage") == Some(CfContents::Number(5));
    if client != CfContents::Other(CLIENT) || !page || !usage {
        refuse(NAME, "expected a client and the usage of temperature sensors");
    }
    1
}

/// Double of `IOHIDEventSystemClientCopyServices`: null where there is none.
#[unsafe(no_mangle)]
extern "C" fn IOHIDEventSystemClientCopyServices(client: *const c_void) -> *const c_void {
    const NAME: &str = "IOHIDEventSystemClientCopyServices";
    CfReference::given(NAME, client).contents(NAME);
    if PlayedMac::here().counters == EnergyCounters::Absent {
        return std::ptr::null();
    }
    let service = |at: usize| CfReference::new(CfContents::Other(SERVICE + at as u64));
    CfReference::array((0..SENSORS.len()).map(service).collect()).pointer()
}

/// Double of `IOHIDServiceClientCopyProperty`, of a sensor's name.
#[unsafe(no_mangle)]
extern "C" fn IOHIDServiceClientCopyProperty(
    service: *const c_void,
    key: *const c_void,
) -> *const c_void {
    const NAME: &str = "IOHIDServiceClientCopyProperty";
    let sensor = sensor(NAME, service, SERVICE);
    match CfReference::given(NAME, key).as_text(NAME).as_str() {
        "Product" => CfReference::text(sensor.name).pointer(),
        _ => std::ptr::null(),
    }
}

/// Double of `IOHIDServiceClientCopyEvent`, of a temperature.
#[unsafe(no_mangle)]
extern "C" fn IOHIDServiceClientCopyEvent(
    service: *const c_void,
    kind: i64,
    _options: i32,
    _time: i64,
) -> *const c_void {
    const NAME: &str = "IOHIDServiceClientCopyEvent";
    let found = sensor(NAME, service, SERVICE);
    if kind != TEMPERATURE {
        return std::ptr::null();
    }
    let at = SENSORS.iter().position(|known| known.name == found.name).unwrap_or(0);
    CfReference::new(CfContents::Other(EVENT + at as u64)).pointer()
}

/// Double of `IOHIDEventGetFloatValue`, of a temperature.
#[unsafe(no_mangle)]
extern "C" fn IOHIDEventGetFloatValue(event: *const c_void, field: i64) -> f64 {
    const NAME: &str = "IOHIDEventGetFloatValue";
    if field != TEMPERATURE << 16 {
        refuse(NAME, &format!("no field {field:#x} is known"));
    }
    sensor(NAME, event, EVENT).celsius
}
