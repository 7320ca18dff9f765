//! "Did you mean …?"

/// The candidate most like a misspelt name, if one is near enough.
pub(super) fn suggest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    let limit = (name.len() / 3).max(1);
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map_or_else(String::new, |(_, candidate)| format!("; did you mean '{candidate}'?"))
}

/// Insertions, deletions and replacements that make one word of the other, whatever the case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, &above) in b.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(from != *to);
            left = replaced.min(above + 1).min(left + 1);
            next.push(left);
            diagonal = above;
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        let fields = ["max_batch_size", "name", "input"];
        assert_eq!(
            suggest("max_batchsize", fields.into_iter()),
            "; did you mean 'max_batch_size'?"
        );
        assert_eq!(suggest("inputs", fields.into_iter()), "; did you mean 'input'?");
        assert_eq!(suggest("wholly_different", fields.into_iter()), "");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
