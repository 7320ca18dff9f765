//! `NSProcessInfo`: the thermal state and the low power mode of the Mac that is played.

use objc2::rc::Retained;
use objc2::runtime::{NSObject, NSObjectProtocol};
use objc2::{AnyThread, define_class, msg_send};

use crate::c::PlayedMac;

define_class!(
    // SAFETY: `NSObject` asks nothing of its subclasses.
    #[unsafe(super(NSObject))]
    #[name = "NSProcessInfo"]
    pub(crate) struct ProcessDouble;

    unsafe impl NSObjectProtocol for ProcessDouble {}

    impl ProcessDouble {
        #[unsafe(method_id(processInfo))]
        fn shared() -> Retained<Self> {
            // SAFETY: the parent's method takes nothing.
            unsafe { msg_send![super(Self::alloc().set_ivars(())), init] }
        }

        #[unsafe(method(thermalState))]
        fn thermal_state(&self) -> isize {
            PlayedMac::here().heat
        }

        #[unsafe(method(isLowPowerModeEnabled))]
        fn is_low_power(&self) -> bool {
            PlayedMac::here().low_power
        }
    }
);
