//! The battery.

use galatea_apple::battery::{MachineBattery, battery};

use crate::{on, passes_on};

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
