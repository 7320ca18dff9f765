//! A page of HTML that needs nothing from elsewhere.

use std::fmt::Write;

/// Style sheet, for light and dark displays.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #8886}\
table{border-collapse:collapse;font-size:.9rem;display:block;overflow-x:auto}\
th,td{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8883;overflow-wrap:anywhere}\
td.n,th{white-space:nowrap}td.n{text-align:right;font-variant-numeric:tabular-nums}\
td i{display:inline-block;height:.7em;background:#38c;border-radius:2px}\
figure{margin:1rem 0}figure svg{max-width:100%;height:auto;background:#fff}\
p.verdict{font-weight:600}small{opacity:.75}";

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TableCell {
    /// Words.
    Text(String),
    /// A number, as it is to be read.
    Number(String),
    /// A share from 0 to 1, as a bar.
    Bar(f64),
}

impl TableCell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number with so many digits behind the point; nothing where it is not known.
    pub(super) fn number(value: Option<f64>, digits: usize) -> Self {
        Self::Number(value.map_or(String::new(), |value| format!("{value:.digits$}")))
    }
}

/// Page under construction.
#[derive(Debug, Clone)]
pub(super) struct ReportPage {
    title: String,
    body: String,
}

impl ReportPage {
    pub(super) fn new(title: &str) -> Self {
        Self { title: title.to_owned(), body: format!("<h1>{}</h1>\n", escaped(title)) }
    }

    pub(super) fn section(&mut self, title: &str) {
        self.add(&format!("<h2>{}</h2>\n", escaped(title)));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.add(&format!("<p>{}</p>\n", escaped(text)));
    }

    /// Adds the verdict of the report.
    pub(super) fn verdict(&mut self, text: &str) {
        self.add(&format!("<p class=\"verdict\">{}</p>\n", escaped(text)));
    }

    pub(super) fn note(&mut self, text: &str) {
        self.add(&format!("<p><small>{}</small></p>\n", escaped(text)));
    }

    /// A picture as SVG.
    pub(super) fn figure(&mut self, svg: &str) {
        self.add(&format!("<figure>{svg}</figure>\n"));
    }

    pub(super) fn table(&mut self, head: &[&str], rows: &[Vec<TableCell>]) {
        let mut text = String::from("<table><thead><tr>");
        for name in head {
            write!(text, "<th>{}</th>", escaped(name)).ok();
        }
        text.push_str("</tr></thead><tbody>\n");
        for row in rows {
            text.push_str("<tr>");
            for cell in row {
                match cell {
                    TableCell::Text(words) => write!(text, "<td>{}</td>", escaped(words)),
                    TableCell::Number(number) => {
                        write!(text, "<td class=\"n\">{}</td>", escaped(number))
                    }
                    TableCell::Bar(share) => {
                        let width = share.clamp(0.0, 1.0) * 8.0;
                        write!(text, "<td><i style=\"width:{width:.2}rem\"></i></td>")
                    }
                }
                .ok();
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody></table>\n");
        self.add(&text);
    }

    /// Names and values.
    pub(super) fn facts(&mut self, facts: &[(String, String)]) {
        let row =
            |(name, value): &(String, String)| vec![TableCell::text(name), TableCell::text(value)];
        self.table(&["", ""], &facts.iter().map(row).collect::<Vec<_>>());
    }

    /// The whole page, with all numbers once more for programs.
    pub(super) fn end(self, data: &serde_json::Value) -> String {
        // Nothing in it may end the element.
        let data = data.to_string().replace('<', "\\u003c");
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
             <style>{STYLE}</style></head>\n<body>\n{}\
             <script type=\"application/json\" id=\"report\">{data}</script>\n</body></html>\n",
            escaped(&self.title),
            self.body
        )
    }

    fn add(&mut self, text: &str) {
        self.body.push_str(text);
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_of_a_model_becomes_markup() {
        let mut page = ReportPage::new("<script>");
        page.section("a & b");
        page.table(
            &["<x>"],
            &[vec![TableCell::text("</td>"), TableCell::Bar(7.0), TableCell::number(None, 2)]],
        );
        page.facts(&[("name".to_owned(), "\"<b>\"".to_owned())]);
        let text = page.end(&json!({"name": "</script>"}));
        assert_eq!(text.matches("<script").count(), 1, "{text}");
        assert_eq!(text.matches("</script>").count(), 1, "{text}");
        assert!(!text.contains("<b>") && text.contains("a &amp; b"), "{text}");
        assert!(text.contains("<td>&lt;/td&gt;</td>") && text.contains("width:8.00rem"), "{text}");
    }
}
