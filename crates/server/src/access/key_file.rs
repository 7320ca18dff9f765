//! The file of keys: `NAME:KEY` or `NAME:sha256:HEX` on each line, and options behind it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::key::{AccessKey, GroupSet, KeyOptions};
use super::key::{KeyDigest, sha256};
use super::limits::KeyUsage;
use crate::restricted::EndpointCategory;
use crate::secret_file::secret_lines;

/// Mark of a digest in the place of a key.
const DIGEST: &str = "sha256:";
/// Keys with fewer characters can be guessed.
const MIN_SAFE_CHARS: usize = 16;
/// Longest name of a key in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Keys by their digests.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    keys: HashMap<KeyDigest, Arc<AccessKey>>,
    /// Names of keys that are short enough to be guessed.
    pub(super) short: Vec<String>,
}

impl KeyTable {
    /// Reads the text of a file. Keys that `before` has by the same name go on with what was used of their limits.
    ///
    /// # Errors
    /// Returns what is wrong with the first line that cannot be used, by its number and without its secret.
    pub(super) fn parse(text: &str, before: &Self) -> Result<Self, String> {
        let used: HashMap<&str, &Arc<KeyUsage>> =
            before.keys.values().map(|key| (key.name(), key.usage())).collect();
        let mut table = Self::default();
        let mut names = HashSet::new();
        for line in secret_lines(text) {
            let wrong = |why: String| format!("line {}: {why}", line.number);
            let parsed = parse_line(line.text).map_err(wrong)?;
            if !names.insert(parsed.name.to_owned()) {
                return Err(wrong(format!("the name '{}' stands on an earlier line", parsed.name)));
            }
            if parsed.is_short {
                table.short.push(parsed.name.to_owned());
            }
            let usage = used.get(parsed.name).map(|usage| Arc::clone(usage)).unwrap_or_default();
            let key = AccessKey::new(parsed.name, parsed.digest, parsed.options, usage);
            if let Some(other) = table.keys.insert(parsed.digest, Arc::new(key)) {
                let text = format!("'{}' has the key of '{}'", parsed.name, other.name());
                return Err(wrong(text));
            }
        }
        if table.keys.is_empty() {
            return Err("the file has no key, expected NAME:KEY or NAME:sha256:HEX".to_owned());
        }
        Ok(table)
    }

    /// Finds the key that a client presents.
    pub(super) fn find(&self, presented: &[u8]) -> Option<&Arc<AccessKey>> {
        let digest = sha256(presented);
        self.keys.get(&digest).filter(|key| key.has_digest(&digest))
    }

    /// Returns whether it has the same key.
    pub(super) fn has(&self, key: &AccessKey) -> bool {
        self.keys.contains_key(key.digest())
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// All keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Arc<AccessKey>> {
        self.keys.values()
    }
}

struct ParsedLine<'a> {
    name: &'a str,
    digest: KeyDigest,
    is_short: bool,
    options: KeyOptions,
}

fn parse_line(line: &str) -> Result<ParsedLine<'_>, String> {
    let mut words = line.split_whitespace();
    let (name, key) = words
        .next()
        .and_then(|word| word.split_once(':'))
        .ok_or("expected NAME:KEY or NAME:sha256:HEX")?;
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(named) {
        return Err("the name of a key has 1 to 128 letters, digits and -_.@".to_owned());
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the key of '{name}' has other characters than visible ones of ASCII"));
    }
    let (digest, is_short) = match key.strip_prefix(DIGEST) {
        Some(hex) => {
            let digest = parse_hex(hex);
            (digest.ok_or_else(|| format!("'{name}': sha256: needs 64 hexadecimal digits"))?, false)
        }
        None if key.is_empty() => return Err(format!("'{name}' has no key")),
        None => (sha256(key.as_bytes()), key.len() < MIN_SAFE_CHARS),
    };
    let options = parse_options(name, words.take_while(|word| !word.starts_with('#')))?;
    Ok(ParsedLine { name, digest, is_short, options })
}

fn parse_options<'a>(
    name: &str,
    words: impl Iterator<Item = &'a str>,
) -> Result<KeyOptions, String> {
    let mut options = KeyOptions::default();
    let mut given = HashSet::new();
    for word in words {
        let (option, value) = word
            .split_once('=')
            .ok_or_else(|| format!("'{name}': expected OPTION=VALUE behind the key"))?;
        if !given.insert(option) {
            return Err(format!("'{name}' has the option '{option}' twice"));
        }
        let number = || match value.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(format!("'{name}': {option}={value}, expected a whole number from 1")),
        };
        match option {
            "groups" => options.groups = parse_groups(name, value)?,
            "requests-per-minute" => options.limits.requests = number()?,
            "tokens-per-minute" => options.limits.tokens = number()?,
            "concurrency" => options.limits.concurrent = number()?,
            _ => {
                return Err(format!(
                    "'{name}' has the unknown option '{option}'; there are groups, requests-per-minute, \
                     tokens-per-minute and concurrency"
                ));
            }
        }
    }
    Ok(options)
}

fn parse_groups(name: &str, list: &str) -> Result<GroupSet, String> {
    let mut groups = GroupSet::EMPTY;
    for group in list.split(',') {
        if group == "all" {
            groups = GroupSet::default();
            continue;
        }
        let category = EndpointCategory::named(group).ok_or_else(|| {
            let known: Vec<String> = EndpointCategory::all().map(|one| one.to_string()).collect();
            format!("'{name}' has the unknown group '{group}'; there are all, {}", known.join(", "))
        })?;
        groups.insert(category);
    }
    Ok(groups)
}

fn parse_hex(text: &str) -> Option<KeyDigest> {
    let mut digest = KeyDigest::default();
    let digits = text.bytes().map(|byte| char::from(byte).to_digit(16));
    let digits: Vec<u8> = digits.map(|digit| digit?.try_into().ok()).collect::<Option<_>>()?;
    if digits.len() != 2 * digest.len() {
        return None;
    }
    for (slot, [high, low]) in digest.iter_mut().zip(digits.as_chunks::<2>().0) {
        *slot = high << 4 | low;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<KeyTable, String> {
        KeyTable::parse(text, &KeyTable::default())
    }

    #[test]
    fn keys_are_found_by_themselves_and_by_their_digests() {
        let table = parse(
            "# the team\nalice:alices-long-secret-key\n\
             bob:sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  # abc\n\
             carol:short:with:colons groups=inference,statistics concurrency=3\n",
        )
        .unwrap();
        let found = |key: &str| table.find(key.as_bytes()).map(|key| key.name().to_owned());
        assert_eq!(found("alices-long-secret-key").as_deref(), Some("alice"));
        assert_eq!(found("abc").as_deref(), Some("bob"));
        assert_eq!(found("short:with:colons").as_deref(), Some("carol"));
        for wrong in ["", "alice", "Abc", "alices-long-secret-kez", "sha256:ba78"] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
        assert_eq!(table.short, Vec::<String>::new());
        assert_eq!(parse("dave:password").unwrap().short, ["dave"]);
        let carol = table.find(b"short:with:colons").unwrap();
        assert!(carol.opens(EndpointCategory::Inference));
        assert!(!carol.opens(EndpointCategory::ModelRepository));
        let alice = table.find(b"alices-long-secret-key").unwrap();
        assert!(EndpointCategory::all().all(|category| alice.opens(category)));
        assert!(!format!("{table:?}").contains("secret"));
    }

    #[test]
    fn mistakes_are_told_by_their_lines_and_without_secrets() {
        for (text, expected) in [
            ("", "the file has no key"),
            ("# only a comment", "the file has no key"),
            ("\nhidden", "line 2: expected NAME:KEY"),
            (":hidden", "line 1: the name of a key has"),
            ("a b:hidden", "line 1: expected NAME:KEY"),
            ("a:", "'a' has no key"),
            ("a:hidd\u{e9}n", "has other characters"),
            ("a:sha256:hidden", "'a': sha256: needs 64 hexadecimal digits"),
            ("a:hidden\na:hidden2", "line 2: the name 'a' stands on an earlier line"),
            ("a:hidden\nb:hidden", "line 2: 'b' has the key of 'a'"),
            ("a:hidden quick", "expected OPTION=VALUE behind the key"),
            ("a:hidden speed=1", "unknown option 'speed'; there are groups, requests-per-minute"),
            ("a:hidden groups=all,healthy", "unknown group 'healthy'; there are all, health,"),
            ("a:hidden groups=", "unknown group ''"),
            ("a:hidden concurrency=0", "concurrency=0, expected a whole number from 1"),
            ("a:hidden requests-per-minute=-1", "expected a whole number from 1"),
            ("a:hidden concurrency=1 concurrency=2", "has the option 'concurrency' twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("hidden"), "{text}: {error}");
        }
    }

    #[test]
    fn limits_of_a_key_go_on_when_the_file_is_read_again() {
        let first = parse("a:first-key concurrency=1\nb:other-key").unwrap();
        let pass = first.find(b"first-key").unwrap().begin().unwrap();
        let second = KeyTable::parse("a:second-key concurrency=1\nb:other-key", &first).unwrap();
        let key = second.find(b"second-key").unwrap();
        assert!(key.begin().is_err());
        drop(pass);
        assert!(key.begin().is_ok());
    }
}
