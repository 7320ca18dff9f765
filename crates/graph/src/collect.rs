//! Collecting what may fail, or be missing, into a list: compiled once for each type of element. The
//! standard library's way is a thousand lines of intermediate code for each iterator.

/// The elements, or the first error.
pub(crate) fn collected<T, E>(items: &mut dyn Iterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let mut all = Vec::with_capacity(items.size_hint().0);
    for item in items {
        all.push(item?);
    }
    Ok(all)
}

/// The elements, if none is missing.
pub(crate) fn collected_some<T>(items: &mut dyn Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let mut all = Vec::with_capacity(items.size_hint().0);
    for item in items {
        all.push(item?);
    }
    Some(all)
}
