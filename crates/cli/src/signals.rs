//! Signals that the system sends to a server: to stop, to read its files again, and others that it outlives.

/// `SIGXFSZ` of Linux and macOS.
#[cfg(unix)]
const FILE_SIZE: i32 = 25;

/// The signals that ask the program to stop, heard from the moment that this exists.
#[cfg(unix)]
pub(crate) struct StopSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    /// Starts to listen. Needs a runtime.
    ///
    /// # Errors
    /// Fails when the system refuses.
    pub(crate) fn listen() -> Result<Self, String> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| format!("cannot wait for signals: {error}");
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => tracing::info!("Signal (15) received."),
            _ = self.interrupt.recv() => tracing::info!("Signal (2) received."),
        }
    }
}

/// Signals that do not stop the program, heard from the moment that this exists.
#[cfg(unix)]
pub(crate) struct OtherSignals {
    /// A file has reached the size that the system allows the process. The write then fails, which is handled there.
    _file_size: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    first_user: tokio::signal::unix::Signal,
    second_user: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl OtherSignals {
    /// Starts to listen. Needs a runtime.
    ///
    /// # Errors
    /// Fails when the system refuses.
    pub(crate) fn listen() -> Result<Self, String> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error| format!("cannot wait for signals: {error}");
        Ok(Self {
            _file_size: signal(SignalKind::from_raw(FILE_SIZE)).map_err(failed)?,
            hangup: signal(SignalKind::hangup()).map_err(failed)?,
            quit: signal(SignalKind::quit()).map_err(failed)?,
            first_user: signal(SignalKind::user_defined1()).map_err(failed)?,
            second_user: signal(SignalKind::user_defined2()).map_err(failed)?,
        })
    }

    /// Waits for the signal to read files again. The others are told in the log and have no effect.
    pub(crate) async fn next_reload(&mut self) {
        loop {
            let name = tokio::select! {
                _ = self.hangup.recv() => return,
                _ = self.quit.recv() => "SIGQUIT",
                _ = self.first_user.recv() => "SIGUSR1",
                _ = self.second_user.recv() => "SIGUSR2",
            };
            tracing::info!(
                "{name} has no effect: SIGTERM stops the server, SIGHUP reads its files again."
            );
        }
    }
}

/// The request of the console to stop.
#[cfg(not(unix))]
pub(crate) struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    /// Nothing to prepare.
    ///
    /// # Errors
    /// Never fails.
    pub(crate) fn listen() -> Result<Self, String> {
        Ok(Self)
    }

    /// Waits for the next request; waits for ever where the system cannot tell.
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Other systems send no such signals.
#[cfg(not(unix))]
pub(crate) struct OtherSignals;

#[cfg(not(unix))]
impl OtherSignals {
    /// Nothing to prepare.
    ///
    /// # Errors
    /// Never fails.
    pub(crate) fn listen() -> Result<Self, String> {
        Ok(Self)
    }

    /// Waits for ever.
    pub(crate) async fn next_reload(&mut self) {
        std::future::pending::<()>().await;
    }
}
