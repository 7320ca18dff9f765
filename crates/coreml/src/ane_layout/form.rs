//! Values as (B, C, 1, S): which axes of a value lie where, the way there and the way back.

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::{Node, ValueId};
use galatea_tensor::Tensor;

use crate::emit::{ProgramEmitter, Result, UnwritableNode, refuse};

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
pub(super) const BATCH: usize = 0;
pub(super) const CHANNELS: usize = 1;
pub(super) const POSITIONS: usize = 3;

impl LayoutAxes {
    /// Groups of the axes of a shape.
    pub(super) fn new(shape: &[usize], groups: [&[usize]; 3]) -> Self {
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
    pub(super) fn of_rows(shape: &[usize]) -> Self {
        let rows: Vec<usize> = (0..shape.len().saturating_sub(1)).collect();
        let last: Vec<usize> = (rows.len()..shape.len()).collect();
        let single = rows.iter().skip(1).all(|&axis| shape[axis] == 1);
        let (batch, positions) = rows.split_at(usize::from(!single));
        Self::new(shape, [batch, &last, positions])
    }

    /// Returns whether the channels are the last axis and nothing else.
    pub(super) fn in_rows(&self, shape: &[usize]) -> bool {
        let last: Vec<usize> = (shape.len().saturating_sub(1)..shape.len()).collect();
        self.channels == Self::new(shape, [&[], &last, &[]]).channels
    }

    /// The groups, with the places that they have in a form.
    pub(super) fn groups(&self) -> [(usize, &[usize]); 3] {
        [(BATCH, &self.batch), (CHANNELS, &self.channels), (POSITIONS, &self.positions)]
    }

    /// The same with other numbers for axes.
    pub(super) fn renamed(&self, name: impl Fn(usize) -> usize) -> Self {
        let each = |axes: &[usize]| axes.iter().map(|&axis| name(axis)).collect();
        Self {
            batch: each(&self.batch),
            channels: each(&self.channels),
            positions: each(&self.positions),
        }
    }

    /// Without the axes that have length 1 in a shape.
    pub(super) fn within(&self, shape: &[usize]) -> Self {
        Self::new(shape, [&self.batch, &self.channels, &self.positions])
    }

    /// The lengths of the form of a value of this shape.
    pub(super) fn lengths(&self, shape: &[usize]) -> [usize; 4] {
        let product = |axes: &[usize]| axes.iter().filter_map(|&axis| shape.get(axis)).product();
        [product(&self.batch), product(&self.channels), 1, product(&self.positions)]
    }

    fn order(&self) -> Vec<usize> {
        self.groups().iter().flat_map(|(_, axes)| axes.iter().copied()).collect()
    }

    /// Every axis of a shape in the order of the form: an axis of length 1 stands for an empty group, the
    /// others come last.
    fn whole_order(&self, shape: &[usize]) -> Vec<usize> {
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
    fn of_operand(&self, own: &[usize], shape: &[usize]) -> Option<Self> {
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

impl ProgramEmitter<'_> {
    /// The shape of a value of floats all of whose lengths are known before a run; none of others.
    pub(super) fn fixed_floats(&self, id: ValueId) -> Option<Vec<usize>> {
        let fact = self.fact(id).ok()?;
        let shape = fact.known_shape().filter(|shape| !shape.contains(&0))?;
        fact.dtype.is_float().then_some(shape)
    }

    /// The form of a value, if it has one already.
    pub(super) fn formed(&self, id: ValueId) -> Option<&AneLayout> {
        self.favoured.as_ref()?.forms.get(&id)
    }

    /// Returns whether what reads a value wants it in a form.
    pub(super) fn is_wanted(&self, id: ValueId) -> bool {
        self.favoured.as_ref().is_some_and(|favoured| favoured.wanted.contains(&id))
    }

    /// A value in the form that these groups say.
    pub(super) fn form_in(&mut self, id: ValueId, axes: &LayoutAxes) -> Result<MilVar> {
        if let Some(form) = self.formed(id)
            && form.axes == *axes
        {
            return Ok(form.var.clone());
        }
        let shape = self.shape(id)?;
        if let Some(tensor) = self.constant_tensor(id) {
            return self.formed_constant(&tensor, axes);
        }
        let plain = self.value(id)?;
        let turned = match axes.order().is_sorted() {
            true => plain,
            false => self.transpose(&plain, &axes.whole_order(&shape))?,
        };
        let var = self.shaped(&turned, &axes.lengths(&shape))?;
        let form = AneLayout { var: var.clone(), axes: axes.clone() };
        if let Some(favoured) = &mut self.favoured {
            favoured.forms.entry(id).or_insert(form);
        }
        Ok(var)
    }

    /// The value as the graph has it, of its form.
    pub(crate) fn plain_of(&mut self, form: &AneLayout, shape: &[usize]) -> Result<MilVar> {
        if form.axes.order().is_sorted() {
            return self.shaped(&form.var, shape);
        }
        let order = form.axes.whole_order(shape);
        let apart: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
        let var = self.shaped(&form.var, &apart)?;
        let mut back = vec![0; order.len()];
        for (at, &axis) in order.iter().enumerate() {
            back[axis] = at;
        }
        self.transpose(&var, &back)
    }

    /// The same elements in another shape; the axis of length 1 of a form comes and goes by itself.
    fn shaped(&mut self, var: &MilVar, shape: &[usize]) -> Result<MilVar> {
        let own = self.shape_of(var)?;
        match (own.as_slice(), shape) {
            ([b, c, 1, s], [to_b, to_c, to_s]) if (b, c, s) == (to_b, to_c, to_s) => {
                self.squeeze(var, &[2])
            }
            ([b, c, s], [to_b, to_c, 1, to_s]) if (b, c, s) == (to_b, to_c, to_s) => {
                self.unsqueeze(var, &[2])
            }
            _ => self.reshape(var, shape),
        }
    }

    /// A value that is known before a run.
    pub(super) fn constant_tensor(&self, id: ValueId) -> Option<Tensor> {
        let constant = self.graph().constant(id).cloned();
        constant.or_else(|| self.fact(id).ok()?.value.clone())
    }

    fn formed_constant(&mut self, tensor: &Tensor, axes: &LayoutAxes) -> Result<MilVar> {
        let failed = |error: galatea_tensor::TensorError| UnwritableNode(error.to_string());
        let shape = tensor.shape();
        let turned = tensor.permute(&axes.whole_order(shape)).map_err(failed)?;
        let turned = turned.contiguous().map_err(failed)?;
        let formed = turned.reshape(&axes.lengths(shape)).map_err(failed)?;
        self.tensor(&formed)
    }

    /// A value that broadcasts to one of a shape, as it lies beside that one's form; none where it cannot.
    pub(super) fn operand(
        &mut self,
        id: ValueId,
        axes: &LayoutAxes,
        shape: &[usize],
    ) -> Result<Option<MilVar>> {
        let Some(own) = self.fixed_floats(id) else { return Ok(None) };
        if let Some(tensor) = self.constant_tensor(id) {
            if tensor.elements() == 1 && own.len() <= 4 {
                return self.value(id).map(Some);
            }
            let Some(whole) = spread(&tensor, axes, shape) else { return Ok(None) };
            let axes = axes.within(whole.shape());
            return self.formed_constant(&whole, &axes).map(Some);
        }
        match axes.of_operand(&own, shape) {
            Some(axes) => self.form_in(id, &axes).map(Some),
            None => Ok(None),
        }
    }

    /// Ends a node whose first output has a form; nobody reads the others.
    ///
    /// # Errors
    /// Fails when the form is not that of the graph's value.
    pub(super) fn end_formed(
        &mut self,
        node: &Node,
        var: MilVar,
        axes: LayoutAxes,
    ) -> Result<bool> {
        let Some(id) = node.output(0) else { return refuse("the first output is absent") };
        self.set_form(id, var, axes)?;
        Ok(true)
    }

    /// Gives a value its form.
    pub(super) fn set_form(&mut self, id: ValueId, var: MilVar, axes: LayoutAxes) -> Result<()> {
        let shape = self.shape(id)?;
        let found = self.shape_of(&var)?;
        let expected = axes.lengths(&shape);
        let elements: usize = shape.iter().product();
        if found != expected || elements != expected.iter().product::<usize>() {
            return refuse(format!(
                "the form {found:?} of a value {shape:?}, expected {expected:?}"
            ));
        }
        if let Some(favoured) = &mut self.favoured {
            favoured.forms.insert(id, AneLayout { var, axes });
        }
        Ok(())
    }
}

/// A constant that broadcasts to a shape, with all axes of each group that it has one of.
fn spread(tensor: &Tensor, axes: &LayoutAxes, shape: &[usize]) -> Option<Tensor> {
    let shift = shape.len().checked_sub(tensor.rank())?;
    let mut whole: Vec<usize> = vec![1; shift];
    whole.extend(tensor.shape());
    let aligned = tensor.contiguous().ok()?.reshape(&whole).ok()?;
    for (_, group) in axes.groups() {
        if group.iter().any(|&axis| whole[axis] > 1) {
            group.iter().for_each(|&axis| whole[axis] = shape[axis]);
        }
    }
    aligned.broadcast_to(&whole).ok()?.contiguous().ok()
}
