//! A small Objective-C runtime, and doubles of the classes that Galatea uses.
