//! Tables in text.

/// Lines of a table with a head; cells may have several lines.
#[must_use]
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|&text| text.to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = std::iter::once(&head).chain(&rows).filter_map(|row| row.get(column));
            cells.flat_map(|cell| cell.lines()).map(|line| line.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let rule: String = widths.iter().map(|width| format!("+{}", "-".repeat(width + 2))).collect();
    let rule = format!("{rule}+\n");
    let mut text = rule.clone();
    push_row(&mut text, &head, &widths);
    text.push_str(&rule);
    for row in &rows {
        push_row(&mut text, row, &widths);
    }
    if !rows.is_empty() {
        text.push_str(&rule);
    }
    text
}

fn push_row(text: &mut String, row: &[String], widths: &[usize]) {
    let height = row.iter().map(|cell| cell.lines().count()).max().unwrap_or(0).max(1);
    for line in 0..height {
        for (column, width) in widths.iter().enumerate() {
            let cell = row.get(column).and_then(|cell| cell.lines().nth(line)).unwrap_or("");
            let pad = width.saturating_sub(cell.chars().count());
            text.push_str("| ");
            text.push_str(cell);
            text.push_str(&" ".repeat(pad + 1));
        }
        text.push_str("|\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_line() {
        let text = table(&["A", "Bc"], [vec!["x".to_owned(), "one\nthree".to_owned()]]);
        assert_eq!(
            text,
            "+---+-------+\n| A | Bc    |\n+---+-------+\n| x | one   |\n|   | three |\n+---+-------+\n"
        );
    }
}
