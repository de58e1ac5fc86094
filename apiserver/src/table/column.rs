//! Column definitions.

use serde_json::{Value, json};

/// One column of a table of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    /// Columns above 0 are for wide output.
    priority: i64,
}

impl Column {
    const fn new(name: &'static str, kind: &'static str, description: &'static str) -> Self {
        Self { name, kind, format: "", description, priority: 0 }
    }

    /// A column of texts.
    pub(super) const fn text(name: &'static str, description: &'static str) -> Self {
        Self::new(name, "string", description)
    }

    /// A column of integers.
    pub(super) const fn integer(name: &'static str, description: &'static str) -> Self {
        Self::new(name, "integer", description)
    }

    /// A column of bools.
    pub(super) const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self::new(name, "boolean", description)
    }

    /// A column for wide output only.
    pub(super) const fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// A column that holds the name by which a row is known.
    pub(super) const fn named(mut self) -> Self {
        self.format = "name";
        self
    }

    /// The same column for dates.
    pub(super) const fn date(mut self) -> Self {
        self.kind = "date";
        self
    }

    pub(super) fn definition(&self) -> Value {
        let Self { name, kind, format, description, priority } = self;
        definition(name, kind, format, description, *priority)
    }
}

/// A `TableColumnDefinition`.
pub(super) fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

pub(super) const NAME: Column =
    Column::text("Name", "The name of the object, unique among its kind in its namespace.").named();
pub(super) const AGE: Column = Column::text("Age", "How long ago the object was created.");
pub(super) const CREATED_AT: Column = Column::new("Created At", "date", "When the object was created.");
pub(super) const CONTAINERS: Column = Column::text("Containers", "The names of the containers in the template.").wide();
pub(super) const IMAGES: Column = Column::text("Images", "The images of the containers in the template.").wide();
pub(super) const SELECTOR: Column =
    Column::text("Selector", "Which pods belong to the object, by their labels.").wide();
