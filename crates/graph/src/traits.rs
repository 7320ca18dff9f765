//! Facts about operators that passes over graphs rely on.
//!
//! Each operator's row says them once ([`OpDef::traits`](crate::OpDef::traits)). Whoever pads, divides, moves, costs or compares nodes reads
//! them here and has no list of names of its own. Tests hold each of them against the reference evaluation.

/// Inputs that an element-wise operator computes on, element by element with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementwiseInputs {
    /// The first one; others are parameters.
    First,
    /// All of them.
    All,
}

/// Dependence of the rows of a result on the rows of the inputs. Rows lie along the first axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowIndependence {
    /// Rows may be mixed.
    Mixed,
    /// Each row comes of the same row of the inputs, wherever the result has the first axis again.
    Apart,
    /// The same, if inputs behind the first one have no rows.
    ApartFromWeights,
}

/// Origin of the elements of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMovement {
    /// They are computed.
    Computes,
    /// They are the elements of the first input in their order, under another shape.
    Keeps,
    /// They are elements of the first input.
    Moves,
    /// They are elements of the first input, of which no more is read than is written.
    MovesPart,
    /// They are elements of several inputs, or a filling.
    MovesSeveral,
    /// They are elements of the first input in another type, or marks of it.
    Converts,
}

/// Rounding that a result may differ by between two right implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumericClass {
    /// No rounding.
    Exact,
    /// Rounding of one transcendental function or division.
    Transcendental,
    /// Rounding of sums of products, or several roundings in a row.
    Accumulating,
}

/// Facts about an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpTraits {
    /// Inputs that are computed on element by element; `None` for operators of another kind.
    pub elementwise: Option<ElementwiseInputs>,
    /// Dependence of rows.
    pub rows: RowIndependence,
    /// Origin of elements.
    pub movement: DataMovement,
    /// Rounding of results.
    pub numeric: NumericClass,
    /// True if lengths computed from shapes stay lengths.
    pub on_lengths: bool,
}

impl OpTraits {
    /// Nothing is known.
    pub const NONE: Self = Self {
        elementwise: None,
        rows: RowIndependence::Mixed,
        movement: DataMovement::Computes,
        numeric: NumericClass::Exact,
        on_lengths: false,
    };

    /// Returns whether elements of the first input are only given other places.
    #[must_use]
    pub fn moves_first_input(self) -> bool {
        matches!(self.movement, DataMovement::Keeps | DataMovement::Moves | DataMovement::MovesPart)
    }
}
