//! Cases, expectations, golden files, fake clock and conformance runner for tests.
