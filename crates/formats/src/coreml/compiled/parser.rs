//! Programs from their text: functions, blocks and operations.
//!
//! ```text
//! program(1.3)
//! [buildInfo = dict<string, string>({{"coremlc-version", "3505.4.1"}})]
//! {
//!     func main<ios18>(tensor<fp16, [1, 4]> x) {
//!         tensor<fp16, [1, 4]> y = relu(x = x)[name = string("y")];
//!     } -> (y);
//! }
//! ```

use galatea_tensor::OrderedMap;
use std::sync::Arc;

use super::CompiledResult;
use super::tokens::{MilToken, MilTokens};
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{
    MilArgument, MilBlock, MilFunction, MilOperation, MilProgram, MilType, MilValue,
};
use crate::coreml::weights::WeightFiles;

/// The depth to which blocks, types, constants and brackets may be nested.
pub(super) const MAX_DEPTH: usize = 16;

/// Releases of iOS by whose names a text calls the sets of operators.
const OPSETS: [(&str, &str); 7] = [
    ("ios13", "CoreML3"),
    ("ios14", "CoreML4"),
    ("ios15", "CoreML5"),
    ("ios16", "CoreML6"),
    ("ios17", "CoreML7"),
    ("ios18", "CoreML8"),
    ("ios26", "CoreML9"),
];

/// A reader of programs.
pub(super) struct MilTextParser<'t, 'w> {
    pub(super) tokens: MilTokens<'t>,
    pub(super) weights: &'w mut WeightFiles,
}

/// Reads a program; constants share the files of weights.
///
/// # Errors
/// Fails when the text is no program; the error tells the line.
pub(super) fn program(text: &str, weights: &mut WeightFiles) -> CompiledResult<MilProgram> {
    MilTextParser { tokens: MilTokens::new(text)?, weights }.program()
}

impl<'t> MilTextParser<'t, '_> {
    fn program(&mut self) -> CompiledResult<MilProgram> {
        if self.tokens.word("'program'")? != "program" {
            return Err(CoreMlError::invalid("the text does not begin with 'program'"));
        }
        self.tokens.expect('(')?;
        let MilToken::Number(version) = self.tokens.take()? else {
            return Err(self.tokens.unexpected("the program's version"));
        };
        if version.split('.').next() != Some("1") {
            let text = format!("the program has version {version}, expected 1");
            return Err(CoreMlError::unsupported(text));
        }
        self.tokens.expect(')')?;
        self.skip_attributes()?;
        self.tokens.expect('{')?;
        let mut functions = OrderedMap::new();
        while !self.tokens.skip('}')? {
            let (name, function) = self.function()?;
            if functions.insert(name.to_owned(), function).is_some() {
                return Err(CoreMlError::invalid(format!("function '{name}' is there twice")));
            }
        }
        match self.tokens.peek() {
            MilToken::End => Ok(MilProgram { functions }),
            _ => Err(self.tokens.unexpected("the end of the program")),
        }
    }

    fn function(&mut self) -> CompiledResult<(&'t str, MilFunction)> {
        if self.tokens.word("'func'")? != "func" {
            return Err(self.tokens.unexpected("a function, which begins with 'func'"));
        }
        let name = self.tokens.word("the function's name")?;
        let place = || format!("function '{name}'");
        let read = self.function_behind_name().map_err(|error| error.at(place()))?;
        Ok((name, read))
    }

    fn function_behind_name(&mut self) -> CompiledResult<MilFunction> {
        self.tokens.expect('<')?;
        let stated = self.tokens.word("a set of operators")?;
        let opset =
            OPSETS.iter().find(|(release, _)| *release == stated).map_or(stated, |row| row.1);
        self.tokens.expect('>')?;
        self.tokens.expect('(')?;
        let inputs = self.named_types(')')?;
        // The shapes that inputs may have; the description of the model says the same.
        self.skip_attributes()?;
        let block = self.block(0)?;
        self.tokens.skip(';')?;
        Ok(MilFunction { inputs, opset: opset.to_owned(), block })
    }

    /// Types with names up to a bracket.
    fn named_types(&mut self, close: char) -> CompiledResult<Vec<(String, MilType)>> {
        let mut found = Vec::new();
        while !self.tokens.skip(close)? {
            let stated = self.value_type(0)?;
            found.push((self.tokens.word("a name")?.to_owned(), stated));
            if *self.tokens.peek() != MilToken::Mark(close) {
                self.tokens.expect(',')?;
            }
        }
        Ok(found)
    }

    /// Operations in braces, and behind them the names of what they give.
    fn block(&mut self, depth: usize) -> CompiledResult<MilBlock> {
        if depth == MAX_DEPTH {
            let text = format!("blocks are nested more than {MAX_DEPTH} deep");
            return Err(CoreMlError::invalid(text));
        }
        self.tokens.expect('{')?;
        let mut operations = Vec::new();
        while !self.tokens.skip('}')? {
            operations.push(self.operation(depth)?);
        }
        if *self.tokens.peek() != MilToken::Arrow {
            return Err(self.tokens.unexpected("'->'"));
        }
        self.tokens.take()?;
        self.tokens.expect('(')?;
        let mut outputs = Vec::new();
        while !self.tokens.skip(')')? {
            outputs.push(self.tokens.word("the name of an output")?.to_owned());
            self.tokens.skip(',')?;
        }
        Ok(MilBlock { inputs: Vec::new(), operations, outputs })
    }

    fn operation(&mut self, depth: usize) -> CompiledResult<MilOperation> {
        let line = self.tokens.line();
        let mut operation = MilOperation::default();
        if self.tokens.skip('(')? {
            operation.outputs = self.named_types(')')?;
            self.tokens.expect('=')?;
        } else if self.type_follows() {
            operation.outputs = self.named_types('=')?;
        }
        operation.operator = self.tokens.word("an operator")?.to_owned();
        let filled = self.fill(&mut operation, depth);
        filled.map_err(|error| match error.place() {
            "" => error.at(format!("line {line}: {}", operation.place())),
            _ => error.at(operation.place()),
        })?;
        Ok(operation)
    }

    /// Reads the inputs, blocks and attributes of an operation.
    fn fill(&mut self, operation: &mut MilOperation, depth: usize) -> CompiledResult<()> {
        self.tokens.expect('(')?;
        while !self.tokens.skip(')')? {
            let name = self.tokens.word("the name of an input")?.to_owned();
            self.tokens.expect('=')?;
            let bound = operation.inputs.entry(name).or_default();
            self.arguments(bound)?;
            if *self.tokens.peek() != MilToken::Mark(')') {
                self.tokens.expect(',')?;
            }
        }
        operation.attributes = self.attributes()?;
        self.blocks(operation, depth)?;
        if operation.attributes.is_empty() {
            operation.attributes = self.attributes()?;
        }
        self.tokens.expect(';')?;
        // Some writers end an operation before its blocks.
        while *self.tokens.peek() == MilToken::Word("block") {
            self.blocks(operation, depth)?;
            self.tokens.skip(';')?;
        }
        Ok(())
    }

    /// Argument of an input: a name, a constant, or several of them in parentheses.
    fn arguments(&mut self, into: &mut Vec<MilArgument>) -> CompiledResult<()> {
        if !self.tokens.skip('(')? {
            into.push(self.argument()?);
            return Ok(());
        }
        while !self.tokens.skip(')')? {
            into.push(self.argument()?);
            if *self.tokens.peek() != MilToken::Mark(')') {
                self.tokens.expect(',')?;
            }
        }
        Ok(())
    }

    fn argument(&mut self) -> CompiledResult<MilArgument> {
        match self.type_follows() {
            true => Ok(MilArgument::Value(Arc::new(self.value(0)?))),
            false => Ok(MilArgument::Name(self.tokens.word("a value")?.to_owned())),
        }
    }

    /// The blocks that an operation runs, with the values that it gives to them.
    fn blocks(&mut self, operation: &mut MilOperation, depth: usize) -> CompiledResult<()> {
        loop {
            let named = matches!(self.tokens.peek(), MilToken::Word(_));
            if named {
                self.tokens.take()?;
            }
            let mut inputs = Vec::new();
            if self.tokens.skip('(')? {
                inputs = self.named_types(')')?;
            }
            if *self.tokens.peek() != MilToken::Mark('{') {
                return match named || !inputs.is_empty() {
                    true => Err(self.tokens.unexpected("a block")),
                    false => Ok(()),
                };
            }
            let block = self.block(depth + 1)?;
            operation.blocks.push(MilBlock { inputs, ..block });
            self.tokens.skip(',')?;
        }
    }

    /// Passes over attributes of the program or a function, which say nothing that is computed with.
    fn skip_attributes(&mut self) -> CompiledResult<()> {
        let mut open = 0_usize;
        loop {
            match self.tokens.peek() {
                MilToken::Mark('[') => open += 1,
                MilToken::Mark(']') if open == 1 => return self.tokens.take().map(|_| ()),
                MilToken::Mark(']') if open > 0 => open -= 1,
                MilToken::End => return Err(self.tokens.unexpected("']'")),
                _ if open == 0 => return Ok(()),
                _ => {}
            }
            self.tokens.take()?;
        }
    }

    /// Attributes in brackets, where there are some.
    fn attributes(&mut self) -> CompiledResult<OrderedMap<String, Arc<MilValue>>> {
        let mut found = OrderedMap::new();
        if !self.tokens.skip('[')? {
            return Ok(found);
        }
        while !self.tokens.skip(']')? {
            let name = self.tokens.word("the name of an attribute")?;
            self.tokens.expect('=')?;
            let value = self.value(0).map_err(|error| error.at(format!("attribute '{name}'")))?;
            found.insert(name.to_owned(), Arc::new(value));
            if *self.tokens.peek() != MilToken::Mark(']') {
                self.tokens.expect(',')?;
            }
        }
        Ok(found)
    }
}
