//! Keys of clients: who a request is from, what the key opens, and how much its owner may ask for.
//!
//! A key is looked up by its digest before the body of a request is read. Users read the rules in `docs/security.md`.

mod key;
mod key_file;
mod limits;
mod refusal;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use self::key_file::KeyTable;
use crate::restricted::EndpointCategory;
use crate::secret_file::read_secret_file;

pub use key::{AccessKey, ClientPass};
pub(crate) use refusal::AccessRefusal;

/// Flag that gives the file of keys.
const FLAG: &str = "api-key-file";

/// Endpoint of a request as far as keys are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointAccess {
    /// Everybody may ask.
    Open,
    /// A key that opens the group is needed.
    Group(EndpointCategory),
    /// There is no such endpoint; only owners of keys learn that.
    Unknown,
}

/// The keys that open a server.
#[derive(Debug)]
pub struct AccessControl {
    path: PathBuf,
    table: RwLock<Arc<KeyTable>>,
}

impl AccessControl {
    /// Reads the file of keys.
    ///
    /// # Errors
    /// Returns a sentence that names the file and what is wrong with it, without any key.
    pub fn open(path: &Path) -> Result<Self, String> {
        let table = read(path, &KeyTable::default())?;
        Ok(Self { path: path.to_owned(), table: RwLock::new(Arc::new(table)) })
    }

    /// Reads the file again. Keys that it has no longer open nothing from now on; where it cannot be used, all keys
    /// stay as they are.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn reload(&self) -> Result<(), String> {
        let before = self.table();
        let table = Arc::new(read(&self.path, &before)?);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&table);
        before.keys().filter(|key| !table.has(key)).for_each(|key| key.withdraw());
        self.announce();
        Ok(())
    }

    /// Writes to the log how many keys there are, and which of them can be guessed.
    pub(crate) fn announce(&self) {
        let table = self.table();
        tracing::info!("{} keys of '{}' open the server", table.len(), self.path.display());
        if !table.short.is_empty() {
            let names = table.short.join(", ");
            tracing::warn!(
                "keys of fewer than 16 characters can be guessed; these have such: {names}"
            );
        }
    }

    /// Finds the key of a request, and checks that it opens the endpoint. Open endpoints need none.
    ///
    /// # Errors
    /// Fails when there is no such key, or it does not open the endpoint.
    pub(crate) fn identify<'a>(
        &self,
        endpoint: EndpointAccess,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Option<Arc<AccessKey>>, AccessRefusal> {
        if endpoint == EndpointAccess::Open {
            return Ok(None);
        }
        let presented = presented_key(headers).ok_or(AccessRefusal::NoKey)?;
        let table = self.table();
        let key = table.find(presented).ok_or(AccessRefusal::UnknownKey)?;
        match endpoint {
            EndpointAccess::Group(group) if !key.opens(group) => {
                Err(AccessRefusal::ClosedGroup { name: key.name().into(), group })
            }
            _ => Ok(Some(Arc::clone(key))),
        }
    }

    fn table(&self) -> Arc<KeyTable> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn read(path: &Path, before: &KeyTable) -> Result<KeyTable, String> {
    let text = read_secret_file(FLAG, path)?;
    KeyTable::parse(&text, before).map_err(|why| format!("--{FLAG}={}: {why}", path.display()))
}

/// Returns the key that headers present: `Authorization: Bearer KEY`, or `x-api-key: KEY`.
fn presented_key<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> Option<&'a [u8]> {
    let mut plain = None;
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("authorization") {
            if let Some((scheme, key)) = value.split_first_chunk::<7>()
                && scheme.eq_ignore_ascii_case(b"bearer ")
            {
                return Some(key.trim_ascii());
            }
        } else if name.eq_ignore_ascii_case("x-api-key") {
            plain = plain.or_else(|| Some(value.trim_ascii()));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(text: &str) -> AccessControl {
        let table = KeyTable::parse(text, &KeyTable::default()).unwrap();
        AccessControl { path: PathBuf::from("keys"), table: RwLock::new(Arc::new(table)) }
    }

    #[test]
    fn keys_come_in_either_header() {
        let present = |headers: &[(&'static str, &'static str)]| {
            let headers: Vec<_> =
                headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
            presented_key(headers.into_iter()).map(|key| String::from_utf8_lossy(key).into_owned())
        };
        assert_eq!(present(&[("Authorization", "Bearer k1")]).as_deref(), Some("k1"));
        assert_eq!(present(&[("authorization", "bEARER  k1 ")]).as_deref(), Some("k1"));
        assert_eq!(present(&[("X-API-Key", "k2")]).as_deref(), Some("k2"));
        let both = [("x-api-key", "k2"), ("authorization", "Bearer k1")];
        assert_eq!(present(&both).as_deref(), Some("k1"));
        let basic = [("authorization", "Basic dTpw"), ("x-api-key", "k2")];
        assert_eq!(present(&basic).as_deref(), Some("k2"));
        assert_eq!(present(&[("authorization", "Bearer")]), None);
        assert_eq!(present(&[("cookie", "k1")]), None);
    }

    #[test]
    fn a_key_opens_its_groups_and_open_endpoints_need_none() {
        let access = access("a:key-a groups=inference\nroot:key-root");
        let ask = |endpoint, key: &'static str| {
            let headers = [("x-api-key", key.as_bytes())];
            access.identify(endpoint, headers.into_iter().filter(|(_, key)| !key.is_empty()))
        };
        let inference = EndpointAccess::Group(EndpointCategory::Inference);
        let repository = EndpointAccess::Group(EndpointCategory::ModelRepository);
        assert!(ask(EndpointAccess::Open, "").unwrap().is_none());
        assert!(ask(EndpointAccess::Open, "wrong").unwrap().is_none());
        assert_eq!(ask(inference, "").unwrap_err(), AccessRefusal::NoKey);
        assert_eq!(ask(EndpointAccess::Unknown, "").unwrap_err(), AccessRefusal::NoKey);
        assert_eq!(ask(inference, "wrong").unwrap_err(), AccessRefusal::UnknownKey);
        assert_eq!(ask(inference, "key-a").unwrap().unwrap().name(), "a");
        assert_eq!(ask(EndpointAccess::Unknown, "key-a").unwrap().unwrap().name(), "a");
        let refused = ask(repository, "key-a").unwrap_err();
        assert_eq!(refused.status(), 403);
        assert!(
            refused.message().contains("'a' does not open the endpoint group 'model-repository'")
        );
        assert_eq!(ask(repository, "key-root").unwrap().unwrap().name(), "root");
    }

    #[test]
    fn refusals_are_those_of_both_protocols() {
        let limited = access("a:key concurrency=1");
        let key = limited.table().find(b"key").cloned().unwrap();
        let _pass = key.begin().unwrap();
        let refused = key.begin().unwrap_err();
        assert_eq!((refused.status(), refused.retry_after()), (429, Some(1)));
        let status = refused.grpc_status();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert_eq!(status.metadata().get("retry-after").unwrap(), "1");
        assert!(status.message().contains("its limit of 1 requests at the same time"));
        assert_eq!(AccessRefusal::NoKey.grpc_status().code(), tonic::Code::Unauthenticated);
    }

    #[cfg(unix)]
    #[test]
    fn a_broken_file_keeps_the_old_keys_and_a_good_one_withdraws_them() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("a:key-a\nb:key-b");
        let access = AccessControl::open(&path).unwrap();
        let ask = |key: &'static str| {
            access.identify(EndpointAccess::Unknown, [("x-api-key", key.as_bytes())].into_iter())
        };
        write("nothing");
        assert!(access.reload().unwrap_err().contains("line 1"));
        let old = ask("key-a").unwrap().unwrap();
        write("a:key-c\nb:key-b");
        access.reload().unwrap();
        assert_eq!(ask("key-a").unwrap_err(), AccessRefusal::UnknownKey);
        assert_eq!(ask("key-c").unwrap().unwrap().name(), "a");
        assert!(ask("key-b").unwrap().unwrap().begin().is_ok());
        assert_eq!(old.begin().unwrap_err(), AccessRefusal::UnknownKey);
    }
}
