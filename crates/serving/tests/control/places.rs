//! Models of several repositories, and on devices that are not there.

use super::*;

#[test]
fn a_name_in_two_repositories_serves_from_neither() {
    let (one, two) =
        (Repository::new().model("m", &[(1, 1)]), Repository::new().model("m", &[(1, 2)]));
    two.write("other/config.pbtxt", CONFIG);
    two.write("other/1/model.told", "5");
    let options = CoreOptions {
        repositories: vec![one.path(""), two.path("")],
        control_mode: ControlMode::Explicit { load: vec!["*".to_owned()] },
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let core = Core::start(options, vec![Arc::new(Told::default())]).unwrap();
    assert_eq!(added(&core, "other", "").unwrap(), 5);
    let index = core.repository_index(false);
    let line = index.iter().find(|line| line.name == "m").unwrap();
    assert_eq!(line.state, Some(VersionState::Unavailable));
    assert_eq!(line.reason.as_deref(), Some("model appears in two or more repositories"));
    assert!(core.is_ready(), "the others serve");
    assert_eq!(core.load_model("m", LoadOverrides::default()).unwrap_err(), poll_failed("m"));
    fs::remove_dir_all(one.path("m")).unwrap();
    core.load_model("m", LoadOverrides::default()).unwrap();
    assert_eq!(added(&core, "m", "").unwrap(), 2);
    assert!(core.is_ready());
}

#[test]
fn platforms_and_devices_that_are_not_there_are_named() {
    let cases = [
        ("backend: 'told'", "platform: 'nowhere'", "unexpected platform type 'nowhere' for m"),
        (
            "output {",
            "instance_group { kind: KIND_GPU } output {",
            "instance group m_0 of model m has kind KIND_GPU but no GPUs are available",
        ),
        (
            "output {",
            "instance_group { kind: KIND_CPU gpus: 0 } output {",
            "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs",
        ),
    ];
    for (from, to, text) in cases {
        let repository = Repository::new().model("m", &[(1, 10)]);
        repository.write("m/config.pbtxt", &CONFIG.replace(from, to));
        let error = repository.explicit(&[]).load("m").unwrap_err();
        let state = "load failed for model 'm': version 1 is at UNAVAILABLE state";
        assert_eq!(error.message, format!("{state}: Invalid argument: {text};\n"));
    }
}
