//! When an answer ends: stop strings over the borders of tokens, end tokens, lengths.

use crate::sampling::SamplingParameters;

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// An end token came.
    EndOfText,
    /// A stop token came that the request names.
    StopToken(u32),
    /// A stop string came.
    StopString(String),
    /// The answer has as many tokens as it may have.
    Length,
    /// The answer calls tools.
    ToolCalls,
    /// The client went away or took the request back.
    Cancelled,
    /// The engine failed.
    Failed,
}

impl FinishReason {
    /// The word of the OpenAI protocol.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::EndOfText | Self::StopToken(_) | Self::StopString(_) => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::Cancelled => "abort",
            Self::Failed => "error",
        }
    }
}

/// Looks for stop strings in a stream of text. Text that may be the beginning of a stop string is
/// held back.
#[derive(Debug, Clone)]
pub struct StopStrings {
    stops: Vec<String>,
    include: bool,
    held: String,
}

impl StopStrings {
    /// Looks for the stop strings of a request.
    pub fn new(parameters: &SamplingParameters) -> Self {
        Self {
            stops: parameters.stop.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            include: parameters.include_stop_str_in_output,
            held: String::new(),
        }
    }

    /// Takes the next piece of text, and appends what is certain to `out`. Where a stop string
    /// ends inside the piece, the answer ends with it: text behind is lost.
    pub fn push(&mut self, text: &str, out: &mut String) -> Option<FinishReason> {
        if self.stops.is_empty() {
            out.push_str(text);
            return None;
        }
        self.held.push_str(text);
        // The one that is complete first ends the answer, of several the longest.
        let found = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()).map(|at| (at, stop)))
            .min_by_key(|(at, stop)| (at + stop.len(), *at));
        if let Some((at, stop)) = found {
            let end = if self.include { at + stop.len() } else { at };
            out.push_str(self.held.get(..end).unwrap_or(&self.held));
            let reason = FinishReason::StopString(stop.clone());
            self.held.clear();
            return Some(reason);
        }
        let certain = self.held.len() - self.longest_beginning();
        out.push_str(self.held.get(..certain).unwrap_or(&self.held));
        self.held.drain(..certain);
        None
    }

    /// Appends what is held back, as the answer has ended otherwise.
    pub fn finish(&mut self, out: &mut String) {
        out.push_str(&std::mem::take(&mut self.held));
    }

    /// The length of the longest end of the held text that begins a stop string.
    fn longest_beginning(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len().saturating_sub(longest.saturating_sub(1));
        (from..self.held.len())
            .filter(|at| self.held.is_char_boundary(*at))
            .find(|at| {
                let end = self.held.get(*at..).unwrap_or_default();
                self.stops.iter().any(|stop| stop.starts_with(end))
            })
            .map_or(0, |at| self.held.len() - at)
    }
}

/// Whether `token`, the `count`-th of an answer, ends it, and why. `eos` are the model's end tokens.
pub fn finish_reason(
    parameters: &SamplingParameters,
    eos: &[u32],
    token: u32,
    count: u32,
) -> Option<FinishReason> {
    if count > parameters.min_tokens {
        if !parameters.ignore_eos && eos.contains(&token) {
            return Some(FinishReason::EndOfText);
        }
        if parameters.stop_token_ids.contains(&token) {
            return Some(FinishReason::StopToken(token));
        }
    }
    parameters.max_tokens.is_some_and(|most| count >= most).then_some(FinishReason::Length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn looking_for(stops: &[&str], include: bool) -> StopStrings {
        StopStrings::new(&SamplingParameters {
            stop: stops.iter().map(|s| (*s).to_owned()).collect(),
            include_stop_str_in_output: include,
            ..SamplingParameters::default()
        })
    }

    #[test]
    fn a_stop_string_may_lie_across_tokens() {
        let mut stops = looking_for(&["\n\nUser:", "###"], false);
        let mut out = String::new();
        for (piece, shown) in [
            ("Yes.\n", "Yes."),
            ("\nUs", "Yes."),
            ("ual", "Yes.\n\nUsual"),
            ("\n", "Yes.\n\nUsual"),
        ] {
            assert_eq!(stops.push(piece, &mut out), None);
            assert_eq!(out, shown);
        }
        let reason = stops.push("\nUser: and more", &mut out);
        assert_eq!(reason, Some(FinishReason::StopString("\n\nUser:".to_owned())));
        assert_eq!(out, "Yes.\n\nUsual");
    }

    #[test]
    fn what_is_held_back_comes_at_the_end() {
        let mut stops = looking_for(&["é#"], true);
        let mut out = String::new();
        assert_eq!(stops.push("aé", &mut out), None);
        assert_eq!(out, "a");
        stops.finish(&mut out);
        assert_eq!(out, "aé");
        assert!(stops.push("é#b", &mut out).is_some());
        assert_eq!(out, "aéé#");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            text in "[ab]{0,30}", stop in "[ab]{1,4}", other in "[ab]{1,6}",
            include: bool, cuts in prop::collection::vec(1usize..5, 0..30),
        ) {
            // Letter by letter, the first stop string that ends is the one.
            let end = (0..=text.len()).find_map(|end| {
                let so_far = &text[..end];
                [&stop, &other].into_iter().filter(|s| so_far.ends_with(s.as_str())).max_by_key(|s| s.len())
                    .map(|s| if include { end } else { end - s.len() })
            });
            let mut stops = looking_for(&[&stop, &other], include);
            let mut out = String::new();
            let mut rest = text.as_str();
            let mut ended = false;
            for cut in cuts.into_iter().chain(std::iter::repeat(1)) {
                if rest.is_empty() || ended { break; }
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                ended = stops.push(piece, &mut out).is_some();
                rest = after;
            }
            if !ended { stops.finish(&mut out); }
            prop_assert_eq!(ended, end.is_some());
            prop_assert_eq!(out, &text[..end.unwrap_or(text.len())]);
        }
    }

    #[test]
    fn ends_wait_for_the_fewest_tokens() {
        let parameters = SamplingParameters {
            min_tokens: 2,
            max_tokens: Some(4),
            stop_token_ids: vec![9],
            ..SamplingParameters::default()
        };
        let of = |token, count| finish_reason(&parameters, &[1], token, count).map(|r| r.as_str());
        assert_eq!(of(1, 2), None);
        assert_eq!(of(1, 3), Some("stop"));
        assert_eq!(of(9, 3), Some("stop"));
        assert_eq!(of(5, 3), None);
        assert_eq!(of(5, 4), Some("length"));
        let ignoring = SamplingParameters { ignore_eos: true, ..parameters };
        assert_eq!(finish_reason(&ignoring, &[1], 1, 3), None);
    }
}
