//! Values as (B, C, 1, S): which axes of a value lie where, and what a program has of such values.

use std::collections::{HashMap, HashSet};

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::ValueId;

/// Which axes of a value make up the axes B, C and S of its form, each group in its order. Axes of length
/// 1 are in no group: they are everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutAxes {
    /// The axes that make up B.
    pub(crate) batch: Vec<usize>,
    /// The axes that make up C.
    pub(crate) channels: Vec<usize>,
    /// The axes that make up S.
    pub(crate) positions: Vec<usize>,
}

/// A value that lies as (B, C, 1, S).
#[derive(Clone, Debug)]
pub(crate) struct AneLayout {
    pub(crate) var: MilVar,
    pub(crate) axes: LayoutAxes,
}

/// The place in a form that a group of axes has.
pub(crate) const BATCH: usize = 0;
pub(crate) const CHANNELS: usize = 1;
pub(crate) const POSITIONS: usize = 3;

impl LayoutAxes {
    /// Groups of the axes of a shape.
    pub(crate) fn new(shape: &[usize], groups: [&[usize]; 3]) -> Self {
        let long = |axes: &[usize]| -> Vec<usize> {
            axes.iter()
                .copied()
                .filter(|&axis| shape.get(axis).is_some_and(|&len| len > 1))
                .collect()
        };
        let [batch, channels, positions] = groups.map(long);
        Self { batch, channels, positions }
    }

    /// Vectors along the last axis: batch first where there are three axes or more, then positions. A
    /// batch of single positions is as many positions.
    pub(crate) fn of_rows(shape: &[usize]) -> Self {
        let rows: Vec<usize> = (0..shape.len().saturating_sub(1)).collect();
        let last: Vec<usize> = (rows.len()..shape.len()).collect();
        let single = rows.iter().skip(1).all(|&axis| shape[axis] == 1);
        let (batch, positions) = rows.split_at(usize::from(!single));
        Self::new(shape, [batch, &last, positions])
    }

    /// Returns whether the channels are the last axis and nothing else.
    pub(crate) fn in_rows(&self, shape: &[usize]) -> bool {
        let last: Vec<usize> = (shape.len().saturating_sub(1)..shape.len()).collect();
        self.channels == Self::new(shape, [&[], &last, &[]]).channels
    }

    /// The groups, with the places that they have in a form.
    pub(crate) fn groups(&self) -> [(usize, &[usize]); 3] {
        [(BATCH, &self.batch), (CHANNELS, &self.channels), (POSITIONS, &self.positions)]
    }

    /// The same with other numbers for axes.
    pub(crate) fn renamed(&self, name: impl Fn(usize) -> usize) -> Self {
        let each = |axes: &[usize]| axes.iter().map(|&axis| name(axis)).collect();
        Self {
            batch: each(&self.batch),
            channels: each(&self.channels),
            positions: each(&self.positions),
        }
    }

    /// Without the axes that have length 1 in a shape.
    pub(crate) fn within(&self, shape: &[usize]) -> Self {
        Self::new(shape, [&self.batch, &self.channels, &self.positions])
    }

    /// The lengths of the form of a value of this shape.
    pub(crate) fn lengths(&self, shape: &[usize]) -> [usize; 4] {
        let product = |axes: &[usize]| axes.iter().filter_map(|&axis| shape.get(axis)).product();
        [product(&self.batch), product(&self.channels), 1, product(&self.positions)]
    }

    pub(crate) fn order(&self) -> Vec<usize> {
        self.groups().iter().flat_map(|(_, axes)| axes.iter().copied()).collect()
    }

    /// Every axis of a shape in the order of the form: an axis of length 1 stands for an empty group, the
    /// others come last.
    pub(crate) fn whole_order(&self, shape: &[usize]) -> Vec<usize> {
        let mut single = (0..shape.len()).filter(|&axis| shape.get(axis) == Some(&1));
        let mut order = Vec::with_capacity(shape.len());
        for (_, axes) in self.groups() {
            match axes.is_empty() {
                true => order.extend(single.next()),
                false => order.extend(axes),
            }
        }
        order.extend(single);
        order
    }

    /// The groups of an operand of shape `own` that broadcasts to `shape`, by the operand's own axes; none
    /// where it has a part of a group only.
    pub(crate) fn of_operand(&self, own: &[usize], shape: &[usize]) -> Option<Self> {
        let shift = shape.len().checked_sub(own.len())?;
        let fits = own.iter().zip(&shape[shift..]).all(|(a, b)| a == b || *a == 1);
        let there = |axis: &usize| axis.checked_sub(shift).is_some_and(|axis| own[axis] > 1);
        let whole = self.groups().iter().all(|(_, axes)| {
            let count = axes.iter().filter(|&axis| there(axis)).count();
            count == 0 || count == axes.len()
        });
        let only = |axes: &[usize]| -> Vec<usize> {
            axes.iter().filter(|&axis| there(axis)).map(|&axis| axis - shift).collect()
        };
        let [batch, channels, positions] = self.groups().map(|(_, axes)| only(axes));
        (fits && whole).then_some(Self { batch, channels, positions })
    }
}

/// Mask that is added to scores: each axis is that of the scores or 1, and the heads lie on the
/// third one.
#[derive(Clone, Debug)]
pub(crate) struct AneMask {
    /// `(B, keys, heads, queries)`.
    pub(crate) added: MilVar,
    /// 1 for each query that sees a key and 0 for the others, `(B, 1, heads, queries)`; none where all
    /// see one.
    pub(crate) seen: Option<MilVar>,
}

/// Origin of a mask: a value of the graph, whether keys behind each query are hidden too, and the
/// lengths of the scores.
pub(crate) type AneMaskKey = (Option<ValueId>, bool, [usize; 4]);

/// Values that lie as (B, C, 1, S), and values that should.
#[derive(Debug, Default)]
pub(crate) struct AneLayoutPlan {
    /// Values that something which computes in the form reads.
    pub(crate) wanted: HashSet<ValueId>,
    /// Values that have the form.
    pub(crate) forms: HashMap<ValueId, AneLayout>,
    /// Values in the place of those of the graph, while a row of an element-wise operator is at work.
    pub(crate) overlay: HashMap<ValueId, MilVar>,
    /// Weights of layers as those of convolutions of one pixel; whether the graph has outputs first.
    pub(crate) weights: HashMap<(ValueId, bool), MilVar>,
    /// Cosines and sines, so many times one behind the other.
    pub(crate) repeated: HashMap<(ValueId, usize), MilVar>,
    /// Masks of attention as they are added, and which queries see a key.
    pub(crate) masks: HashMap<AneMaskKey, AneMask>,
}
