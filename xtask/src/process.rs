//! Running other programs.

use std::path::Path;
use std::process::Command;

/// Runs the command; a failing exit status is an error that names the program and its arguments.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().map_err(|e| format!("cannot run `{shown}`: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}`: {status}")) }
}

/// Standard output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let result = command.output().map_err(|e| format!("cannot run `{shown}`: {e}"))?;
    if !result.status.success() {
        return Err(format!("`{shown}`: {}", result.status));
    }
    String::from_utf8(result.stdout).map_err(|e| format!("`{shown}`: {e}"))
}

/// `cargo` of the toolchain that built xtask, in `folder`.
pub(crate) fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}

/// Text of a command, its program without the folder.
pub(crate) fn show(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = Path::new(program.as_ref()).file_name().map(|n| n.to_string_lossy().into_owned());
    let mut text = name.unwrap_or_else(|| program.into_owned());
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
