//! Models that share resources take turns.

use super::*;

/// Notes how many executions run side by side.
#[derive(Clone, Debug, Default)]
struct RunCounter {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    order: Arc<Mutex<Vec<String>>>,
}

impl ModelBackend for RunCounter {
    fn name(&self) -> &str {
        "crowd"
    }
    fn default_model_filename(&self) -> &str {
        "model.crowd"
    }
    fn load(&self, _files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl BackendModel for RunCounter {
    fn io(&self) -> Option<&ModelIo> {
        None
    }
    fn instance(
        &self,
        _placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for RunCounter {
    fn execute(&mut self, payload: BatchPayload) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.order.lock().unwrap().push(payload.context().name.clone());
        compute_for(Duration::from_micros(300));
        self.now.fetch_sub(1, Ordering::SeqCst);
        batch::execute(payload, |inputs| Ok(vec![("OUT".to_owned(), inputs[0].1.clone())]));
    }
}

fn limited(folder: &Folder, crowd: &RunCounter) -> Arc<Core> {
    let options = CoreOptions { rate_limits: Some(Vec::new()), ..options(&folder.0) };
    Core::start(options, vec![Arc::new(crowd.clone())]).unwrap()
}

fn crowd_config(priority: u32, batching: &str) -> String {
    echo_config(&format!(
        "max_batch_size: 4 {batching} instance_group {{ count: 3 kind: KIND_CPU rate_limiter {{ \
         resources {{ name: \"R\" global: true count: 1 }} priority: {priority} }} }}"
    ))
    .replace("\"echo\"", "\"crowd\"")
}

#[test]
fn instances_that_share_one_resource_run_one_at_a_time() {
    let delayed = "dynamic_batching { max_queue_delay_microseconds: 500 preferred_batch_size: 4 }";
    let folder = Folder::new().model("a", &["1"], &crowd_config(1, "")).model(
        "b",
        &["1"],
        &crowd_config(2, delayed),
    );
    let crowd = RunCounter::default();
    let core = limited(&folder, &crowd);
    let all: Vec<_> = (0..240)
        .map(|n| send(&core, request(if n % 2 == 0 { "a" } else { "b" }, &[1, 1], n)))
        .collect();
    for (n, from) in all.iter().enumerate() {
        let out = value(from).to_vec::<i32>().unwrap();
        assert_eq!(out, [i32::try_from(n).unwrap()]);
    }
    assert_eq!(crowd.most.load(Ordering::SeqCst), 1);
    let report = core.shutdown(PATIENCE);
    assert!(report.complete);
}

#[test]
fn a_model_of_priority_two_has_half_the_turns_while_both_have_work() {
    let one = |priority| crowd_config(priority, "").replace("count: 3", "count: 1");
    let folder = Folder::new().model("a", &["1"], &one(1)).model("b", &["1"], &one(2));
    let crowd = RunCounter::default();
    let core = limited(&folder, &crowd);
    let all: Vec<_> = (0..300)
        .map(|n| send(&core, request(if n % 3 < 2 { "a" } else { "b" }, &[1, 1], n)))
        .collect();
    all.iter().for_each(|from| drop(value(from)));
    let order = crowd.order.lock().unwrap();
    // Requests come while the first ones run; in the middle both models have work.
    let of_a = order[60..240].iter().filter(|name| *name == "a").count();
    assert!((110..=130).contains(&of_a), "{of_a} of 180");
}
