//! Versions that requests have looked up, while models come and go.

use galatea_serving::ModelHandle;

use super::*;

/// Response to the input 0.
fn asked(model: &ModelHandle) -> Result<InferenceResponse, ServingError> {
    answer(|sink| model.infer(of_zero("", ""), sink))
}

#[test]
fn a_handle_means_the_version_that_was_found_also_when_a_later_one_comes() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    let latest = served.core.resolve("m", "").unwrap();
    repository.write("m/2/model.told", "20");
    served.load("m").unwrap();
    assert_eq!((latest.name(), latest.version()), ("m", "1"));
    assert_eq!(sum(&asked(&latest).unwrap()), 10);
    assert_eq!(latest.metadata().versions, ["1", "2"]);
    let first = served.core.resolve("m", "1").unwrap();
    assert_eq!(first.metadata().versions, ["1"]);
    assert_eq!(served.core.resolve("m", "").unwrap().version(), "2");
    assert!(first.has_batches() && !first.is_decoupled());
    assert_eq!(first.inputs(), first.metadata().inputs);
}

#[test]
fn a_request_behind_an_unload_is_refused_as_one_that_looks_the_model_up_then() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    for version in ["", "1"] {
        served.load("m").unwrap();
        let model = served.core.resolve("m", version).unwrap();
        served.unload("m");
        let refused = asked(&model).unwrap_err();
        assert_eq!(refused, served.core.resolve("m", version).unwrap_err());
        assert_eq!(refused, served.added("m", version).unwrap_err());
        // What was found says all the same what it was.
        assert_eq!((model.version(), model.config().max_batch_size), ("1", 4));
    }
}

#[test]
fn a_version_that_is_replaced_hands_its_requests_to_its_successor() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let named = |labels: &str| {
        let config = CONFIG.replace("'OUT'", "'OUT' label_filename: 'labels.txt'");
        repository.write("m/labels.txt", labels);
        repository.write("m/config.pbtxt", &config);
        repository.write("m/1/model.told", &labels.len().to_string());
    };
    named("cat");
    let served = repository.explicit(&["m"]);
    let model = served.core.resolve("m", "").unwrap();
    let before = asked(&model).unwrap();
    assert_eq!(model.of_response(&before).labels("OUT").unwrap(), ["cat"]);
    named("house");
    served.load("m").unwrap();
    let after = asked(&model).unwrap();
    assert_eq!((sum(&before), sum(&after)), (3, 5));
    assert_eq!(model.labels("OUT").unwrap(), ["cat"]);
    assert_eq!(model.of_response(&after).labels("OUT").unwrap(), ["house"]);
    // Without a successor the labels are those of the version that answered.
    served.unload("m");
    assert_eq!(model.of_response(&before).labels("OUT").unwrap(), ["cat"]);
}

#[test]
fn a_handle_keeps_neither_the_version_nor_the_server() {
    let repository = Repository::new().model("m", &[(1, 10)]);
    let served = repository.explicit(&["m"]);
    let model = served.core.resolve("m", "").unwrap();
    assert!(served.core.shutdown(PATIENCE).complete);
    let stopped = ServingError::unavailable("Server exiting");
    assert_eq!(asked(&model).unwrap_err(), stopped);
    drop(served);
    assert_eq!(asked(&model).unwrap_err(), stopped);
    assert!(model.language_model().is_err() && model.listed_checkpoint().is_none());
    assert_eq!(model.metadata().versions, ["1"]);
}
