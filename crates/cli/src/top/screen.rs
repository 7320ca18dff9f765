//! A page of text on the terminal, and keys.

use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

/// Command that a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenKey {
    /// To end.
    Quit,
    /// To sort otherwise.
    Sort,
    /// To draw anew.
    Redraw,
}

/// The terminal, as it was before when this is dropped.
#[derive(Debug)]
pub(super) struct TerminalScreen(());

/// Returns whether input and output are a terminal.
pub(super) fn is_there() -> bool {
    io::stdout().is_terminal() && io::stdin().is_terminal()
}

impl TerminalScreen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Fails when the terminal cannot be taken.
    pub(super) fn take() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        let screen = Self(());
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Shows a text from its first line on, as far as there is room, with a line about keys at the end.
    ///
    /// # Errors
    /// Fails when the terminal is gone.
    pub(super) fn draw(&self, text: &str, keys: &str) -> io::Result<()> {
        let (columns, rows) = size()?;
        let mut out = io::stdout().lock();
        queue!(out, MoveTo(0, 0))?;
        let room = rows.saturating_sub(1);
        for (row, line) in (0..room).zip(text.lines()) {
            queue!(out, MoveTo(0, row), Print(cut(line, columns)), Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown), MoveTo(0, room))?;
        queue!(out, SetAttribute(Attribute::Reverse), Print(cut(keys, columns)))?;
        queue!(out, SetAttribute(Attribute::Reset), Clear(ClearType::UntilNewLine))?;
        out.flush()
    }

    /// Waits for a key until a moment; nothing where none came.
    ///
    /// # Errors
    /// Fails when the terminal is gone.
    pub(super) fn key(&self, until: Instant) -> io::Result<Option<ScreenKey>> {
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            if rest.is_zero() && !event::poll(Duration::ZERO)? {
                return Ok(None);
            }
            if !event::poll(rest)? {
                return Ok(None);
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let held = key.modifiers.contains(KeyModifiers::CONTROL);
                    match key.code {
                        KeyCode::Char('c') if held => return Ok(Some(ScreenKey::Quit)),
                        KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(ScreenKey::Quit)),
                        KeyCode::Char('s') => return Ok(Some(ScreenKey::Sort)),
                        _ => {}
                    }
                }
                Event::Resize(..) => return Ok(Some(ScreenKey::Redraw)),
                _ => {}
            }
        }
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. There is nobody to tell when that fails.
fn restore() {
    execute!(io::stdout(), Show, LeaveAlternateScreen).ok();
    disable_raw_mode().ok();
}

/// A panic is printed on the terminal as it was.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

/// The start of a line that so many columns have room for, without what would move the cursor.
fn cut(line: &str, columns: u16) -> String {
    line.chars().filter(|letter| !letter.is_control()).take(usize::from(columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_screen_and_move_no_cursor() {
        assert_eq!(cut("abcdef", 4), "abcd");
        assert_eq!(cut("a\u{1b}[2Jb\té", 40), "a[2Jbé");
    }
}
