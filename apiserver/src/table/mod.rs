//! `Table` answers: what `kubectl get` prints.
//!
//! A client that accepts `application/json;as=Table;v=v1;g=meta.k8s.io` gets the columns of a kind and one row of
//! cells an object. See
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>.

mod admission;
mod age;
mod autoscaling;
mod builtin;
mod cluster;
mod column;
mod custom;
#[cfg(test)]
mod golden;
mod network;
mod node;
mod pod;
mod resource;
mod storage;
mod workload;

use std::borrow::Cow;

use cloudcoil_core::UnixTime;
use serde_json::Value;

pub(crate) use custom::{Custom, PrinterColumn};

use builtin::Builtin;
use column::Column;
use node::Node;

/// How the objects of one kind are printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Printer {
    /// As the API server prints this built-in kind; names and ages of any other.
    Builtin {
        group: Cow<'static, str>,
        kind: Cow<'static, str>,
    },
    Custom(Custom),
}

/// One object of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Which of the objects it is.
    pub(crate) index: usize,
    pub(crate) cells: Vec<Value>,
    /// That the object has run to its end.
    pub(crate) completed: Option<Value>,
}

impl Printer {
    /// The printer of a built-in kind.
    pub(crate) fn builtin(group: impl Into<Cow<'static, str>>, kind: impl Into<Cow<'static, str>>) -> Self {
        Self::Builtin { group: group.into(), kind: kind.into() }
    }

    /// The column definitions.
    pub(crate) fn columns(&self) -> Vec<Value> {
        match self {
            Self::Builtin { group, kind } => {
                builtin::printer(group, kind).columns.iter().map(Column::definition).collect()
            }
            Self::Custom(custom) => custom.definitions.clone(),
        }
    }

    /// The row of a single object.
    pub(crate) fn row(&self, object: &Value, now: UnixTime) -> Row {
        self.row_of(0, object, &Printing { now, list: &[] })
    }

    /// The rows of a list in the order in which they are printed.
    pub(crate) fn rows(&self, objects: &[&Value], now: UnixTime) -> Vec<Row> {
        let mut order: Vec<_> = objects.iter().enumerate().collect();
        if let Self::Builtin { group, kind } = self
            && let Some(compare) = builtin::printer(group, kind).order
        {
            order.sort_by(|(_, a), (_, b)| compare(Node::of(a), Node::of(b)));
        }
        let on = Printing { now, list: objects };
        order.into_iter().map(|(index, object)| self.row_of(index, object, &on)).collect()
    }

    fn row_of(&self, index: usize, object: &Value, on: &Printing<'_>) -> Row {
        match self {
            Self::Builtin { group, kind } => {
                let Builtin { cells, completion, .. } = builtin::printer(group, kind);
                let node = Node::of(object);
                Row { index, cells: cells(node, on), completed: completion.and_then(|completion| completion(node)) }
            }
            Self::Custom(custom) => Row { index, cells: custom.cells(object, on), completed: None },
        }
    }
}

/// What a cell may depend on besides its object.
struct Printing<'a> {
    now: UnixTime,
    /// The objects of the list; none when a single object is printed.
    list: &'a [&'a Value],
}

impl Printing<'_> {
    /// How long ago the time in `node` was.
    fn age(&self, node: Node<'_>) -> String {
        age::since(self.now, node.text())
    }

    /// How long ago the object was created.
    fn created(&self, object: Node<'_>) -> String {
        self.age(object.at("metadata.creationTimestamp"))
    }
}
