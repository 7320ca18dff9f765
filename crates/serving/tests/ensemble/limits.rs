//! How many requests of a step are under way, and who waits for whom.

use std::sync::mpsc::RecvTimeoutError;

use super::*;

/// Time in which a producer that nobody holds back would have gone on.
const MOMENT: Duration = Duration::from_millis(100);

/// `tell` makes responses for `held`, which takes one request at a time although it has three instances.
fn held_back() -> (Folder, Server) {
    let group = "instance_group { count: 3 kind: KIND_CPU }";
    let folder = one_to_one(Folder::new(), "tell", "tell")
        .model("held", "hold", "IN", "OUT", group)
        .write(
            "e",
            &format!(
                "platform: \"ensemble\" {} {} ensemble_scheduling {{ max_inflight_requests: 1 {} {} }}",
                ends("input", "A"),
                ends("output", "Z"),
                step_text("tell(IN=A) -> (OUT=b)"),
                step_text("held(IN=b) -> (OUT=Z)")
            ),
        );
    let server = start(&folder);
    (folder, server)
}

impl Server {
    /// The next two events, and that there are no more for now.
    fn two_events(&self) -> [String; 2] {
        let mut events = [(); 2].map(|()| self.entered.recv_timeout(PATIENCE).unwrap());
        assert_eq!(self.entered.recv_timeout(MOMENT), Err(RecvTimeoutError::Timeout));
        events.sort();
        events
    }
}

#[test]
fn executions_over_max_inflight_requests_wait() {
    let group = "instance_group { count: 3 kind: KIND_CPU }";
    let folder = one_to_one(Folder::new(), "spread", "spread")
        .model("held", "hold", "IN", "OUT", group)
        .write(
            "e",
            &format!(
                "platform: \"ensemble\" {} {} ensemble_scheduling {{ max_inflight_requests: 1 {} {} }}",
                ends("input", "A"),
                ends("output", "Z"),
                step_text("spread(IN=A) -> (OUT=b)"),
                step_text("held(IN=b) -> (OUT=Z)")
            ),
        );
    let server = start(&folder);
    let from = server.send(simple("e", &[1, 2, 3]));
    for _ in 0..3 {
        server.entered.recv_timeout(PATIENCE).unwrap();
        assert!(server.entered.try_recv().is_err(), "two run at a time");
        server.leave.send(()).unwrap();
    }
    assert_eq!(responses(&all(&from)), 3);
}

#[test]
fn a_step_at_its_limit_holds_its_producer_back() {
    let (_folder, server) = held_back();
    let from = server.send(simple("e", &[1, 2, 3]));
    for _ in 0..3 {
        // One response was given and is under way; the next one waits with its producer.
        assert_eq!(server.two_events(), ["gave", "held"]);
        server.leave.send(()).unwrap();
    }
    assert_eq!(responses(&all(&from)), 3);
}

#[test]
fn requests_share_the_limit_of_a_step() {
    let (_folder, server) = held_back();
    let first = server.send(simple("e", &[1]));
    assert_eq!(server.two_events(), ["gave", "held"]);
    // The one instance of the producer is free for the second request, which is then held back by the first one's step.
    let second = server.send(simple("e", &[2]));
    assert_eq!(server.entered.recv_timeout(MOMENT), Err(RecvTimeoutError::Timeout));
    server.leave.send(()).unwrap();
    assert_eq!(server.two_events(), ["gave", "held"]);
    server.leave.send(()).unwrap();
    assert_eq!((responses(&all(&first)), responses(&all(&second))), (1, 1));
}

#[test]
fn a_cancelled_request_holds_nobody_back() {
    let (_folder, server) = held_back();
    let asked = simple("e", &[1, 2, 3]);
    let cancel = asked.cancel.clone();
    let from = server.send(asked);
    assert_eq!(server.two_events(), ["gave", "held"]);
    cancel.cancel();
    assert_eq!(server.two_events(), ["gave", "gave"]);
    server.leave.send(()).unwrap();
    assert_eq!(all(&from).last().unwrap().result.as_ref().unwrap_err().code, ErrorCode::Cancelled);
    assert!(server.core.shutdown(PATIENCE).complete);
}
