//! Colours by meaning.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing special.
    Plain,
    /// It went well.
    Good,
    /// Worth a look.
    Warn,
    /// It went wrong.
    Bad,
    /// Less important.
    Dim,
    /// A heading.
    Strong,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Warn => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Dim => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
        }
    }

    /// The text in its colour; the stream takes colour out where none is wanted.
    pub(crate) fn paint(self, text: &str) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// An error with its hint, on standard error.
pub(crate) fn error(err: &mut impl Write, message: &str, hint: Option<&str>) -> io::Result<()> {
    writeln!(err, "{} {message}", Tone::Bad.paint("error:"))?;
    match hint {
        Some(hint) => writeln!(err, "{} {hint}", Tone::Dim.paint("hint:")),
        None => Ok(()),
    }
}
