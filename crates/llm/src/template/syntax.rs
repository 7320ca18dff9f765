//! The tree of a template. Chains of any length are lists, so that depth comes from brackets and
//! blocks alone, which the parser bounds.

use std::sync::Arc;

/// A place in [`TemplateSyntax::names`].
pub(super) type NameId = u32;

/// Named arguments of one call.
pub(super) const MAX_NAMED_ARGUMENTS: usize = 256;

/// A parsed template.
#[derive(Debug)]
pub(super) struct TemplateSyntax {
    pub(super) body: Vec<TemplateStatement>,
    /// Each name of a variable once.
    pub(super) names: Vec<Arc<str>>,
    /// Macros and bodies of `call`, which values refer to.
    pub(super) macros: Vec<MacroNode>,
    /// Loops, which values refer to.
    pub(super) loops: Vec<ForNode>,
}

/// A statement and the line that it begins in, from 1.
#[derive(Debug)]
pub(super) struct TemplateStatement {
    pub(super) line: u32,
    pub(super) kind: StatementKind,
}

#[derive(Debug)]
pub(super) enum StatementKind {
    Raw(Box<str>),
    Print(TemplateTerm),
    Do(TemplateTerm),
    /// A place in [`TemplateSyntax::loops`].
    For(u32),
    If {
        arms: Vec<IfArm>,
        otherwise: Vec<TemplateStatement>,
    },
    Set {
        target: AssignTarget,
        value: TemplateTerm,
    },
    SetBlock {
        target: AssignTarget,
        filters: Vec<TermLink>,
        body: Vec<TemplateStatement>,
    },
    With {
        values: Vec<SetAssignment>,
        body: Vec<TemplateStatement>,
    },
    /// Body in a scope of its own: blocks, `generation`, `autoescape`.
    Scope(Vec<TemplateStatement>),
    Filter {
        filters: Vec<TermLink>,
        body: Vec<TemplateStatement>,
    },
    /// A place in [`TemplateSyntax::macros`].
    Macro(u32),
    /// A call with a body, a place in [`TemplateSyntax::macros`].
    Call {
        call: TemplateTerm,
        body: u32,
    },
    Break,
    Continue,
    /// Use of another template, by the name of the tag: there is none to be used.
    Other(&'static str),
}

#[derive(Debug)]
pub(super) struct IfArm {
    pub(super) condition: TemplateTerm,
    pub(super) body: Vec<TemplateStatement>,
}

#[derive(Debug)]
pub(super) struct SetAssignment {
    pub(super) target: AssignTarget,
    pub(super) value: TemplateTerm,
}

#[derive(Debug)]
pub(super) struct ForNode {
    pub(super) target: AssignTarget,
    pub(super) items: TemplateTerm,
    pub(super) condition: Option<TemplateTerm>,
    pub(super) recursive: bool,
    pub(super) body: Vec<TemplateStatement>,
    pub(super) otherwise: Vec<TemplateStatement>,
}

#[derive(Debug)]
pub(super) struct MacroNode {
    pub(super) name: Arc<str>,
    pub(super) id: NameId,
    pub(super) parameters: Vec<MacroParameter>,
    pub(super) body: Vec<TemplateStatement>,
    pub(super) caller: NameId,
    pub(super) varargs: NameId,
    pub(super) kwargs: NameId,
    /// Whether the body reads `varargs`.
    pub(super) takes_varargs: bool,
    /// Whether the body reads `kwargs`.
    pub(super) takes_kwargs: bool,
}

#[derive(Debug)]
pub(super) struct MacroParameter {
    pub(super) name: NameId,
    pub(super) default: Option<TemplateTerm>,
}

/// Target of an assignment.
#[derive(Debug)]
pub(super) enum AssignTarget {
    Name(NameId),
    /// An attribute of a namespace.
    Attribute {
        namespace: NameId,
        name: Arc<str>,
    },
    Several(Vec<AssignTarget>),
}

#[derive(Debug, Clone)]
pub(super) enum TermLiteral {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Arc<str>),
}

#[derive(Debug)]
pub(super) enum TemplateTerm {
    Literal(TermLiteral),
    Name(NameId),
    List(Vec<TemplateTerm>),
    Tuple(Vec<TemplateTerm>),
    Map(Vec<MapPair>),
    /// Truth, or its opposite.
    Truth {
        negated: bool,
        of: Box<TemplateTerm>,
    },
    /// A number, or its negative.
    Sign {
        negative: bool,
        of: Box<TemplateTerm>,
    },
    /// The first that is false, or the last.
    And(Vec<TemplateTerm>),
    /// The first that is true, or the last.
    Or(Vec<TemplateTerm>),
    Compare {
        first: Box<TemplateTerm>,
        rest: Vec<CompareStep>,
    },
    /// Operations of one rank, from the left.
    Chain {
        first: Box<TemplateTerm>,
        rest: Vec<ArithmeticStep>,
    },
    Concat(Vec<TemplateTerm>),
    /// The value of the first choice whose test is true.
    Choice {
        choices: Vec<IfChoice>,
        otherwise: Option<Box<TemplateTerm>>,
    },
    /// Links that are followed from a value, one after the other.
    Linked {
        base: Box<TemplateTerm>,
        links: Vec<TermLink>,
    },
}

#[derive(Debug)]
pub(super) struct MapPair {
    pub(super) key: TemplateTerm,
    pub(super) value: TemplateTerm,
}

#[derive(Debug)]
pub(super) struct IfChoice {
    pub(super) value: TemplateTerm,
    pub(super) test: TemplateTerm,
}

#[derive(Debug)]
pub(super) struct CompareStep {
    pub(super) by: Comparator,
    pub(super) with: TemplateTerm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug)]
pub(super) struct ArithmeticStep {
    pub(super) by: ArithmeticSign,
    pub(super) with: TemplateTerm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticSign {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl ArithmeticSign {
    /// The operator as templates write it.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
            Self::Power => "**",
        }
    }
}

/// One thing that is done to a value.
#[derive(Debug)]
pub(super) struct TermLink {
    pub(super) line: u32,
    pub(super) kind: LinkKind,
}

#[derive(Debug)]
pub(super) enum LinkKind {
    Attribute(Arc<str>),
    Item(TemplateTerm),
    Slice(Box<SliceBounds>),
    Call(CallArguments),
    /// An attribute that is called at once.
    Method {
        name: Arc<str>,
        arguments: CallArguments,
    },
    Filter {
        name: Arc<str>,
        arguments: CallArguments,
    },
    Test {
        name: Arc<str>,
        negated: bool,
        arguments: CallArguments,
    },
}

#[derive(Debug)]
pub(super) struct SliceBounds {
    pub(super) start: Option<TemplateTerm>,
    pub(super) stop: Option<TemplateTerm>,
    pub(super) step: Option<TemplateTerm>,
}

#[derive(Debug, Default)]
pub(super) struct CallArguments {
    pub(super) positional: Vec<TemplateTerm>,
    pub(super) named: Vec<NamedArgument>,
    /// Term behind `*`.
    pub(super) spread: Option<Box<TemplateTerm>>,
    /// Term behind `**`.
    pub(super) spread_named: Option<Box<TemplateTerm>>,
}

#[derive(Debug)]
pub(super) struct NamedArgument {
    pub(super) name: Arc<str>,
    pub(super) value: TemplateTerm,
}
