//! Repository agents: what is done with a model's folder before it is loaded.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use super::load_record::PolledModel;
use crate::config::inference::model_repository_agents::Agent;
use crate::error::ServingError;
use crate::md5::Md5Digest;

/// An agent by the name that configurations give it.
struct AgentRow {
    name: &'static str,
    run: fn(&Agent, &Path) -> Result<(), ServingError>,
}

/// Every agent.
const AGENTS: &[AgentRow] = &[AgentRow { name: "checksum", run: checksum }];

/// Runs the agents that the configuration names, in its order.
///
/// # Errors
/// When one is not known or refuses the model.
pub(super) fn run(polled: &PolledModel) -> Result<(), ServingError> {
    let agents = polled.config.model_repository_agents.iter().flat_map(|all| &all.agents);
    for agent in agents {
        let Some(row) = AGENTS.iter().find(|row| row.name == agent.name) else {
            let known: Vec<&str> = AGENTS.iter().map(|row| row.name).collect();
            return Err(ServingError::invalid_arg(format!(
                "unable to find repository agent '{}' of model '{}'; known here: {}",
                agent.name,
                polled.config.name,
                known.join(", ")
            )));
        };
        (row.run)(agent, &polled.dir)?;
    }
    Ok(())
}

/// Compares files with the digests in the parameters: `MD5:PATH`, relative to the model's folder, to the digest.
fn checksum(agent: &Agent, dir: &Path) -> Result<(), ServingError> {
    // The order of a map changes; of several mistakes always the same one is reported.
    let mut parameters: Vec<(&String, &String)> = agent.parameters.iter().collect();
    parameters.sort();
    for (key, wanted) in parameters {
        let Some(("MD5", path)) = key.split_once(':') else {
            return Err(ServingError::invalid_arg(format!(
                "the checksum agent expects parameters of the form MD5:PATH, found '{key}'"
            )));
        };
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(path).components().all(inside) {
            return Err(ServingError::invalid_arg(format!(
                "the checksum agent looks into the folder of the model only, found '{path}'"
            )));
        }
        let found = digest_of(&dir.join(path)).map_err(|error| {
            ServingError::internal(format!("failed to read '{path}' for its checksum: {error}"))
        })?;
        if !found.eq_ignore_ascii_case(wanted.trim()) {
            return Err(ServingError::invalid_arg(format!(
                "Mismatched MD5 hash for file {path}, expected: {wanted}, got: {found}"
            )));
        }
    }
    Ok(())
}

fn digest_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut md5 = Md5Digest::default();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(md5.finish()),
            bytes => md5.update(piece.get(..bytes).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_lets_only_the_same_file_pass() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("1")).unwrap();
        std::fs::write(dir.path().join("1/model"), "message digest").unwrap();
        let check = |key: &str, value: &str| {
            let parameters = [(key.to_owned(), value.to_owned())].into();
            let agent = Agent { name: "checksum".to_owned(), parameters };
            checksum(&agent, dir.path()).map_err(|error| error.message)
        };
        check("MD5:1/model", "f96b697d7cb7938d525a2f31aaf161d0").unwrap();
        check("MD5:1/model", "F96B697D7CB7938D525A2F31AAF161D0").unwrap();
        for (key, value, text) in [
            ("MD5:1/model", "00", "Mismatched MD5 hash for file 1/model, expected: 00, got: f96b"),
            ("MD5:1/other", "00", "failed to read '1/other'"),
            ("MD5:../x", "00", "folder of the model only"),
            ("MD5:/etc/passwd", "00", "folder of the model only"),
            ("SHA1:1/model", "00", "MD5:PATH, found 'SHA1:1/model'"),
        ] {
            let error = check(key, value).unwrap_err();
            assert!(error.contains(text), "{key}: {error}");
        }
    }
}
