//! Doubles of IOReport's channels: counters of energy, and times in states of cores and of the GPU.
//!
//! Source: the crate `macmon`, and what it cites. A channel is a dictionary whose keys are this file's own: callers look
//! into it by IOReport's functions alone.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::time::Instant;

use super::core_foundation::{CfContents, CfPair, CfReference};
use super::played::{EnergyCounters, PlayedMac};
use super::refuse;

/// Keys of a channel.
const GROUP: &str = "group";
const SUBGROUP: &str = "subgroup";
const CHANNEL: &str = "channel";
const UNIT: &str = "unit";
/// Energy that is counted in a second, or the time in a state of a second, in the channel's unit.
const RATE: &str = "rate";
/// Count so far.
const VALUE: &str = "value";

/// Key of the channels of a report.
const CHANNELS: &str = "IOReportChannels";

/// Share of a second in each of a channel's states, in thousandths.
const STATES: [(&str, i64); 4] = [("IDLE", 500), ("V0P0", 100), ("V1P1", 200), ("V2P2", 200)];

/// Number that tells a subscription from other objects.
const SUBSCRIPTION: u64 = 0x400;

/// Channel of a Mac.
struct ReportChannel {
    group: &'static str,
    subgroup: &'static str,
    channel: String,
    unit: &'static str,
    rate: i64,
}

/// The channels of a Mac. Energy is that of 5 W of the CPU, 3 W of the GPU, 1 W of the engine and 0.5 W of memory.
fn channels(mac: &PlayedMac) -> Vec<ReportChannel> {
    let zeroed = mac.counters == EnergyCounters::Zeroed;
    let energy = |channel: &str, unit, rate| ReportChannel {
        group: "Energy Model",
        subgroup: "",
        channel: channel.to_owned(),
        unit,
        rate,
    };
    // What programs may not read any more stands still.
    let shut = |rate: i64| if zeroed { 0 } else { rate };
    let states = |group, subgroup, channel: String| ReportChannel {
        group,
        subgroup,
        channel,
        unit: "24Mticks",
        rate: 1000,
    };
    let core = |name: &str| states("CPU Stats", "CPU Core Performance States", name.to_owned());
    let slow = if mac.chip.kinds.iter().any(|kind| kind.name == "Efficiency") {
        "ECPU000"
    } else {
        "MCPU000"
    };
    let mut all = vec![
        energy("CPU Energy", "mJ", shut(5000)),
        energy("GPU Energy", "nJ", 3_000_000_000),
        energy("ANE", "mJ", shut(1000)),
        energy("DRAM", "uJ", shut(500_000)),
        energy("ISP", "mJ", 7000),
        core("PCPU000"),
        core(slow),
        states("GPU Stats", "GPU Performance States", "GPUPH".to_owned()),
    ];
    match mac.counters {
        EnergyCounters::Absent => all.clear(),
        EnergyCounters::Overlong => all.push(energy(&"long".repeat(50), "mJ", 0)),
        EnergyCounters::Working | EnergyCounters::Zeroed => {}
    }
    all
}

impl ReportChannel {
    fn object(&self) -> CfReference {
        CfReference::dictionary(&[
            (GROUP, CfReference::text(self.group)),
            (SUBGROUP, CfReference::text(self.subgroup)),
            (CHANNEL, CfReference::text(&self.channel)),
            (UNIT, CfReference::text(self.unit)),
            (RATE, CfReference::new(CfContents::Number(self.rate))),
        ])
    }
}

/// A field of a channel, which the channel owns.
fn field(function: &str, of: CfReference, key: &str) -> Option<CfReference> {
    of.value(function, &CfContents::Text(key.to_owned()))
}

fn number(function: &str, of: CfReference, key: &str) -> Option<i64> {
    match field(function, of, key)?.contents(function) {
        CfContents::Number(value) => Some(value),
        _ => None,
    }
}

/// Items of a report.
fn items(function: &str, of: CfReference) -> Vec<CfReference> {
    match field(function, of, CHANNELS).map(|items| items.contents(function)) {
        Some(CfContents::Array(items)) => items,
        other => refuse(function, &format!("expected channels, found {other:?}")),
    }
}

/// Copies a channel with another count; the caller owns it.
fn counted(function: &str, of: CfReference, value: i64) -> CfReference {
    let CfContents::Dictionary(pairs) = of.contents(function) else {
        refuse(function, "expected a channel")
    };
    let kept = pairs.into_iter().filter(|pair| pair.key.as_text(function) != VALUE);
    let kept = kept
        .map(|pair| CfPair { key: pair.key.retain(function), value: pair.value.retain(function) });
    let value = CfPair {
        key: CfReference::text(VALUE),
        value: CfReference::new(CfContents::Number(value)),
    };
    CfReference::new(CfContents::Dictionary(kept.chain([value]).collect()))
}

fn report(items: Vec<CfReference>) -> *const c_void {
    CfReference::dictionary(&[(CHANNELS, CfReference::array(items))]).pointer()
}

/// Double of `IOReportCopyAllChannels`.
#[unsafe(no_mangle)]
extern "C" fn IOReportCopyAllChannels(_one: u64, _two: u64) -> *const c_void {
    let mac = PlayedMac::here();
    if mac.refuses("IOReportCopyAllChannels") {
        return std::ptr::null();
    }
    report(channels(&mac).iter().map(ReportChannel::object).collect())
}

/// Double of `IOReportCreateSubscription`.
///
/// # Safety
/// `subscribed` is there to be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn IOReportCreateSubscription(
    _one: *const c_void,
    channels: *const c_void,
    subscribed: *mut *const c_void,
    _two: u64,
    _three: *const c_void,
) -> *const c_void {
    const NAME: &str = "IOReportCreateSubscription";
    let items = items(NAME, CfReference::given(NAME, channels));
    if PlayedMac::here().refuses(NAME) {
        return std::ptr::null();
    }
    // It may leave out channels, and order them anew.
    let copies = items.into_iter().rev().map(|item| item.retain(NAME)).collect();
    // SAFETY: the caller gives the place.
    unsafe { *subscribed = report(copies) };
    CfReference::new(CfContents::Other(SUBSCRIPTION)).pointer()
}

/// Double of `IOReportCreateSamples`.
#[unsafe(no_mangle)]
extern "C" fn IOReportCreateSamples(
    subscription: *const c_void,
    channels: *const c_void,
    _one: *const c_void,
) -> *const c_void {
    const NAME: &str = "IOReportCreateSamples";
    static START: OnceLock<Instant> = OnceLock::new();
    if CfReference::given(NAME, subscription).contents(NAME) != CfContents::Other(SUBSCRIPTION) {
        refuse(NAME, "expected a subscription");
    }
    let microseconds = START.get_or_init(Instant::now).elapsed().as_micros();
    let sampled = |item: CfReference| {
        let rate = number(NAME, item, RATE).unwrap_or(0);
        let count = i128::from(rate) * microseconds.cast_signed() / 1_000_000;
        counted(NAME, item, i64::try_from(count).unwrap_or(i64::MAX))
    };
    let items = items(NAME, CfReference::given(NAME, channels));
    report(items.into_iter().map(sampled).collect())
}

/// Double of `IOReportCreateSamplesDelta`.
#[unsafe(no_mangle)]
extern "C" fn IOReportCreateSamplesDelta(
    before: *const c_void,
    after: *const c_void,
    _one: *const c_void,
) -> *const c_void {
    const NAME: &str = "IOReportCreateSamplesDelta";
    let [before, after] = [before, after].map(|of| items(NAME, CfReference::given(NAME, of)));
    if before.len() != after.len() {
        refuse(NAME, "expected two samples of the same channels");
    }
    let value = |of| number(NAME, of, VALUE).unwrap_or(0);
    let delta = |(before, after)| counted(NAME, after, value(after) - value(before));
    report(before.into_iter().zip(after).map(delta).collect())
}

/// A text of a channel, which the channel owns.
fn text(function: &str, of: *const c_void, key: &str) -> *const c_void {
    let found = field(function, CfReference::given(function, of), key);
    found.map_or(std::ptr::null(), CfReference::pointer)
}

/// Double of `IOReportChannelGetGroup`.
#[unsafe(no_mangle)]
extern "C" fn IOReportChannelGetGroup(of: *const c_void) -> *const c_void {
    text("IOReportChannelGetGroup", of, GROUP)
}

/// Double of `IOReportChannelGetSubGroup`.
#[unsafe(no_mangle)]
extern "C" fn IOReportChannelGetSubGroup(of: *const c_void) -> *const c_void {
    text("IOReportChannelGetSubGroup", of, SUBGROUP)
}

/// Double of `IOReportChannelGetChannelName`.
#[unsafe(no_mangle)]
extern "C" fn IOReportChannelGetChannelName(of: *const c_void) -> *const c_void {
    text("IOReportChannelGetChannelName", of, CHANNEL)
}

/// Double of `IOReportChannelGetUnitLabel`.
#[unsafe(no_mangle)]
extern "C" fn IOReportChannelGetUnitLabel(of: *const c_void) -> *const c_void {
    text("IOReportChannelGetUnitLabel", of, UNIT)
}

/// Double of `IOReportChannelGetChannelID`, which only channels of another kind are asked for.
#[unsafe(no_mangle)]
extern "C" fn IOReportChannelGetChannelID(_of: *const c_void) -> u64 {
    refuse("IOReportChannelGetChannelID", "no channel has a number")
}

/// Double of `IOReportChannelGetDriverID`, which only channels of another kind are asked for.
#[unsafe(no_mangle)]
extern "C" fn IOReportChannelGetDriverID(_of: *const c_void) -> u64 {
    refuse("IOReportChannelGetDriverID", "no channel has a driver")
}

/// Double of `IOReportSimpleGetIntegerValue`.
#[unsafe(no_mangle)]
extern "C" fn IOReportSimpleGetIntegerValue(of: *const c_void, _one: i32) -> i64 {
    const NAME: &str = "IOReportSimpleGetIntegerValue";
    number(NAME, CfReference::given(NAME, of), VALUE).unwrap_or(0)
}

/// Double of `IOReportStateGetCount`.
#[unsafe(no_mangle)]
extern "C" fn IOReportStateGetCount(_of: *const c_void) -> i32 {
    i32::try_from(STATES.len()).unwrap_or(0)
}

/// Finds a state.
fn state(function: &str, index: i32) -> (&'static str, i64) {
    let found = usize::try_from(index).ok().and_then(|index| STATES.get(index));
    *found.unwrap_or_else(|| refuse(function, &format!("state {index} of {}", STATES.len())))
}

/// Double of `IOReportStateGetNameForIndex`. The caller does not own it.
#[unsafe(no_mangle)]
extern "C" fn IOReportStateGetNameForIndex(_of: *const c_void, index: i32) -> *const c_void {
    static NAMES: OnceLock<Vec<CfReference>> = OnceLock::new();
    const NAME: &str = "IOReportStateGetNameForIndex";
    let names =
        NAMES.get_or_init(|| STATES.iter().map(|(name, _)| CfReference::text(name)).collect());
    state(NAME, index);
    names[usize::try_from(index).unwrap_or(0)].pointer()
}

/// Double of `IOReportStateGetResidency`.
#[unsafe(no_mangle)]
extern "C" fn IOReportStateGetResidency(of: *const c_void, index: i32) -> i64 {
    const NAME: &str = "IOReportStateGetResidency";
    let total = number(NAME, CfReference::given(NAME, of), VALUE).unwrap_or(0);
    total * state(NAME, index).1 / 1000
}
