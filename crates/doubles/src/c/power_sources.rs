//! Doubles of the functions that describe sources of power.
//!
//! Source: Apple, `IOPowerSources.h` and `IOPSKeys.h`.

use std::ffi::c_void;

use super::core_foundation::{CfContents, CfReference};
use super::played::PlayedMac;
use super::refuse;

/// Describes the battery, without the keys that the Mac lacks.
fn description(mac: &PlayedMac) -> Option<CfReference> {
    let battery = mac.battery?;
    let state = if battery.discharging { "Battery Power" } else { "AC Power" };
    let all = [
        ("Type", CfContents::Text("InternalBattery".to_owned())),
        ("Power Source State", CfContents::Text(state.to_owned())),
        ("Current Capacity", CfContents::Number(battery.percent)),
        ("Max Capacity", CfContents::Number(100)),
    ];
    let there = all.into_iter().filter(|(key, _)| !mac.lacks(key));
    let pairs: Vec<_> = there.map(|(key, value)| (key, CfReference::new(value))).collect();
    Some(CfReference::dictionary(&pairs))
}

/// Double of `IOPSCopyPowerSourcesInfo`.
#[unsafe(no_mangle)]
extern "C-unwind" fn IOPSCopyPowerSourcesInfo() -> *const c_void {
    let mac = PlayedMac::here();
    if mac.refuses("IOPSCopyPowerSourcesInfo") {
        return std::ptr::null();
    }
    CfReference::array(description(&mac).into_iter().collect()).pointer()
}

/// The descriptions in what [`IOPSCopyPowerSourcesInfo`] gave.
fn sources(function: &str, info: *const c_void) -> Vec<CfReference> {
    match CfReference::given(function, info).contents(function) {
        CfContents::Array(sources) => sources,
        other => refuse(function, &format!("expected sources of power, found {other:?}")),
    }
}

/// Double of `IOPSCopyPowerSourcesList`.
#[unsafe(no_mangle)]
extern "C-unwind" fn IOPSCopyPowerSourcesList(info: *const c_void) -> *const c_void {
    const NAME: &str = "IOPSCopyPowerSourcesList";
    let sources = sources(NAME, info);
    if PlayedMac::here().refuses(NAME) {
        return std::ptr::null();
    }
    CfReference::array(sources.into_iter().map(|source| source.retain(NAME)).collect()).pointer()
}

/// Double of `IOPSGetPowerSourceDescription`. The caller does not own it.
#[unsafe(no_mangle)]
extern "C-unwind" fn IOPSGetPowerSourceDescription(
    info: *const c_void,
    source: *const c_void,
) -> *const c_void {
    const NAME: &str = "IOPSGetPowerSourceDescription";
    let wanted = CfReference::given(NAME, source);
    if !sources(NAME, info).contains(&wanted) {
        refuse(NAME, "the source is not one of the list");
    }
    match PlayedMac::here().refuses(NAME) {
        true => std::ptr::null(),
        false => wanted.pointer(),
    }
}
