//! Headers that tell of the page that sent a request.

/// Headers of a request that browsers set and pages cannot change, and its host.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BrowserMarks<'a> {
    /// The host; the first of several.
    pub(crate) host: Option<&'a str>,
    /// Number of hosts.
    pub(crate) hosts: usize,
    /// `Origin`.
    pub(crate) origin: HeaderOnce<'a>,
    /// `Sec-Fetch-Site`.
    pub(crate) site: HeaderOnce<'a>,
    /// `Sec-Fetch-Mode`.
    pub(crate) mode: HeaderOnce<'a>,
    /// `Sec-Fetch-Dest`.
    pub(crate) destination: HeaderOnce<'a>,
}

/// A header that must not come twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HeaderOnce<'a> {
    /// It is not there.
    #[default]
    Absent,
    /// Its value.
    Value(&'a str),
    /// It is there more than once.
    Repeated,
}

impl<'a> HeaderOnce<'a> {
    fn add(&mut self, value: &'a str) {
        *self = if *self == Self::Absent { Self::Value(value) } else { Self::Repeated };
    }

    /// Returns whether the header is present.
    pub(crate) fn is_present(self) -> bool {
        self != Self::Absent
    }

    /// Returns whether the header is present once, with this value.
    pub(crate) fn is(self, value: &str) -> bool {
        matches!(self, Self::Value(found) if found == value)
    }
}

/// Beginning of the names of fetch metadata.
const FETCH: &str = "sec-fetch-";

impl<'a> BrowserMarks<'a> {
    /// Looks through all headers once.
    pub(crate) fn of_headers(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut marks = Self::default();
        for (name, value) in headers {
            marks.add(name, value);
        }
        marks
    }

    /// Takes a header in, if it is one of these.
    fn add(&mut self, name: &str, value: &'a str) {
        // Most headers begin with another letter.
        match name.as_bytes().first() {
            Some(b'h' | b'H') if name.eq_ignore_ascii_case("host") => {
                self.host.get_or_insert(value);
                self.hosts += 1;
            }
            Some(b'o' | b'O') if name.eq_ignore_ascii_case("origin") => self.origin.add(value),
            Some(b's' | b'S') => {
                let Some((start, rest)) = name.split_at_checked(FETCH.len()) else { return };
                if start.eq_ignore_ascii_case(FETCH) {
                    self.add_fetch_metadata(rest, value);
                }
            }
            _ => {}
        }
    }

    fn add_fetch_metadata(&mut self, name: &str, value: &'a str) {
        match name {
            _ if name.eq_ignore_ascii_case("site") => self.site.add(value),
            _ if name.eq_ignore_ascii_case("mode") => self.mode.add(value),
            _ if name.eq_ignore_ascii_case("dest") => self.destination.add(value),
            _ => {}
        }
    }

    /// Returns whether a browser sent the request for a page. `Sec-Fetch-Mode` alone does not say so: programs for Node.js
    /// send it too, and browsers never without the site.
    pub(crate) fn is_from_browser(&self) -> bool {
        self.origin.is_present() || self.site.is_present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_any_case_and_counted() {
        let marks = BrowserMarks::of_headers(
            [
                ("HOST", "a"),
                ("Server", "s"),
                ("sec-FETCH-Site", "none"),
                ("Sec-Fetch-User", "?1"),
                ("host", "b"),
                ("ORIGIN", "null"),
            ]
            .into_iter(),
        );
        assert_eq!((marks.host, marks.hosts), (Some("a"), 2));
        assert!(marks.site.is("none") && marks.origin.is("null") && marks.is_from_browser());
        assert!(!marks.mode.is_present());
        let twice = BrowserMarks::of_headers([("Origin", "a"), ("origin", "a")].into_iter());
        assert_eq!(twice.origin, HeaderOnce::Repeated);
        let plain = [("Host", "a"), ("Sec", "x"), ("Origins", "y"), ("Sec-Fetch-Mode", "cors")];
        assert!(!BrowserMarks::of_headers(plain.into_iter()).is_from_browser());
    }
}
