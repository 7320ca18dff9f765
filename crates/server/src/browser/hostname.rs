//! Names that the machine has for itself.

use galatea_apple::{LiveSysctl, SysctlSource as _};

/// The machine's name and the one that it has in its local network; empty where the system does not tell.
pub(super) fn own_names() -> Vec<String> {
    let name = sysctl_name()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok());
    name.as_deref().map(names_of).unwrap_or_default()
}

fn sysctl_name() -> Option<String> {
    LiveSysctl::open().ok()?.text("kern.hostname")
}

/// A name, and the same under `.local` where it has no dot.
fn names_of(name: &str) -> Vec<String> {
    match name.trim() {
        "" | "(none)" => Vec::new(),
        name if name.contains('.') => vec![name.to_owned()],
        name => vec![name.to_owned(), format!("{name}.local")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_its_name_and_the_one_of_its_local_network() {
        assert_eq!(names_of("box\n"), ["box", "box.local"]);
        assert_eq!(names_of("box.example.com"), ["box.example.com"]);
        assert!(names_of("(none)").is_empty() && names_of(" \n").is_empty());
    }
}
