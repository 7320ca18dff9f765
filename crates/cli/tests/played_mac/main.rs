//! The program on Macs that doubles of macOS's functions play.
//!
//! This test is the program, too, where [`PROGRAM`] is set: so the program itself never depends on the doubles.

#![cfg_attr(
    apple_doubles,
    allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")
)]

#[cfg(apple_doubles)]
mod chip;
#[cfg(apple_doubles)]
mod core_ml;
#[cfg(apple_doubles)]
mod selftest;
#[cfg(apple_doubles)]
mod serve;

/// Variable that makes this the program. The processes that a program starts have it as well.
#[cfg(apple_doubles)]
const PROGRAM: &str = "GALATEA_PLAYED_PROGRAM";

/// Makes a command that runs the program on a Mac.
#[cfg(apple_doubles)]
fn galatea(mac: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.env(galatea_doubles::c::VARIABLE, mac).env(PROGRAM, "1");
    command.stdin(std::process::Stdio::null());
    command
}

/// Makes the list of tests.
#[cfg(apple_doubles)]
macro_rules! trials {
    ($($module:ident::$test:ident,)*) => {
        vec![$(libtest_mimic::Trial::test(
            concat!(stringify!($module), "::", stringify!($test)),
            || {
                $module::$test();
                Ok(())
            },
        )),*]
    };
}

#[cfg(apple_doubles)]
fn main() -> std::process::ExitCode {
    if std::env::var_os(PROGRAM).is_some() {
        galatea_played::InterpretedCoreMl::install();
        return galatea_cli::main(std::env::args_os().collect());
    }
    let trials = trials![
        chip::chip_tells_what_a_mac_is,
        chip::chip_shows_no_figure_that_its_file_does_not_state,
        chip::chip_leaves_out_what_a_kernel_does_not_tell,
        selftest::the_quick_selftest_passes_on_a_mac,
        selftest::the_selftest_runs_every_feature_of_core_ml_on_every_unit,
        selftest::the_selftest_tells_what_a_mac_refuses,
        serve::the_metrics_page_has_the_load_of_a_mac,
        serve::the_metrics_page_has_the_power_and_the_heat_of_a_mac,
        serve::counters_that_stand_still_have_no_series,
        serve::a_target_is_held_for_the_machine_where_the_watts_of_the_processor_are_not_told,
        serve::a_service_without_a_home_is_served,
        serve::a_sensor_library_that_panics_leaves_the_thermal_state,
        core_ml::a_package_is_served_by_core_ml_in_a_worker,
        core_ml::a_worker_that_is_killed_is_started_again,
        core_ml::a_package_runs_in_the_server_itself_where_it_is_told_to,
        core_ml::instruments_and_profiles_see_predictions,
    ];
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}

#[cfg(not(apple_doubles))]
fn main() {}
