//! Tables of heads and what becomes of them.

use super::super::{AllowedHosts, AllowedOrigins};
use super::*;

const LOOPBACK: ConnectionPeer =
    ConnectionPeer { path: ConnectionPath::Loopback, encrypted: false, address: None };
const NETWORK: ConnectionPeer =
    ConnectionPeer { path: ConnectionPath::Network, encrypted: false, address: None };
const UNIX: ConnectionPeer =
    ConnectionPeer { path: ConnectionPath::UnixSocket, encrypted: false, address: None };

fn rules(hosts: &str, origins: &str) -> BrowserRules {
    BrowserRules {
        hosts: AllowedHosts::parse(&[hosts.to_owned()]).unwrap(),
        origins: AllowedOrigins::parse(&[origins.to_owned()]).unwrap(),
    }
}

fn marks<'a>(headers: &[(&'a str, &'a str)]) -> BrowserMarks<'a> {
    BrowserMarks::of_headers(headers.iter().copied())
}

/// The status of a request with these headers, 200 where it is let in.
fn host_status(rules: &BrowserRules, peer: ConnectionPeer, headers: &[(&str, &str)]) -> u16 {
    match rules.check_host(&marks(headers), peer, true) {
        Ok(()) => 200,
        Err(refusal) => refusal.status(),
    }
}

#[test]
fn over_loopback_only_hosts_that_nobody_can_rebind_are_let_in() {
    let rules = rules("triton.lan,*.corp.example,a.example:8000", "");
    for (host, status) in [
        ("localhost", 200),
        ("localhost:8000", 200),
        ("LOCALHOST:8000", 200),
        ("localhost.", 200),
        ("localhost.:8000", 200),
        ("app.localhost:1", 200),
        ("127.0.0.1:8000", 200),
        ("127.9.9.9", 200),
        ("[::1]:8000", 200),
        ("[::ffff:127.0.0.1]", 200),
        ("0.0.0.0:8000", 200),
        ("192.168.1.7:8000", 200),
        ("[fd00::7]:8000", 200),
        ("triton.lan", 200),
        ("TRITON.LAN.:9000", 200),
        ("x.corp.example", 200),
        ("a.example:8000", 200),
        ("x", 200),
        ("triton:8000", 200),
        ("evil.com", 403),
        ("evil.com:8000", 403),
        ("EVIL.COM.", 403),
        ("localhost.evil.com", 403),
        ("localhost.evil.com:8000", 403),
        ("127.0.0.1.evil.com", 403),
        ("127.0.0.1.nip.io", 403),
        ("evil-localhost.com", 403),
        ("notlocalhost.dev", 403),
        ("localhost.localdomain", 403),
        ("0x7f.1", 403),
        ("127.1", 403),
        ("0177.0.0.1", 403),
        ("2130706433", 403),
        ("0x7f000001", 403),
        ("corp.example", 403),
        ("triton.lan.evil.com", 403),
        ("a.example:8001", 403),
        ("a.example", 403),
        ("", 400),
        (":8000", 400),
        ("localhost@evil.com", 400),
        ("user:pass@localhost", 400),
        ("localhost:99999", 400),
        ("localhost, evil.com", 400),
        ("localhost/evil.com", 400),
        ("::1", 400),
        ("[::1", 400),
        ("..", 400),
        ("lo\u{441}alhost", 400),
    ] {
        assert_eq!(host_status(&rules, LOOPBACK, &[("Host", host)]), status, "{host}");
    }
}

#[test]
fn a_name_of_one_word_is_enough_for_programs_and_not_for_pages() {
    let rules = rules("", "");
    for mark in [("Origin", "http://triton:8000"), ("Sec-Fetch-Site", "same-origin")] {
        for peer in [LOOPBACK, NETWORK] {
            let headers = [("Host", "triton:8000"), mark];
            assert_eq!(host_status(&rules, peer, &headers), 403, "{mark:?} {peer:?}");
        }
    }
    let node = [("Host", "triton:8000"), ("Sec-Fetch-Mode", "cors")];
    assert_eq!(host_status(&rules, LOOPBACK, &node), 200);
}

#[test]
fn over_other_interfaces_names_are_let_in_unless_a_browser_sends_them() {
    let rules = rules("triton.lan", "");
    for (host, plain, from_page) in [
        ("triton.default.svc.cluster.local:8000", 200, 403),
        ("triton", 200, 403),
        ("evil.com:8000", 200, 403),
        ("triton.lan:8000", 200, 200),
        ("10.0.0.7:8000", 200, 200),
        ("localhost:8000", 200, 200),
        ("a@b", 400, 400),
    ] {
        assert_eq!(host_status(&rules, NETWORK, &[("Host", host)]), plain, "{host}");
        for mark in [("Origin", "null"), ("Sec-Fetch-Site", "same-origin")] {
            let headers = [mark, ("Host", host)];
            assert_eq!(host_status(&rules, NETWORK, &headers), from_page, "{host} {mark:?}");
        }
    }
}

#[test]
fn every_host_passes_a_unix_socket_and_a_wildcard() {
    for host in ["evil.com", "", "%2Ftmp%2Fsocket", "a@b"] {
        assert_eq!(host_status(&rules("", ""), UNIX, &[("Host", host)]), 200, "{host}");
    }
    let page = [("Host", "evil.com"), ("Origin", "http://evil.com")];
    for peer in [LOOPBACK, NETWORK] {
        assert_eq!(host_status(&rules("*", ""), peer, &page), 200);
        assert_eq!(host_status(&rules("*", ""), peer, &[("Host", "a@b")]), 400);
    }
}

#[test]
fn a_request_has_one_host() {
    for peer in [LOOPBACK, NETWORK, UNIX] {
        assert_eq!(host_status(&rules("*", ""), peer, &[]), 400);
        let twice = [("Host", "localhost"), ("host", "localhost")];
        assert_eq!(host_status(&rules("*", ""), peer, &twice), 400);
        assert_eq!(rules("", "").check_host(&marks(&[]), peer, false), Ok(()));
        assert!(rules("", "").check_host(&marks(&twice), peer, false).is_err());
    }
}

#[test]
fn refusals_of_hosts_name_the_host_and_the_flag() {
    let long = format!("{}.com", "a".repeat(60).repeat(3));
    let refusal = |host: &str| {
        let marks = marks(&[("Host", host)]);
        rules("", "").check_host(&marks, LOOPBACK, true).unwrap_err().message().to_owned()
    };
    let text = refusal("evil.com:8000");
    assert!(text.contains("'evil.com:8000'") && text.contains("--allowed-hosts"), "{text}");
    assert!(refusal(&long).chars().count() < 250);
}

/// Statuses that a page gets for reading, for inference and for changes.
fn page_statuses(rules: &BrowserRules, peer: ConnectionPeer, headers: &[(&str, &str)]) -> [u16; 3] {
    [EndpointClass::Read, EndpointClass::Inference, EndpointClass::Change].map(|class| {
        let request = BrowserRequest {
            marks: marks(headers),
            class,
            is_get: class == EndpointClass::Read,
            content: ContentDemand::Json(Some("application/json")),
        };
        match rules.check_page(&request, peer) {
            Ok(()) => 200,
            Err(refusal) => refusal.status(),
        }
    })
}

const ALL: [u16; 3] = [200; 3];
const NO_CHANGE: [u16; 3] = [200, 200, 403];
const READ_ONLY: [u16; 3] = [200, 403, 403];
const NOTHING: [u16; 3] = [403; 3];

#[test]
fn pages_get_what_their_origin_may_have() {
    let rules = rules("", "https://app.example,http://*.corp.example:*,chrome-extension://abc");
    let own = ("Host", "localhost:8000");
    for (origin, expected) in [
        ("http://localhost:8000", ALL),
        ("HTTP://LOCALHOST:8000", ALL),
        ("https://localhost:8000", ALL),
        ("https://app.example", ALL),
        ("https://APP.example:443", ALL),
        ("http://a.corp.example:3000", ALL),
        ("chrome-extension://abc", ALL),
        ("http://localhost:3000", NO_CHANGE),
        ("http://localhost", NO_CHANGE),
        ("https://localhost", NO_CHANGE),
        ("http://app.localhost:3000", NO_CHANGE),
        ("http://127.0.0.1:8000", NO_CHANGE),
        ("http://127.1.2.3:5", NO_CHANGE),
        ("http://[::1]:3000", NO_CHANGE),
        ("null", NOTHING),
        ("", NOTHING),
        ("https://evil.com", NOTHING),
        ("http://evil.com:8000", NOTHING),
        ("http://app.example", NOTHING),
        ("https://app.example:8443", NOTHING),
        ("https://app.example.evil.com", NOTHING),
        ("http://corp.example:3000", NOTHING),
        ("http://localhost.evil.com", NOTHING),
        ("http://127.0.0.1.evil.com:8000", NOTHING),
        ("http://localhost@evil.com", NOTHING),
        ("http://localhost:3000/path", NOTHING),
        ("http://localhost:3000 https://evil.com", NOTHING),
        ("http://0.0.0.0:3000", NOTHING),
        ("http://192.168.1.7:8000", NOTHING),
        ("http://2130706433", NOTHING),
        ("file://", NOTHING),
        ("file://localhost", NOTHING),
        ("tauri://localhost", NOTHING),
        ("chrome-extension://abd", NOTHING),
    ] {
        for site in [None, Some("cross-site")] {
            let mut headers = vec![own, ("Origin", origin)];
            headers.extend(site.map(|site| ("Sec-Fetch-Site", site)));
            let own_origin = origin.to_ascii_lowercase().ends_with("://localhost:8000");
            // A browser that calls the server's own origin another site knows better.
            let expected = if own_origin && site.is_some() { NO_CHANGE } else { expected };
            assert_eq!(page_statuses(&rules, LOOPBACK, &headers), expected, "{origin} {site:?}");
        }
    }
    let twice = [own, ("Origin", "http://localhost:8000"), ("Origin", "http://localhost:8000")];
    assert_eq!(page_statuses(&rules, LOOPBACK, &twice), NOTHING);
}

#[test]
fn a_wildcard_lets_pages_in_and_lets_none_change_the_server() {
    let rules = rules("", "*");
    for origin in ["https://evil.com", "null", "what"] {
        let headers = [("Host", "localhost:8000"), ("Origin", origin)];
        assert_eq!(page_statuses(&rules, LOOPBACK, &headers), NO_CHANGE, "{origin}");
    }
    let own = [("Host", "localhost:8000"), ("Origin", "http://localhost:8000")];
    assert_eq!(page_statuses(&rules, LOOPBACK, &own), ALL);
}

#[test]
fn the_own_origin_is_that_of_the_host_that_is_asked_for() {
    let encrypted = ConnectionPeer { encrypted: true, ..NETWORK };
    for (peer, host, origin, expected) in [
        (NETWORK, "10.0.0.7:8000", "http://10.0.0.7:8000", ALL),
        (NETWORK, "10.0.0.7:8000", "http://10.0.0.7:3000", NOTHING),
        (NETWORK, "api.example", "https://api.example", ALL),
        (NETWORK, "api.example", "http://api.example", ALL),
        (NETWORK, "api.example:8000", "http://api.example", NOTHING),
        (encrypted, "api.example", "https://api.example", ALL),
        (encrypted, "api.example:443", "http://api.example:443", NOTHING),
        (UNIX, "api.example", "https://api.example", ALL),
        (UNIX, "api.example", "https://evil.com", NOTHING),
        (NETWORK, "10.0.0.7:8000", "http://localhost:3000", NO_CHANGE),
    ] {
        let headers = [("Host", host), ("Origin", origin)];
        assert_eq!(page_statuses(&rules("", ""), peer, &headers), expected, "{host} {origin}");
    }
}

#[test]
fn requests_without_an_origin_are_judged_by_their_site() {
    let navigation = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    let frame = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")];
    let image = [("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")];
    for (host, site, more, expected) in [
        ("localhost:8000", "same-origin", image, ALL),
        ("localhost:8000", "none", navigation, ALL),
        ("localhost:8000", "same-site", image, NO_CHANGE),
        ("127.0.0.1:8000", "same-site", image, NO_CHANGE),
        ("api.example", "same-site", image, NOTHING),
        ("10.0.0.7:8000", "same-site", image, NOTHING),
        ("localhost:8000", "cross-site", image, NOTHING),
        ("localhost:8000", "cross-site", frame, NOTHING),
        ("localhost:8000", "cross-site", navigation, READ_ONLY),
        ("api.example", "same-site", navigation, READ_ONLY),
        ("localhost:8000", "unheard-of", image, NOTHING),
        ("localhost:8000", "Same-Origin", image, NOTHING),
        ("localhost:8000", "", image, NOTHING),
    ] {
        let headers = [&[("Host", host), ("Sec-Fetch-Site", site)], &more[..]].concat();
        assert_eq!(page_statuses(&rules("", "*"), LOOPBACK, &headers), expected, "{host} {site}");
    }
    let twice = [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")];
    assert_eq!(page_statuses(&rules("", ""), LOOPBACK, &twice), NOTHING);
    let posted = [("Sec-Fetch-Site", "cross-site"), navigation[0], navigation[1]];
    let request = BrowserRequest {
        marks: marks(&posted),
        class: EndpointClass::Read,
        is_get: false,
        content: ContentDemand::Anything,
    };
    assert!(rules("", "").check_page(&request, LOOPBACK).is_err());
}

#[test]
fn programs_change_the_server_with_any_content_type() {
    let change = |headers: &[(&str, &str)], content| {
        let request = BrowserRequest {
            marks: marks(headers),
            class: EndpointClass::Change,
            is_get: false,
            content,
        };
        rules("", "").check_page(&request, LOOPBACK).map_err(|refusal| refusal.status())
    };
    let form = ContentDemand::Json(Some("application/x-www-form-urlencoded"));
    for content in [form, ContentDemand::Json(None), ContentDemand::Anything] {
        assert_eq!(change(&[("Host", "localhost")], content), Ok(()));
    }
    let own = [("Host", "localhost:8000"), ("Origin", "http://localhost:8000")];
    for (found, result) in [
        (Some("application/json"), Ok(())),
        (Some("Application/JSON ; charset=utf-8"), Ok(())),
        (Some("application/jsonp"), Err(415)),
        (Some("text/plain"), Err(415)),
        (Some("text/plain;application/json"), Err(415)),
        (Some("application/x-www-form-urlencoded"), Err(415)),
        (Some("multipart/form-data; boundary=application/json"), Err(415)),
        (Some(""), Err(415)),
        (None, Err(415)),
    ] {
        assert_eq!(change(&own, ContentDemand::Json(found)), result, "{found:?}");
    }
    assert_eq!(change(&own, ContentDemand::Anything), Ok(()));
}
