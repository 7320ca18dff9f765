//! Space of candidates to choose from.

/// One thing to choose, such as a number of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigAxis {
    /// Name of the choice.
    pub name: String,
    /// The choices; the first is the default.
    pub labels: Vec<String>,
    /// True if neighbours are alike, as numbers are and algorithms are not.
    pub ordered: bool,
}

impl ConfigAxis {
    /// Numbers, of which neighbours are alike.
    #[must_use]
    pub fn numbers(name: &str, values: &[usize]) -> Self {
        let labels = values.iter().map(usize::to_string).collect();
        Self { name: name.to_owned(), labels, ordered: true }
    }

    /// Names, each unlike the others.
    #[must_use]
    pub fn names(name: &str, labels: &[&str]) -> Self {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Self { name: name.to_owned(), labels, ordered: false }
    }
}

/// All combinations of the choices on some axes. Candidates are numbered; number 0 is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSpace {
    axes: Vec<ConfigAxis>,
}

/// A choice for each axis.
pub(super) type ConfigPoint = Vec<usize>;

impl ConfigSpace {
    /// Every combination.
    #[must_use]
    pub fn new(axes: Vec<ConfigAxis>) -> Self {
        Self { axes }
    }

    /// The axes.
    #[must_use]
    pub fn axes(&self) -> &[ConfigAxis] {
        &self.axes
    }

    /// Returns the number of candidates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.axes.iter().map(|axis| axis.labels.len()).fold(1, usize::saturating_mul)
    }

    /// Returns whether an axis has no choice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The choices of a candidate. The last axis changes first.
    #[must_use]
    pub fn point(&self, mut candidate: usize) -> Vec<usize> {
        let mut point = vec![0; self.axes.len()];
        for (slot, axis) in point.iter_mut().zip(&self.axes).rev() {
            let count = axis.labels.len().max(1);
            *slot = candidate % count;
            candidate /= count;
        }
        point
    }

    /// The candidate with these choices.
    #[must_use]
    pub fn candidate(&self, point: &[usize]) -> usize {
        self.axes.iter().zip(point).fold(0, |sum, (axis, &at)| sum * axis.labels.len() + at)
    }

    /// Returns the name of a candidate: `threads=2 algorithm=direct`.
    #[must_use]
    pub fn name(&self, candidate: usize) -> String {
        let point = self.point(candidate);
        let parts = self.axes.iter().zip(point);
        let part = |(axis, at): (&ConfigAxis, usize)| {
            format!("{}={}", axis.name, axis.labels.get(at).map_or("", String::as_str))
        };
        parts.map(part).collect::<Vec<_>>().join(" ")
    }

    /// The names of all candidates.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        (0..self.len()).map(|candidate| self.name(candidate)).collect()
    }

    /// Returns the coordinates of a candidate: ordered axes from 0 to 1, of others one coordinate for each
    /// choice.
    pub(super) fn place(&self, candidate: usize) -> Vec<f64> {
        let mut place = Vec::new();
        for (axis, at) in self.axes.iter().zip(self.point(candidate)) {
            if axis.ordered {
                place.push(at as f64 / axis.labels.len().saturating_sub(1).max(1) as f64);
            } else {
                let far = |label: usize| if label == at { 0.5 } else { 0.0 };
                place.extend((0..axis.labels.len()).map(far));
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_numbered_from_the_default_on() {
        let space = ConfigSpace::new(vec![
            ConfigAxis::names("algorithm", &["direct", "winograd"]),
            ConfigAxis::numbers("threads", &[4, 2, 1]),
        ]);
        assert_eq!(space.len(), 6);
        assert_eq!(space.name(0), "algorithm=direct threads=4");
        assert_eq!(space.name(5), "algorithm=winograd threads=1");
        for candidate in 0..6 {
            assert_eq!(space.candidate(&space.point(candidate)), candidate);
        }
        assert_eq!(space.place(4), [0.0, 0.5, 0.5]);
    }
}
