//! Ranks: how well documents answer a query, and how near texts are.

use std::sync::Arc;

use galatea_llm::embed::{EncoderEngine, TextTokens, cosine};
use galatea_llm::tokens::SpecialTokens;
use serde::Serialize;
use serde_json::Value;

use super::encoding::{
    PreparedEncoding, ReadUsage, TextLimits, check_length, check_text, most_tokens,
};
use super::error::ApiError;
use super::fields::{ObjectFields, wrong};
use super::wire::unique;
use super::wire::{now, to_bytes};

/// The most documents of one request, as Cohere has it.
const MAX_DOCUMENTS: usize = 10_000;

#[derive(Debug, Serialize)]
struct RankList<'a> {
    id: String,
    model: &'a str,
    usage: ReadUsage,
    results: Vec<RankItem>,
}

#[derive(Debug, Serialize)]
struct RankItem {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<RankedDocument>,
    relevance_score: f32,
}

#[derive(Debug, Serialize)]
struct RankedDocument {
    text: String,
}

#[derive(Debug, Serialize)]
struct ScoreList<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    data: Vec<ScoreItem>,
    usage: ReadUsage,
}

#[derive(Debug, Serialize)]
struct ScoreItem {
    index: usize,
    object: &'static str,
    score: f32,
}

/// The texts of a list, each a text or an object with a member `text`.
fn documents(fields: &ObjectFields<'_>, key: &str) -> Result<Vec<String>, ApiError> {
    let Some(all) = fields.list(key)? else { return Err(fields.missing(key)) };
    if all.is_empty() || all.len() > MAX_DOCUMENTS {
        let text = format!("{} texts found, expected 1 to {MAX_DOCUMENTS}", all.len());
        return Err(ApiError::field(key, text));
    }
    let text = |(at, value): (usize, &Value)| {
        let text = value.as_str().or_else(|| value.get("text")?.as_str());
        let expected = "a text, or an object with a member text";
        text.map(str::to_owned).ok_or_else(|| wrong(&format!("{key}[{at}]"), value, expected))
    };
    all.iter().enumerate().map(text).collect()
}

/// Decodes a request for ranks, as vLLM, Cohere and Jina have it.
///
/// # Errors
/// Fails for the first wrong field, and for a text that is too long.
pub(crate) fn rerank(
    engine: &EncoderEngine,
    name: &str,
    fields: &ObjectFields<'_>,
) -> Result<PreparedEncoding, ApiError> {
    let Some(query) = fields.text("query")? else { return Err(fields.missing("query")) };
    let documents = documents(fields, "documents")?;
    let most = match fields.count("top_n")? {
        None | Some(0) => documents.len(),
        Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
    };
    let whole = fields.flag_or("return_documents", true)?;
    let model = Arc::clone(engine.model());
    let context = model.encoder().context();
    let given: Vec<&str> = documents.iter().map(String::as_str).collect();
    let cut = most_tokens(fields, context)?;
    let limits = TextLimits { model: &model, most: cut };
    // In a pair the query stays whole, whatever is left out of documents.
    let query_cut = cut.filter(|_| model.encoder().dimensions().is_some());
    let query_limits = TextLimits { most: query_cut, ..limits };
    check_text(|| "query".to_owned(), "query", query, query_limits)?;
    for (at, text) in given.iter().enumerate() {
        check_text(|| format!("documents[{at}]"), "documents", text, limits)?;
    }
    let texts = model.ranked(query, &given, cut)?;
    for (at, text) in texts.iter().enumerate() {
        // Behind the documents of a model of vectors stands the query.
        let (place, param) = match at < documents.len() {
            true => (format!("documents[{at}]"), "documents"),
            false => ("query".to_owned(), "query"),
        };
        check_length(|| place, param, text, context)?;
    }
    let usage = ReadUsage::of(&texts);
    let name = name.to_owned();
    let answer = move |results| {
        let scores = model.scores(results);
        let mut ranks: Vec<RankItem> = (documents.into_iter().zip(scores).enumerate())
            .map(|(index, (text, relevance_score))| RankItem {
                index,
                document: whole.then_some(RankedDocument { text }),
                relevance_score,
            })
            .collect();
        ranks.sort_by(|a, b| b.relevance_score.total_cmp(&a.relevance_score));
        ranks.truncate(most);
        let answer = RankList { id: unique("rerank-"), model: &name, usage, results: ranks };
        Ok(to_bytes(&answer))
    };
    Ok(PreparedEncoding { texts, answer: Box::new(answer) })
}

/// One text or several.
fn one_or_many(fields: &ObjectFields<'_>, key: &str) -> Result<Vec<String>, ApiError> {
    match fields.get(key) {
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        _ => documents(fields, key),
    }
}

/// Decodes a request for scores, as vLLM has it: of one text with each of several, or of pairs.
///
/// # Errors
/// Fails for the first wrong field, and for a text that is too long.
pub(crate) fn score(
    engine: &EncoderEngine,
    name: &str,
    fields: &ObjectFields<'_>,
) -> Result<PreparedEncoding, ApiError> {
    let named = |plain, other| if fields.get(plain).is_some() { plain } else { other };
    let left = named("text_1", "queries");
    let right = named("text_2", "documents");
    let first = one_or_many(fields, left)?;
    let second = one_or_many(fields, right)?;
    if first.len() != 1 && first.len() != second.len() {
        let found = format!("{} texts found for {} of {right}", first.len(), second.len());
        return Err(ApiError::field(left, format!("{found}, expected one, or as many")));
    }
    let model = Arc::clone(engine.model());
    let encoder = model.encoder();
    let context = encoder.context();
    let most = most_tokens(fields, context)?;
    let vectors = encoder.dimensions().is_some();
    let mut texts: Vec<TextTokens> = Vec::new();
    let mut push = |param: &str, at: usize, text: TextTokens| {
        check_length(|| format!("{param}[{at}]"), param, &text, context)?;
        texts.push(text);
        Ok::<_, ApiError>(())
    };
    let limits = TextLimits { model: &model, most };
    for (param, given) in [(left, &first), (right, &second)] {
        // The first of two texts of a pair stays whole.
        let most = most.filter(|_| vectors || param == right);
        for (at, text) in given.iter().enumerate() {
            check_text(|| format!("{param}[{at}]"), param, text, TextLimits { most, ..limits })?;
        }
    }
    if vectors {
        for (param, given) in [(left, &first), (right, &second)] {
            for (at, text) in given.iter().enumerate() {
                push(param, at, model.text(text, None, SpecialTokens::Add, most)?)?;
            }
        }
    } else {
        for (at, (first, second)) in first.iter().cycle().zip(&second).enumerate() {
            push(right, at, model.pair(first, second, most)?)?;
        }
    }
    let usage = ReadUsage::of(&texts);
    let name = name.to_owned();
    let count = first.len();
    let answer = move |results: Vec<Vec<f32>>| {
        let scores: Vec<f32> = if vectors {
            let (first, second) = results.split_at(count.min(results.len()));
            first.iter().cycle().zip(second).map(|(a, b)| cosine(a, b)).collect()
        } else {
            model.scores(results)
        };
        let score = |(index, score)| ScoreItem { index, object: "score", score };
        let data = scores.into_iter().enumerate().map(score).collect();
        let id = unique("score-");
        let answer = ScoreList { id, object: "list", created: now(), model: &name, data, usage };
        Ok(to_bytes(&answer))
    };
    Ok(PreparedEncoding { texts, answer: Box::new(answer) })
}
