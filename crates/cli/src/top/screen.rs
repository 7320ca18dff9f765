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
    /// To show another part.
    Move(ScrollStep),
    /// To draw anew.
    Redraw,
}

/// Way to another part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScrollStep {
    Up,
    Down,
    PageUp,
    PageDown,
    Left,
    Right,
    First,
    Last,
}

/// Part of a page that a screen shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ScreenScroll {
    /// Lines above the screen.
    above: usize,
    /// Columns left of it.
    left: usize,
    /// Lines that the screen had room for.
    height: usize,
}

/// Columns of a step to a side.
const SIDE_STEP: usize = 8;

impl ScreenScroll {
    /// Goes a step. How far there is something is seen when it is drawn.
    pub(super) fn go(&mut self, step: ScrollStep) {
        let page = self.height.saturating_sub(1).max(1);
        match step {
            ScrollStep::Up => self.above = self.above.saturating_sub(1),
            ScrollStep::Down => self.above += 1,
            ScrollStep::PageUp => self.above = self.above.saturating_sub(page),
            ScrollStep::PageDown => self.above += page,
            ScrollStep::Left => self.left = self.left.saturating_sub(SIDE_STEP),
            ScrollStep::Right => self.left += SIDE_STEP,
            ScrollStep::First => (self.above, self.left) = (0, 0),
            ScrollStep::Last => self.above = usize::MAX / 2,
        }
    }

    /// Stays within a page, and says what is beyond the screen; nothing where all of it is shown.
    fn fit(&mut self, text: &str, room: ScreenRoom) -> String {
        let lines = text.lines().count();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        self.height = room.rows;
        self.above = self.above.min(lines.saturating_sub(room.rows));
        self.left = self.left.min(widest.saturating_sub(room.columns));
        let mut hidden = String::new();
        if lines > room.rows {
            let last = (self.above + room.rows).min(lines);
            hidden.push_str(&format!("   ↑↓ lines {}–{last} of {lines}", self.above + 1));
        }
        if widest > room.columns {
            hidden.push_str("   ←→ more columns");
        }
        hidden
    }
}

/// Room of a screen for a page.
#[derive(Debug, Clone, Copy)]
struct ScreenRoom {
    rows: usize,
    columns: usize,
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

    /// Shows the part of a text that there is room for, with a line about keys at the end.
    ///
    /// # Errors
    /// Fails when the terminal is gone.
    pub(super) fn draw(&self, text: &str, keys: &str, scroll: &mut ScreenScroll) -> io::Result<()> {
        let (columns, rows) = size()?;
        let room = rows.saturating_sub(1);
        let columns = usize::from(columns);
        let hidden = scroll.fit(text, ScreenRoom { rows: usize::from(room), columns });
        let mut out = io::stdout().lock();
        queue!(out, MoveTo(0, 0))?;
        for (row, line) in (0..room).zip(text.lines().skip(scroll.above)) {
            let shown = cut(line, scroll.left, columns);
            queue!(out, MoveTo(0, row), Print(shown), Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown), MoveTo(0, room))?;
        queue!(
            out,
            SetAttribute(Attribute::Reverse),
            Print(cut(&format!("{keys}{hidden}"), 0, columns))
        )?;
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
                        code => {
                            if let Some(step) = step(code) {
                                return Ok(Some(ScreenKey::Move(step)));
                            }
                        }
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

/// The step that a key stands for.
fn step(key: KeyCode) -> Option<ScrollStep> {
    Some(match key {
        KeyCode::Up | KeyCode::Char('k') => ScrollStep::Up,
        KeyCode::Down | KeyCode::Char('j') => ScrollStep::Down,
        KeyCode::PageUp => ScrollStep::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => ScrollStep::PageDown,
        KeyCode::Left | KeyCode::Char('h') => ScrollStep::Left,
        KeyCode::Right | KeyCode::Char('l') => ScrollStep::Right,
        KeyCode::Home | KeyCode::Char('g') => ScrollStep::First,
        KeyCode::End | KeyCode::Char('G') => ScrollStep::Last,
        _ => return None,
    })
}

/// The part of a line that so many columns have room for, without what would move the cursor.
fn cut(line: &str, left: usize, columns: usize) -> String {
    line.chars().filter(|letter| !letter.is_control()).skip(left).take(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_screen_and_move_no_cursor() {
        assert_eq!(cut("abcdef", 0, 4), "abcd");
        assert_eq!(cut("abcdef", 3, 4), "def");
        assert_eq!(cut("a\u{1b}[2Jb\té", 0, 40), "a[2Jbé");
    }

    #[test]
    fn every_line_and_column_of_a_page_can_be_reached() {
        let page: String = (0..30).map(|line| format!("line {line} of thirty\n")).collect();
        let room = ScreenRoom { rows: 10, columns: 8 };
        let mut scroll = ScreenScroll::default();
        assert!(scroll.fit(&page, room).contains("lines 1–10 of 30"));
        assert_eq!((step(KeyCode::Down), step(KeyCode::Tab)), (Some(ScrollStep::Down), None));
        for (steps, above, left) in [
            (&[ScrollStep::Down][..], 1, 0),
            (&[ScrollStep::PageDown], 10, 0),
            (&[ScrollStep::PageUp, ScrollStep::Up], 0, 0),
            (&[ScrollStep::Last], 20, 0),
            (&[ScrollStep::Down, ScrollStep::Right], 20, 8),
            (&[ScrollStep::Right, ScrollStep::Right], 20, 9),
            (&[ScrollStep::First], 0, 0),
        ] {
            steps.iter().for_each(|step| scroll.go(*step));
            let hidden = scroll.fit(&page, room);
            assert_eq!((scroll.above, scroll.left), (above, left), "{steps:?}");
            assert!(hidden.contains("of 30") && hidden.contains("more columns"), "{hidden}");
        }
        scroll.go(ScrollStep::Last);
        let whole = scroll.fit(&page, ScreenRoom { rows: 50, columns: 50 });
        assert_eq!((whole.as_str(), scroll.above), ("", 0), "a larger screen shows all");
    }
}
