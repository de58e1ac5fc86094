//! What is printed.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write};

use crate::fault::Fault;
use crate::tabs::Tabs;

/// Standard output, and whether it may be coloured.
pub(crate) struct Out {
    stdout: BufWriter<Stdout>,
    colour: bool,
    /// Whether anything has been printed.
    pub(crate) written: bool,
}

impl Out {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let colour = stdout.is_terminal() && may_colour();
        Self { stdout: BufWriter::new(stdout), colour, written: false }
    }

    /// Prints a text as it is.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), Fault> {
        self.bytes(text.as_bytes())
    }

    /// Prints a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Fault> {
        self.print(text)?;
        self.print("\n")
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.written |= !bytes.is_empty();
        Ok(self.stdout.write_all(bytes)?)
    }

    /// Prints the header of a table.
    pub(crate) fn header(&mut self, text: &str) -> Result<(), Fault> {
        if self.colour { self.line(&format!("\u{1b}[1m{text}\u{1b}[0m")) } else { self.line(text) }
    }

    /// Prints the lines of a table, the first of which may be a header.
    pub(crate) fn table(&mut self, tabs: &mut Tabs, has_header: bool) -> Result<(), Fault> {
        for (index, line) in tabs.take().iter().enumerate() {
            if index == 0 && has_header { self.header(line)? } else { self.line(line)? }
        }
        Ok(())
    }

    /// Hands everything over to the reader.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        Ok(self.stdout.flush()?)
    }
}

/// Says what went wrong, on standard error.
pub(crate) fn complain(fault: &Fault) {
    if matches!(fault, Fault::Misuse(_) | Fault::Failed(_)) {
        say("error:", "31", &fault.to_string());
    }
}

/// Says something by the way, on standard error.
pub(crate) fn note(message: &str) {
    // Nobody may be there to read it, and nothing can be done about that.
    let _ = writeln!(io::stderr(), "{message}");
}

fn say(label: &str, colour: &str, message: &str) {
    let coloured = io::stderr().is_terminal() && may_colour();
    if coloured {
        note(&format!("\u{1b}[{colour}m{label}\u{1b}[0m {message}"));
    } else {
        note(&format!("{label} {message}"));
    }
}

/// See <https://no-color.org>.
fn may_colour() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}
