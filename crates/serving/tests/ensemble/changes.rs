//! Ensembles whose models are loaded anew.

use super::*;

#[test]
fn an_ensemble_is_fitted_to_a_model_that_is_loaded_with_another_configuration() {
    let folder = Folder::new().model("plus", "sum", "IN:2", "OUT:2", "max_batch_size: 4").ensemble(
        "e",
        "A:2",
        "Z:2",
        "max_batch_size: 2",
        &["plus(IN=A) -> (OUT=Z)"],
    );
    let server = explicit(&folder, "e");
    let asked = || request("e", vec![input("A", &[2, 2], &[1, 2, 3, 4])]);
    assert_eq!(server.ask(asked()).unwrap().outputs[0].tensor.shape(), [2, 2]);
    // Without batches, the rows are a plain dimension.
    let folder = folder.model("plus", "sum", "IN:-1,2", "OUT:-1,2", "");
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    assert_eq!(server.ask(asked()).unwrap().outputs[0].tensor.shape(), [2, 2]);
    // Single rows do not fit: as in Triton the ensemble leaves the service, which no operator asked for.
    let folder = folder.model("plus", "sum", "IN:3", "OUT:3", "max_batch_size: 4");
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    let gone = ServingError::not_found("Request for unknown model: 'e' has no available versions");
    assert_eq!(server.core.infer(asked(), Box::new(|_| {})).unwrap_err(), gone);
    assert!(server.core.is_ready());
    let _folder = folder.model("plus", "sum", "IN:2", "OUT:2", "max_batch_size: 2");
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    assert_eq!(server.ask(asked()).unwrap().outputs[0].tensor.shape(), [2, 2]);
}

#[test]
fn cached_answers_do_not_outlive_the_loads_of_the_models_behind_them() {
    let cache = "response_cache { enable: true }";
    let folder = one_to_one(Folder::new(), "plus", "sum")
        .ensemble("e", "A", "Z", cache, &["plus(IN=A) -> (OUT=Z)"])
        .ensemble("over", "A", "Z", cache, &["e(A=A) -> (Z=Z)"]);
    let server = explicit(&folder, "over");
    let answers = || {
        let of = |model| server.ask(simple(model, &[1])).unwrap();
        [of("e"), of("over")].map(|response| values(&response)[0].1[0])
    };
    assert_eq!((answers(), answers()), ([2, 2], [2, 2]));
    let ran = |server: &Server| server.statistics("plus").execution_count;
    // As a step, the ensemble is asked for its output by name, which is another request.
    assert_eq!(ran(&server), 2);
    // The same configuration, but other files.
    fs::write(folder.0.join("plus/1/weights"), "new").unwrap();
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    assert_eq!((answers(), answers()), ([2, 2], [2, 2]));
    assert_eq!(ran(&server), 2, "counted from the load");
    let _folder = one_to_one(folder, "plus", "plain");
    server.core.load_model("plus", LoadOverrides::default()).unwrap();
    assert_eq!((answers(), answers()), ([1, 1], [1, 1]));
}

#[test]
fn a_request_that_found_an_ensemble_before_its_unload_begins_none_of_its_steps() {
    let folder = one_to_one(Folder::new(), "plus", "sum").ensemble(
        "e",
        "A",
        "Z",
        "",
        &["plus(IN=A) -> (OUT=Z)"],
    );
    let server = explicit(&folder, "e");
    let model = server.core.resolve("e", "").unwrap();
    server.core.unload_model("e", UnloadDependents::Keep).unwrap();
    let gone = ServingError::not_found("Request for unknown model: 'e' has no available versions");
    assert_eq!(model.infer(simple("e", &[1]), Box::new(|_| {})).unwrap_err(), gone);
    assert_eq!(server.statistics("plus").execution_count, 0);
}
