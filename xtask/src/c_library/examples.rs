//! The examples in C and C++: compiled by two compilers against a package of the library, and run under sanitizers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::header;
use super::package::{NAMES, PackageParts, files, is_there, lay_out};
use crate::process::{cargo, output, run};
use crate::steps::GPU;
use crate::workspace::WorkspaceFolders;

/// A language with the compilers that read its programs. The first one also makes those that are run.
struct Language {
    folder: &'static str,
    extension: &'static str,
    compilers: [&'static str; 2],
    standard: &'static str,
}

const LANGUAGES: [Language; 2] = [
    Language {
        folder: "examples/c",
        extension: "c",
        compilers: ["gcc", "clang"],
        standard: "-std=c11",
    },
    Language {
        folder: "examples/cpp",
        extension: "cpp",
        compilers: ["g++", "clang++"],
        standard: "-std=c++17",
    },
];

const HOW: &str = "the library for C is tested with gcc, g++, clang, cmake and pkg-config. On Debian `apt install g++ clang cmake pkg-config`";

/// Warnings of compilers, all of which are errors.
const WARNINGS: [&str; 4] = ["-pedantic", "-Wall", "-Wextra", "-Werror"];

/// Errors of memory end a program, as undefined behaviour does.
const SANITIZERS: [&str; 4] =
    ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

/// The program that uses the library without exceptions, and its options.
const WITHOUT_EXCEPTIONS: &str = "results";
const NO_EXCEPTIONS: [&str; 2] = ["-fno-exceptions", "-DGALATEA_NO_EXCEPTIONS"];

/// A program of another project, which finds the library by CMake.
const CMAKE_PROJECT: &str = "cmake_minimum_required(VERSION 3.16)
project(user C CXX)
find_package(galatea 0.1 REQUIRED CONFIG)
add_executable(user model.c)
target_link_libraries(user PRIVATE galatea::galatea)
";

/// Checks the header, lays out a package with the library of the tests, and compiles and runs every example with it.
///
/// # Errors
/// Fails when the header is old, a compiler refuses a program, or a program fails.
pub(crate) fn test(workspace: &WorkspaceFolders) -> Result<(), String> {
    let needed = LANGUAGES.iter().flat_map(|language| language.compilers);
    if let Some(missing) = needed.chain(["cmake", "pkg-config"]).find(|name| !is_there(name)) {
        return Err(format!("there is no {missing}: {HOW}"));
    }
    header::check(workspace)?;
    // A test of the crate brings its library along. The selection of packages is that of all tests, so that nothing is
    // compiled a second time.
    let tests = ["test", "--workspace", "--features", GPU, "--no-run", "--test", "c_api"];
    run(cargo(&workspace.root).args(tests))?;
    let package = workspace.target.join("c-package");
    if package.exists() {
        fs::remove_dir_all(&package).map_err(|error| format!("{}: {error}", package.display()))?;
    }
    let shared = workspace.target.join("debug/deps").join(NAMES.built);
    let parts = PackageParts { shared: &shared, archive: None, archive_options: "" };
    lay_out(workspace, &package, &parts)?;
    let mut count = 0;
    for language in &LANGUAGES {
        for source in files(&workspace.root.join(language.folder))? {
            if source.extension().is_some_and(|end| end == language.extension) {
                language.test(workspace, &package, &source)?;
                count += 1;
            }
        }
    }
    if count == 0 {
        return Err("there are no examples in C and C++".to_owned());
    }
    find_by_pkg_config(&package)?;
    find_by_cmake(workspace, &package)?;
    println!("{count} programs compiled and run");
    Ok(())
}

impl Language {
    /// Compiles a program with all compilers, and runs what the first one makes.
    fn test(
        &self,
        workspace: &WorkspaceFolders,
        package: &Path,
        source: &Path,
    ) -> Result<(), String> {
        let name = source.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let command = |compiler: &str| {
            let mut command = Command::new(compiler);
            command.arg(self.standard).args(WARNINGS).arg("-I").arg(package.join("include"));
            if name == WITHOUT_EXCEPTIONS {
                command.args(NO_EXCEPTIONS);
            }
            command
        };
        let [compiler, others @ ..] = &self.compilers;
        for other in others {
            run(command(other).arg("-fsyntax-only").arg(source))?;
        }
        let program = package.join(format!("{name}-{}", self.extension));
        let lib = package.join("lib");
        let mut compile = command(compiler);
        compile.args(SANITIZERS).arg(source).arg("-o").arg(&program);
        compile.arg("-L").arg(&lib).arg(format!("-Wl,-rpath,{}", lib.display()));
        run(compile.args(["-lgalatea", "-pthread"]))?;
        run(Command::new(&program).current_dir(&workspace.root))
    }
}

/// Compiles a program with what pkg-config says of the package.
fn find_by_pkg_config(package: &Path) -> Result<(), String> {
    let mut ask = Command::new("pkg-config");
    ask.env("PKG_CONFIG_PATH", package.join("lib/pkgconfig"));
    let options = output(ask.args(["--cflags", "--libs", "galatea"]))?;
    let source = package.join("share/galatea/examples/c/model.c");
    let mut compile = Command::new("gcc");
    compile.arg(source).args(options.split_whitespace());
    run(compile.arg("-o").arg(package.join("by-pkg-config")))
}

/// Builds a project that finds the package by CMake, and runs its program.
fn find_by_cmake(workspace: &WorkspaceFolders, package: &Path) -> Result<(), String> {
    let project = package.join("cmake-user");
    let write = |name: &str, text: &[u8]| {
        let path: PathBuf = project.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    write("CMakeLists.txt", CMAKE_PROJECT.as_bytes())?;
    for name in ["model.c", "check.h"] {
        let path = workspace.root.join("examples/c").join(name);
        write(name, &fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?)?;
    }
    let build = project.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&project).arg("-B").arg(&build);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", package.display())))?;
    run(Command::new("cmake").arg("--build").arg(&build))?;
    run(Command::new(build.join("user")).current_dir(&workspace.root))
}
