//! Metal texts as programs of the CPU: texts with calls of their kernels, and `shim/run.cpp`.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::translate::Checked;

/// Clang's options: Metal is C++14 without `double`, and rounds each operation of the text by itself here.
const OPTIONS: &[&str] = &[
    "-x",
    "c++",
    "-std=c++14",
    "-O1",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-Wno-unknown-attributes",
];

/// Folder in which programs are made, and the object of `run.cpp` there.
pub(crate) struct MetalCompiler {
    folder: PathBuf,
    runner: PathBuf,
}

/// Sizes that the last buffer of a kernel holds, by the buffers that they are of.
fn sized(text: &str, checked: &Checked) -> Vec<usize> {
    let fields = text.lines().skip_while(|line| !line.starts_with("struct _mslBufferSizes"));
    let fields = fields.skip(1).take_while(|line| !line.starts_with('}'));
    let number = |line: &str| -> usize {
        line.trim().strip_prefix("uint size").unwrap().trim_end_matches(';').parse().unwrap()
    };
    let binding = |number: usize| {
        let (_, variable) = checked.module.global_variables.iter().nth(number).unwrap();
        usize::try_from(variable.binding.unwrap().binding).unwrap()
    };
    fields.map(|line| binding(number(line))).collect()
}

/// A text, and the buffers of whose sizes its kernel asks.
pub(crate) struct MetalKernel {
    pub(crate) text: String,
    sized: Vec<usize>,
}

impl MetalKernel {
    pub(crate) fn new(text: String, checked: &Checked) -> Self {
        let sized = sized(&text, checked);
        Self { text, sized }
    }

    /// The lengths of buffers that the kernel asks for.
    pub(crate) fn sizes(&self, buffers: &[Vec<u8>]) -> Vec<u8> {
        let length = |&at: &usize| u32::try_from(buffers[at].len()).unwrap();
        self.sized.iter().map(length).flat_map(u32::to_le_bytes).collect()
    }

    /// The text in a namespace of this number, with what `run.cpp` asks of it: threads of a group, its shared memory,
    /// a call. Headers are left out.
    fn with_call(&self, number: usize) -> String {
        let behind = |text: &'static str| {
            let at = self.text.find(text).unwrap_or_else(|| panic!("no `{text}`"));
            &self.text[at + text.len()..]
        };
        let threads = behind("max_total_threads_per_threadgroup(").split_once(')').unwrap().0;
        let list = behind("kernel void main_(").split_once("\n) {").unwrap().0;
        let (mut shared, mut visits, mut arguments) =
            (String::new(), String::new(), Vec::<String>::new());
        for line in list.lines().map(|line| line.trim_start_matches([' ', ','])) {
            if line.is_empty() {
                continue;
            }
            if let Some(variable) = line.strip_prefix("threadgroup ") {
                let (kind, name) = variable.rsplit_once("& ").unwrap();
                shared += &format!("static {kind} shared_{name};\n");
                visits += &format!("    visit(&shared_{name}, sizeof shared_{name});\n");
                arguments.push(format!("shared_{name}"));
                continue;
            }
            let (declared, attribute) = line.split_once(" [[").unwrap();
            arguments.push(match attribute.trim_end_matches("]]") {
                "threadgroup_position_in_grid" => {
                    "metal::uint3(group[0], group[1], group[2])".into()
                }
                "threadgroups_per_grid" => "metal::uint3(groups[0], groups[1], groups[2])".into(),
                "thread_index_in_threadgroup" => "own".into(),
                "simdgroup_index_in_threadgroup" => "own / 32u".into(),
                "thread_index_in_simdgroup" => "own % 32u".into(),
                "threads_per_simdgroup" => "32u".into(),
                buffer => {
                    let at = buffer.strip_prefix("buffer(").unwrap().trim_end_matches(')');
                    let kind = declared.rsplit_once("& ").unwrap().0;
                    format!("*static_cast<{kind}*>(buffers[{at}])")
                }
            });
        }
        let own: String = self
            .text
            .lines()
            .filter(|line| !line.starts_with("#include"))
            .flat_map(|line| [line, "\n"])
            .collect();
        format!(
            "namespace k{number} {{\n{own}\n\
             const unsigned metal_threads = {threads};\n\
             {shared}\
             void metal_shared(void (*visit)(void *, unsigned long)) {{\n    (void)visit;\n{visits}}}\n\
             void metal_thread(const unsigned *group, const unsigned *groups, unsigned own, \
             void *const *buffers) {{\n    main_({});\n}}\n}}\n",
            arguments.join(", ")
        )
    }
}

/// Source of a program with these kernels.
fn source(kernels: &[&MetalKernel]) -> String {
    let mut source = "#include <metal_stdlib>\n#include <simd/simd.h>\n".to_owned();
    let mut table = String::new();
    for (number, kernel) in kernels.iter().enumerate() {
        source += &kernel.with_call(number);
        let of = |name: &str| format!("k{number}::metal_{name}");
        table += &format!("    {{{}, {}, {}}},\n", of("threads"), of("shared"), of("thread"));
    }
    source
        + "extern \"C\" {\n\
           struct MetalKernel {\n    unsigned threads;\n    void (*shared)(void (*)(void *, unsigned long));\n    \
           void (*call)(const unsigned *, const unsigned *, unsigned, void *const *);\n};\n\
           extern const MetalKernel metal_kernels[];\nconst MetalKernel metal_kernels[] = {\n"
        + &table
        + "};\n}\n"
}

/// Runs a command and returns what it writes; the error has what it says.
fn output(command: &mut Command, input: Vec<u8>) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let result = child.wait_with_output().map_err(|error| error.to_string())?;
    // A program that ends before it has read everything says why itself.
    let _ = writer.join().unwrap();
    if result.status.success() {
        return Ok(result.stdout);
    }
    let said = String::from_utf8_lossy(&result.stderr);
    let said: String = said.chars().take(1500).collect();
    Err(format!("{}: {said}", result.status))
}

impl MetalCompiler {
    /// Makes programs in this folder.
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        let made = Self { folder: folder.to_owned(), runner: folder.join("run.o") };
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let mut command = Command::new("clang++");
        command.args(["-std=c++14", "-O1", "-c"]).arg(Self::shim().join("run.cpp"));
        output(command.arg("-o").arg(&made.runner), Vec::new())?;
        Ok(made)
    }

    fn shim() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metal/shim")
    }

    /// Makes texts a program, whose name has this number.
    pub(crate) fn compile(
        &self,
        kernels: &[&MetalKernel],
        number: usize,
    ) -> Result<PathBuf, String> {
        let written = self.folder.join(format!("{number}.cpp"));
        fs::write(&written, source(kernels)).map_err(|error| error.to_string())?;
        let program = self.folder.join(format!("{number}"));
        let mut command = Command::new("clang++");
        command.args(OPTIONS).args(["-Xclang", "-cl-single-precision-constant"]);
        if cfg!(target_arch = "x86_64") {
            command.args(["-mf16c", "-mfma"]);
        }
        command.arg("-isystem").arg(Self::shim()).arg(&written);
        command.args(["-x", "none"]).arg(&self.runner).args(["-lm", "-o"]).arg(&program);
        output(&mut command, Vec::new())?;
        Ok(program)
    }
}

/// A kernel of a program.
pub(crate) struct CompiledKernel {
    pub(crate) program: PathBuf,
    pub(crate) number: usize,
}

/// Runs a kernel with these workgroups; the buffers then hold what it left in them.
pub(crate) fn run(
    kernel: &CompiledKernel,
    groups: [u32; 3],
    buffers: &mut [Vec<u8>],
) -> Result<(), String> {
    let count = u32::try_from(buffers.len()).unwrap();
    let number = u32::try_from(kernel.number).unwrap();
    let words = [number].into_iter().chain(groups).chain([count]);
    let mut input: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    for buffer in &*buffers {
        input.extend((buffer.len() as u64).to_le_bytes());
        input.extend(buffer);
    }
    let written = output(&mut Command::new(&kernel.program), input)?;
    let mut rest = &written[..];
    for buffer in buffers {
        let (own, behind) = rest.split_at_checked(buffer.len()).ok_or("too few results")?;
        buffer.copy_from_slice(own);
        rest = behind;
    }
    Ok(())
}

/// Kernels by text.
pub(crate) type Programs = HashMap<String, Result<CompiledKernel, String>>;
