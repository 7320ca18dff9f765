//! Dispatches of a step, read from its debug form: outside its crate a step shows them nowhere else.

use galatea_gpu::{DispatchStep, KernelShader, ShaderBinding, ShaderDispatch};

/// Two numbers of a step: an input and the output that lies over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverlaidValue {
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// Dispatches of a step, with what they need beside inputs and outputs.
#[derive(Clone, Debug)]
pub(crate) struct StepDispatches {
    pub(crate) dispatches: Vec<ShaderDispatch>,
    /// Bytes of each memory of the step's own.
    pub(crate) scratch: Vec<usize>,
    pub(crate) over: Vec<OverlaidValue>,
}

impl StepDispatches {
    /// Returns the dispatches of a step; `None` where one reads weights, whose bytes only the device has.
    pub(crate) fn of(step: &DispatchStep) -> Option<Self> {
        let text = format!("{step:?}");
        let mut rest = DebugText(&text);
        rest.take("DispatchStep { dispatches: [");
        let mut dispatches = Vec::new();
        while rest.0.starts_with("ShaderDispatch") {
            dispatches.push(dispatch(&mut rest)?);
            rest.skip(", ");
        }
        rest.take("], scratch: [");
        let scratch = rest.numbers();
        rest.take(", in_place: ");
        rest.until(", over: [");
        let mut over = Vec::new();
        while rest.skip("(") {
            let input = rest.number();
            rest.take(", ");
            over.push(OverlaidValue { input, output: rest.number() });
            rest.take(")");
            rest.skip(", ");
        }
        Some(Self { dispatches, scratch, over })
    }
}

fn dispatch(rest: &mut DebugText<'_>) -> Option<ShaderDispatch> {
    rest.take("ShaderDispatch { shader: KernelShader { name: ");
    let name = rest.string();
    rest.take(", source: ");
    let source = rest.string();
    rest.take(", proved: ");
    let shader = KernelShader::new(name, source);
    let shader = if rest.skip("true") { shader.proved() } else { shader };
    rest.skip("false");
    rest.take(" }, bindings: [");
    let mut bindings = Vec::new();
    while !rest.skip("]") {
        bindings.push(binding(rest)?);
        rest.skip(", ");
    }
    rest.take(", params: [");
    let word = |number: usize| u32::try_from(number).unwrap();
    let params = rest.numbers().into_iter().map(word).collect();
    rest.take(", groups: [");
    let groups: Vec<u32> = rest.numbers().into_iter().map(word).collect();
    rest.take(" }");
    Some(ShaderDispatch { shader, bindings, params, groups: groups.try_into().unwrap() })
}

fn binding(rest: &mut DebugText<'_>) -> Option<ShaderBinding> {
    let make = if rest.skip("Input(") {
        ShaderBinding::Input
    } else if rest.skip("Output(") {
        ShaderBinding::Output
    } else if rest.skip("Scratch(") {
        ShaderBinding::Scratch
    } else {
        return None;
    };
    let found = make(rest.number());
    rest.take(")");
    Some(found)
}

/// Rest of a debug form.
struct DebugText<'a>(&'a str);

impl DebugText<'_> {
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn take(&mut self, text: &str) {
        let found: String = self.0.chars().take(60).collect();
        assert!(self.skip(text), "expected {text:?}, found {found:?}");
    }

    /// Goes on behind the next `text`.
    fn until(&mut self, text: &str) {
        let at = self.0.find(text).unwrap();
        self.0 = &self.0[at + text.len()..];
    }

    fn number(&mut self) -> usize {
        let digits = self.0.chars().take_while(char::is_ascii_digit).count();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().unwrap()
    }

    /// Numbers up to the end of a list.
    fn numbers(&mut self) -> Vec<usize> {
        let mut all = Vec::new();
        while !self.skip("]") {
            all.push(self.number());
            self.skip(", ");
        }
        all
    }

    /// A text in quotes.
    fn string(&mut self) -> String {
        self.take("\"");
        let mut text = String::new();
        let mut characters = self.0.chars();
        loop {
            match characters.next().unwrap() {
                '"' => break,
                '\\' => match characters.next().unwrap() {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    same @ ('\\' | '"' | '\'') => text.push(same),
                    other => panic!("no escape of kernels: {other}"),
                },
                same => text.push(same),
            }
        }
        self.0 = characters.as_str();
        text
    }
}
