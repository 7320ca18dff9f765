//! The battery, counters of watts and temperatures, and the thermal state.

use std::time::Duration;

use galatea_apple::battery::{MachineBattery, battery};
use galatea_apple::sensors::{Counters, HeatLevel, SensorSample, heat, low_power_mode};

use crate::{on, passes_on};

const SHORT: Duration = Duration::from_millis(60);

#[test]
fn a_battery_is_described_where_there_is_one() {
    let found = |mac: &str| on(mac, battery).unwrap();
    assert_eq!(found("m2-ultra-192gb"), None);
    let used = Some(MachineBattery { charge: 0.15, discharging: true });
    assert_eq!(found("m1-16gb,battery=15-discharging"), used);
    let plugged = Some(MachineBattery { charge: 0.8, discharging: false });
    assert_eq!(found("m1-16gb,battery=80"), plugged);
}

#[test]
fn what_is_not_said_of_a_battery_is_no_zero() {
    for key in ["Type", "Current Capacity", "Max Capacity"] {
        assert_eq!(on(&format!("m1-16gb,battery=80,without={key}"), battery), Ok(None), "{key}");
    }
    let unsaid = on("m1-16gb,battery=80,without=Power Source State", battery).unwrap().unwrap();
    assert!(!unsaid.discharging);
    for function in ["IOPSCopyPowerSourcesInfo", "IOPSCopyPowerSourcesList"] {
        let error = on(&format!("m1-16gb,refused={function}"), battery).unwrap_err();
        assert_eq!(error.reason, "no sources of power");
    }
    let mute = on("m1-16gb,battery=80,refused=IOPSGetPowerSourceDescription", battery);
    assert_eq!(mute, Ok(None));
}

#[test]
fn descriptions_of_power_are_given_back() {
    // No other test leaves descriptions of a battery, and this one leaves none.
    passes_on("m1-16gb,battery=80", "power::no_description_stays");
}

#[test]
#[ignore = "runs in processes of its own"]
fn no_description_stays() {
    battery().unwrap();
    let before = galatea_doubles::c::live_objects();
    for _ in 0..10 {
        battery().unwrap();
    }
    assert_eq!(galatea_doubles::c::live_objects(), before);
}

/// Reads the counters for a moment, a second time for what counts from the first.
fn sample(mac: &str) -> SensorSample {
    on(mac, || {
        let mut counters = Counters::open().unwrap();
        counters.sample(SHORT).unwrap();
        counters.sample(SHORT).unwrap()
    })
}

/// Asserts watts that were counted for a moment of a machine under load.
fn near(found: Option<f64>, watts: f64) {
    let found = found.unwrap();
    assert!((watts / 4.0..watts * 4.0).contains(&found), "{found} W, expected about {watts} W");
}

#[test]
fn watts_and_degrees_of_a_mac_at_work_are_read() {
    for mac in ["m1-16gb", "m2-ultra-192gb", "m5-max-128gb,macos=26.0"] {
        let found = sample(mac);
        near(found.cpu_watts, 5.0);
        near(found.gpu_watts, 3.0);
        near(found.engine_watts, 1.0);
        near(found.memory_watts, 0.5);
        near(found.system_watts, 12.5);
        assert_eq!((found.cpu_celsius, found.gpu_celsius), (Some(45.0), Some(41.5)), "{mac}");
    }
}

#[test]
fn counters_that_stand_still_are_absent() {
    let found = sample("m5-max-128gb,macos=27.0,counters=zeroed");
    assert_eq!((found.cpu_watts, found.engine_watts, found.memory_watts), (None, None, None));
    near(found.gpu_watts, 3.0);
    near(found.system_watts, 12.5);
}

#[test]
fn temperatures_come_from_other_sensors_before_macos_14() {
    let found = sample("m1-16gb,macos=13.0");
    // The sensor that gives a temperature below zero is left out.
    assert_eq!((found.cpu_celsius, found.gpu_celsius), (Some(45.0), Some(39.5)));
    let none = sample("m1-16gb,macos=13.0,refused=IOHIDEventSystemClientCreate");
    assert_eq!((none.cpu_celsius, none.gpu_celsius), (None, None));
}

#[test]
fn a_virtual_machine_has_no_readings() {
    assert_eq!(sample("m2-8gb,counters=absent"), SensorSample::default());
    passes_on("m2-8gb,counters=absent", "power::nothing_is_read");
}

#[test]
#[ignore = "runs in processes of its own"]
fn nothing_is_read() {
    let found = Counters::open().unwrap().sample(SHORT).unwrap();
    assert_eq!(found, SensorSample::default());
}

#[test]
fn without_the_key_of_the_machines_watts_these_are_absent() {
    let found = sample("m1-16gb,without=PSTR");
    assert_eq!(found.system_watts, None);
    near(found.cpu_watts, 5.0);
}

#[test]
fn a_sensor_library_that_panics_or_fails_is_an_error() {
    let error = |mac: &str| on(mac, || Counters::open().map(drop)).unwrap_err().to_string();
    assert!(error("m1-16gb,counters=overlong").contains("panicked"));
    for function in ["IOReportCopyAllChannels", "IOReportCreateSubscription", "IOServiceOpen"] {
        let found = error(&format!("m1-16gb,refused={function}"));
        assert!(found.starts_with("sensors is unavailable"), "{function}: {found}");
    }
}

#[test]
fn thermal_states_and_the_low_power_mode_are_told() {
    let levels = ["0", "1", "2", "3", "4"].map(|state| on(&format!("m1-16gb,heat={state}"), heat));
    use HeatLevel::{Critical, Fair, Nominal, Serious};
    assert_eq!(levels, [Nominal, Fair, Serious, Critical, Critical].map(Ok));
    assert_eq!(on("m1-16gb", low_power_mode), Ok(false));
    assert_eq!(on("m1-16gb,low-power", low_power_mode), Ok(true));
}
