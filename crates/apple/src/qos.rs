//! The class of a thread's work, by which macOS chooses cores for it: there is no pinning on Apple
//! chips.
//!
//! Source: Apple, `sys/qos.h` and `pthread/qos.h`.

use crate::Unavailable;

/// Urgency of a thread's work, the least urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadQos {
    /// Nobody waits. Runs on efficiency cores only.
    Background,
    /// Takes its time; efficiency cores first.
    Utility,
    /// Nothing was said.
    Default,
    /// Somebody waits for it; performance cores first.
    Initiated,
    /// Somebody looks at it.
    Interactive,
}

/// The classes and their numbers in `sys/qos.h`.
#[cfg(any(target_os = "macos", apple_doubles, test))]
const CLASSES: [(ThreadQos, u32); 5] = [
    (ThreadQos::Background, 0x09),
    (ThreadQos::Utility, 0x11),
    (ThreadQos::Default, 0x15),
    (ThreadQos::Initiated, 0x19),
    (ThreadQos::Interactive, 0x21),
];

impl ThreadQos {
    /// The class of the calling thread.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS.
    pub fn current() -> Result<Self, Unavailable> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return system::current();
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        Err(Unavailable::off_macos("QoS"))
    }

    /// Makes this the class of the calling thread.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS, or when the system refuses.
    pub fn set(self) -> Result<(), Unavailable> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return system::set(self);
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        Err(Unavailable::off_macos("QoS"))
    }

    #[cfg(any(target_os = "macos", apple_doubles, test))]
    fn number(self) -> u32 {
        CLASSES.into_iter().find(|(class, _)| *class == self).map_or(0, |(_, number)| number)
    }

    /// The class with this number; what is not specified is the default.
    #[cfg(any(target_os = "macos", apple_doubles, test))]
    fn of(number: u32) -> Self {
        let found = CLASSES.into_iter().find(|(_, known)| *known == number);
        found.map_or(Self::Default, |(class, _)| class)
    }
}

/// Returns the class to which a thread of class `now` is raised to have at least `wanted`, and the class that
/// it gets back afterwards. `None` leaves the thread as it is.
fn raised(now: ThreadQos, wanted: ThreadQos) -> (Option<ThreadQos>, Option<ThreadQos>) {
    let raise = now < wanted;
    (raise.then_some(wanted), (raise && now < ThreadQos::Default).then_some(now))
}

/// A thread's class while it does more urgent work than it is there for.
#[derive(Debug)]
#[must_use = "the class is given back when this is dropped"]
pub struct RaisedQos(Option<ThreadQos>);

impl RaisedQos {
    /// Gives the calling thread this class at least. One whose work is less urgent otherwise has its
    /// own again afterwards. Nothing happens off macOS.
    pub fn to(wanted: ThreadQos) -> Self {
        let Ok(now) = ThreadQos::current() else { return Self(None) };
        let (set, back) = raised(now, wanted);
        let done = set.is_some_and(|class| class.set().is_ok());
        Self(back.filter(|_| done))
    }

    /// Gives the calling thread just this class, and the one that it had back afterwards: for work that may take its
    /// time on a thread that is urgent otherwise. Nothing happens off macOS.
    pub fn exactly(wanted: ThreadQos) -> Self {
        let Ok(now) = ThreadQos::current() else { return Self(None) };
        Self(Some(now).filter(|_| now != wanted && wanted.set().is_ok()))
    }
}

impl Drop for RaisedQos {
    fn drop(&mut self) {
        if let Some(class) = self.0 {
            // A refusal leaves a thread that is more urgent than it needs to be.
            let _ = class.set();
        }
    }
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use super::ThreadQos;
    use crate::{Unavailable, darwin};

    pub(super) fn current() -> Result<ThreadQos, Unavailable> {
        // The kernel may know classes that the enumeration has not, so it writes a number.
        let mut class = 0_u32;
        let mut relative = 0;
        // SAFETY: it takes nothing.
        let thread = unsafe { darwin::pthread_self() };
        // SAFETY: the thread is the calling one, and both results are there to be written; the
        // enumeration is one of 32 bits.
        let status = unsafe {
            darwin::pthread_get_qos_class_np(thread, (&raw mut class).cast(), &raw mut relative)
        };
        match status {
            0 => Ok(ThreadQos::of(class)),
            code => Err(Unavailable::new("QoS", format!("pthread_get_qos_class_np: {code}"))),
        }
    }

    pub(super) fn set(class: ThreadQos) -> Result<(), Unavailable> {
        let native = match class {
            ThreadQos::Background => darwin::qos_class_t::QOS_CLASS_BACKGROUND,
            ThreadQos::Utility => darwin::qos_class_t::QOS_CLASS_UTILITY,
            ThreadQos::Default => darwin::qos_class_t::QOS_CLASS_DEFAULT,
            ThreadQos::Initiated => darwin::qos_class_t::QOS_CLASS_USER_INITIATED,
            ThreadQos::Interactive => darwin::qos_class_t::QOS_CLASS_USER_INTERACTIVE,
        };
        debug_assert_eq!(native as u32, class.number());
        // SAFETY: only the calling thread's class changes.
        match unsafe { darwin::pthread_set_qos_class_self_np(native, 0) } {
            0 => Ok(()),
            code => Err(Unavailable::new("QoS", format!("pthread_set_qos_class_self_np: {code}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_their_classes() {
        for (class, number) in CLASSES {
            assert_eq!((class.number(), ThreadQos::of(number)), (number, class));
        }
        assert_eq!(ThreadQos::of(0), ThreadQos::Default);
        assert!(CLASSES.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn only_a_less_urgent_thread_is_raised_and_only_a_modest_one_gets_its_class_back() {
        let wanted = ThreadQos::Initiated;
        assert_eq!(raised(ThreadQos::Utility, wanted), (Some(wanted), Some(ThreadQos::Utility)));
        assert_eq!(raised(ThreadQos::Default, wanted), (Some(wanted), None));
        assert_eq!(raised(ThreadQos::Initiated, wanted), (None, None));
        assert_eq!(raised(ThreadQos::Interactive, wanted), (None, None));
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_the_door_says_unavailable() {
        assert_eq!(ThreadQos::current().unwrap_err().door, "QoS");
        assert_eq!(ThreadQos::Utility.set().unwrap_err().door, "QoS");
        drop(RaisedQos::to(ThreadQos::Initiated));
        drop(RaisedQos::exactly(ThreadQos::Utility));
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn a_modest_thread_has_its_class_again() {
        ThreadQos::Utility.set().unwrap();
        {
            let _raised = RaisedQos::to(ThreadQos::Initiated);
            assert_eq!(ThreadQos::current(), Ok(ThreadQos::Initiated));
        }
        assert_eq!(ThreadQos::current(), Ok(ThreadQos::Utility));
        drop(RaisedQos::exactly(ThreadQos::Background));
        assert_eq!(ThreadQos::current(), Ok(ThreadQos::Utility));
    }
}
