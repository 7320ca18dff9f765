//! A page of metrics in Prometheus' text format, read back.

use galatea_tensor::OrderedMap;

/// The most series that are read of a page.
const MOST: usize = 200_000;

/// A number of a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricSeries {
    pub(super) labels: OrderedMap<String, String>,
    pub(super) value: f64,
}

impl MetricSeries {
    /// The value of a label; empty where there is none.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

/// A page: its series by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MetricsPage(OrderedMap<String, Vec<MetricSeries>>);

impl MetricsPage {
    /// Reads a page. Lines that are no series, such as comments, are passed over: a newer server may write more.
    pub(super) fn parse(text: &str) -> Self {
        let mut all: OrderedMap<String, Vec<MetricSeries>> = OrderedMap::new();
        for (name, series) in text.lines().filter_map(series).take(MOST) {
            all.entry(name).or_default().push(series);
        }
        Self(all)
    }

    /// All series of a name.
    pub(super) fn all(&self, name: &str) -> &[MetricSeries] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The series of a name that have these labels.
    pub(super) fn with<'p>(
        &'p self,
        name: &str,
        labels: &'p [(&'p str, &'p str)],
    ) -> impl Iterator<Item = &'p MetricSeries> {
        let fits = |series: &&MetricSeries| {
            labels.iter().all(|(name, value)| series.label(name) == *value)
        };
        self.all(name).iter().filter(fits)
    }

    /// The sum of the series of a name that have these labels; nothing where there are none.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.with(name, labels).map(|series| series.value).reduce(|a, b| a + b)
    }
}

/// `name{label="value",…} number`
fn series(line: &str) -> Option<(String, MetricSeries)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, rest)) => {
            let (labels, rest) = labels(rest)?;
            (name, labels, rest)
        }
        None => {
            let (name, rest) = line.split_once(' ')?;
            (name, OrderedMap::new(), rest)
        }
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name.to_owned(), MetricSeries { labels, value }))
}

/// The labels up to the brace that ends them, and what follows.
fn labels(text: &str) -> Option<(OrderedMap<String, String>, &str)> {
    let mut labels = OrderedMap::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, letter) => value.push(letter),
            }
        };
        labels.insert(name.trim().to_owned(), value);
        rest = after.get(end + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_read_with_their_labels() {
        let page = MetricsPage::parse(
            "# HELP a Words\n# TYPE a counter\na{x=\"1\",y=\"two \\\"}\\\" \\\\\"} 3\na{x=\"2\"} 4.5\nplain 7\nq{quantile=\"0.5\"} NaN\n",
        );
        assert_eq!(page.all("a").len(), 2);
        assert_eq!(page.all("a")[0].label("y"), "two \"}\" \\");
        assert_eq!(page.sum("a", &[("x", "2")]), Some(4.5));
        assert_eq!((page.sum("a", &[]), page.sum("plain", &[])), (Some(7.5), Some(7.0)));
        assert!(page.sum("q", &[]).unwrap().is_nan());
        assert_eq!(page.sum("none", &[]), None);
    }

    #[test]
    fn what_is_no_series_is_passed_over() {
        for text in ["a{", "a{x=\"", "a{x=\"\\", "a{x} 1", "a", "a b", "{} ", "é{é=\"é\"", "\u{0}"]
        {
            MetricsPage::parse(text);
        }
        assert_eq!(MetricsPage::parse("a{x=\"1\"\na x\n"), MetricsPage::default());
    }
}
