//! `galatea chat` on a terminal, which the program `script` makes.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes where all is well.
const LONG: Duration = Duration::from_secs(120);

/// A program on a terminal: what is typed, and what is seen.
struct TypedProgram {
    program: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<String>>,
}

impl TypedProgram {
    /// Starts a chat; nothing where there is no `script`.
    fn chat(model: &str) -> Option<Self> {
        let line = format!("'{}' chat '{model}' --temperature=0", env!("CARGO_BIN_EXE_galatea"));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut program = command.spawn().ok()?;
        let keys = program.stdin.take().unwrap();
        let mut output = program.stdout.take().unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&seen);
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut part) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&part[..count]));
            }
        });
        Some(Self { program, keys, seen })
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let seen = self.seen.lock().unwrap().clone();
            if is_so(&seen) {
                return;
            }
            assert!(begin.elapsed() < LONG, "{what}: {seen:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a text was seen so many times, and nothing but a prompt stands behind it.
    fn until(&self, text: &str, count: usize) {
        self.wait(text, |seen| {
            seen.matches(text).count() >= count && plain(seen).ends_with("\n> ")
        });
    }
}

/// A text without the sequences that move the cursor.
fn plain(seen: &str) -> String {
    let mut parts = seen.split("\x1b[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end =
            part.find(|sign: char| sign.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text.push_str(&part[end..]);
    }
    text.replace('\r', "")
}

#[test]
fn messages_are_edited_and_brought_back_and_interrupts_do_not_end_the_chat() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/chat/1");
    let Some(mut chat) = TypedProgram::chat(model) else {
        eprintln!("skipped: there is no program 'script'");
        return;
    };
    let answer = "inference server";
    chat.until("Arrow keys", 1);
    // A letter at the end is taken away, and the first one is put in behind the line's beginning.
    chat.press("hat is Galatea?x\x7f\x01W\r");
    chat.until(answer, 1);
    chat.press("half a line\x03");
    chat.until("Ctrl-D or /bye ends", 1);
    chat.press("\x1b[A\r");
    chat.until(answer, 2);
    chat.press("/by\t\r");
    assert!(chat.program.wait().unwrap().success());
    assert!(!chat.seen.lock().unwrap().contains("Error"));
}
