//! Prints what a WebAssembly module imports, at most 20 lines of `module name`, and fails if that is anything, or if the
//! module has fewer functions than its second argument says: an empty module would import nothing and prove nothing.
//!
//! Usage: wasm_imports FILE LEAST_FUNCTIONS

use std::env;
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("wasm_imports: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, least] = arguments.as_slice() else { return Err("usage: wasm_imports FILE LEAST_FUNCTIONS".into()) };
    let least: u64 = least.parse().map_err(|error| format!("{least}: {error}"))?;
    let bytes = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let module = parse(&bytes).ok_or_else(|| format!("{file} is not a whole WebAssembly module"))?;
    println!("{file}: {} functions, {} imports", module.functions, module.imports.len());
    module.imports.iter().take(SHOWN).for_each(|import| println!("{import}"));
    if !module.imports.is_empty() {
        return Err(format!("{file} has imports"));
    }
    if module.functions < least {
        return Err(format!("{file} has {} functions, too few to prove anything (at least {least})", module.functions));
    }
    Ok(())
}

struct Module {
    imports: Vec<String>,
    functions: u64,
}

/// The module's sections (<https://webassembly.github.io/spec/core/binary/modules.html>): each an id, a size and that
/// many bytes.
fn parse(bytes: &[u8]) -> Option<Module> {
    let mut rest = Reader(bytes.strip_prefix(b"\0asm\x01\0\0\0")?);
    let mut module = Module { imports: Vec::new(), functions: 0 };
    while !rest.0.is_empty() {
        let id = rest.byte()?;
        let mut section = Reader(rest.sized()?);
        match id {
            IMPORTS => module.imports = imports(&mut section)?,
            FUNCTIONS => module.functions = section.number()?,
            _ => {}
        }
    }
    Some(module)
}

fn imports(section: &mut Reader<'_>) -> Option<Vec<String>> {
    let count = section.number()?;
    let mut names = Vec::new();
    for _ in 0..count {
        let module = String::from_utf8_lossy(section.sized()?);
        let name = String::from_utf8_lossy(section.sized()?);
        names.push(format!("{module} {name}"));
        section.skip_kind()?;
    }
    Some(names)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// An unsigned LEB128 number.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let size = usize::try_from(self.number()?).ok()?;
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    /// What is imported: a function's type, a table, a memory, a global, or a tag.
    fn skip_kind(&mut self) -> Option<()> {
        match self.byte()? {
            0 => self.number().map(drop),
            1 => {
                self.byte()?;
                self.skip_limits()
            }
            2 => self.skip_limits(),
            3 => {
                self.byte()?;
                self.byte().map(drop)
            }
            4 => {
                self.byte()?;
                self.number().map(drop)
            }
            _ => None,
        }
    }

    fn skip_limits(&mut self) -> Option<()> {
        let has_most = self.byte()? & 1 == 1;
        self.number()?;
        if has_most { self.number().map(drop) } else { Some(()) }
    }
}

const SHOWN: usize = 20;
const IMPORTS: u8 = 2;
const FUNCTIONS: u8 = 3;
