//! What became of each object.

use cloudcoil_core::Unstructured;
use serde_json::{Value, json};

use crate::args::{DryRun, Shape, Structure};
use crate::fault::Fault;
use crate::format::{name_of, trim};
use crate::out::{Out, complain};
use crate::structure;

/// Prints a line for each object at once, or all objects in the end; a failure does not keep the rest from being done.
pub(crate) struct Results {
    shape: Option<Shape>,
    dry_run: DryRun,
    objects: Vec<Value>,
    last: Option<Fault>,
}

impl Results {
    pub(crate) const fn new(shape: Option<Shape>, dry_run: DryRun) -> Self {
        Self { shape, dry_run, objects: Vec::new(), last: None }
    }

    /// An object was dealt with.
    pub(crate) fn done(&mut self, object: Unstructured, what: &str, out: &mut Out) -> Result<(), Fault> {
        let mut object = object.into_value();
        match self.shape {
            None => out.line(&format!("{} {what}{}", name_of(&object), dry(self.dry_run)))?,
            Some(Shape::Name) => out.line(&name_of(&object))?,
            Some(Shape::Json | Shape::Yaml) => {
                trim(&mut object);
                self.objects.push(object);
                return Ok(());
            }
        }
        out.flush()
    }

    /// An object could not be dealt with. It is told when the next one fails, or in the end.
    pub(crate) fn failed(&mut self, fault: Fault) {
        if let Some(before) = self.last.replace(fault) {
            complain(&before);
        }
    }

    /// Whether nothing has failed.
    pub(crate) const fn is_well(&self) -> bool {
        self.last.is_none()
    }

    /// The failure to end with.
    pub(crate) fn end(mut self, out: &mut Out) -> Result<(), Fault> {
        let structure = match self.shape {
            Some(Shape::Json) => Some(Structure::Json),
            Some(Shape::Yaml) => Some(Structure::Yaml),
            Some(Shape::Name) | None => None,
        };
        if let (Some(structure), Some(object)) = (structure, self.objects.pop()) {
            let value = if self.objects.is_empty() {
                object
            } else {
                self.objects.push(object);
                json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": self.objects})
            };
            out.print(&structure::print(&value, structure)?)?;
        }
        out.flush()?;
        self.last.map_or(Ok(()), Err)
    }
}

/// What is said behind a result that was not stored.
pub(crate) const fn dry(dry_run: DryRun) -> &'static str {
    match dry_run {
        DryRun::None => "",
        DryRun::Server => " (server dry run)",
    }
}
