//! Values as (B, C, 1, S): the way there and the way back.

use galatea_formats::coreml::mil::MilVar;
use galatea_graph::{Node, ValueId};
use galatea_tensor::Tensor;

use crate::ane_values::{AneLayout, LayoutAxes};
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, UnwritableNode, refuse};

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
