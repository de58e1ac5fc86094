//! `Table` answers: what `kubectl get` prints.
//!
//! A client that accepts `application/json;as=Table;v=v1;g=meta.k8s.io` gets the columns of a kind and one row of
//! cells an object. See
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>.
//!
//! A [`Printer`] knows the columns of one kind. [`Printer::list`] answers a list, [`Printer::one`] a single object and
//! each event of a watch, where only the first table of the watch has headers ([`TableOptions::headers`]).

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

use cloudcoil_core::UnixTime;
use serde_json::{Map, Value, json};

pub use custom::PrinterColumn;

use builtin::Builtin;
use column::Column;
use custom::Custom;
use node::Node;

/// How the objects of one kind are printed.
///
/// ```
/// use cloudcoil_apiserver::table::{Printer, TableOptions};
/// use cloudcoil_core::UnixTime;
/// use serde_json::json;
///
/// let map = json!({"metadata": {"name": "settings", "creationTimestamp": "1970-01-01T00:00:00Z"}, "data": {"a": "b"}});
/// let now = UnixTime::from_secs(90);
/// let table = Printer::builtin("", "ConfigMap").list(&[&map], json!({"resourceVersion": "7"}), now, TableOptions::default());
/// assert_eq!(table["columnDefinitions"][1]["name"], "Data");
/// assert_eq!(table["rows"][0]["cells"], json!(["settings", 1, "90s"]));
/// assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
/// ```
#[derive(Clone, Debug)]
pub struct Printer(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Builtin(Builtin),
    Custom(Custom),
}

impl Printer {
    /// The printer of a built-in kind; of any other, its names and ages.
    pub fn builtin(group: &str, kind: &str) -> Self {
        Self(Kind::Builtin(builtin::printer(group, kind)))
    }

    /// The printer of a custom resource whose definition has these `additionalPrinterColumns`; without any, names and
    /// ages. A column whose JSONPath is none stays empty.
    pub fn custom(columns: &[PrinterColumn]) -> Self {
        Self(Kind::Custom(Custom::new(columns)))
    }

    /// The table of a list; `metadata` is the list's.
    pub fn list(&self, objects: &[&Value], metadata: Value, now: UnixTime, options: TableOptions) -> Value {
        let order = match &self.0 {
            Kind::Builtin(builtin) => builtin.order,
            Kind::Custom(_) => None,
        };
        let mut ordered = objects.to_vec();
        if let Some(order) = order {
            ordered.sort_by(|a, b| order(Node::of(a), Node::of(b)));
        }
        let on = Printing { now, list: objects };
        let rows = ordered.iter().map(|object| self.row(object, &on, options)).collect();
        self.assemble(rows, metadata, options)
    }

    /// The table of one object, whose resource version it has.
    pub fn one(&self, object: &Value, now: UnixTime, options: TableOptions) -> Value {
        let version = object.pointer("/metadata/resourceVersion");
        let metadata = version.map(|version| json!({"resourceVersion": version})).unwrap_or_else(|| json!({}));
        let on = Printing { now, list: &[] };
        self.assemble(vec![self.row(object, &on, options)], metadata, options)
    }

    fn assemble(&self, rows: Vec<Value>, metadata: Value, options: TableOptions) -> Value {
        let columns = match &self.0 {
            _ if !options.headers => Value::Null,
            Kind::Builtin(builtin) => builtin.columns.iter().map(Column::definition).collect(),
            Kind::Custom(custom) => Value::Array(custom.definitions.clone()),
        };
        json!({
            "kind": "Table",
            "apiVersion": options.version.api_version(),
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    fn row(&self, object: &Value, on: &Printing<'_>, options: TableOptions) -> Value {
        let node = Node::of(object);
        let mut row = Map::new();
        let cells = match &self.0 {
            Kind::Builtin(builtin) => {
                if let Some(condition) = builtin.completion.and_then(|completion| completion(node)) {
                    row.insert("conditions".to_owned(), json!([condition]));
                }
                (builtin.cells)(node, on)
            }
            Kind::Custom(custom) => custom.cells(object, on),
        };
        row.insert("cells".to_owned(), Value::Array(cells));
        row.insert("object".to_owned(), options.object(object));
        Value::Object(row)
    }
}

/// How a table is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "its fields are all a client can ask for")]
pub struct TableOptions {
    /// What of its object a row carries (`includeObject`).
    pub include: IncludeObject,
    /// Whether the columns are listed.
    pub headers: bool,
    /// The version of `Table` that was asked for.
    pub version: TableVersion,
}

impl Default for TableOptions {
    /// Metadata and headers, in `v1`.
    fn default() -> Self {
        Self { include: IncludeObject::Metadata, headers: true, version: TableVersion::V1 }
    }
}

impl TableOptions {
    fn object(self, object: &Value) -> Value {
        match self.include {
            IncludeObject::Object => object.clone(),
            // The bookmark that ends the initial events is recognized by its metadata.
            IncludeObject::None if !ends_initial_events(object) => Value::Null,
            IncludeObject::None | IncludeObject::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": self.version.api_version(),
                "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
            }),
        }
    }
}

fn ends_initial_events(object: &Value) -> bool {
    object.pointer("/metadata/annotations").and_then(|map| map.get("k8s.io/initial-events-end")?.as_str())
        == Some("true")
}

/// What of its object a row of a table carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these three")]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, as a `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the `includeObject` of a query; empty is metadata, and nothing else is known.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// A version of `meta.k8s.io` that has tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these two")]
pub enum TableVersion {
    /// `v1`.
    #[default]
    V1,
    /// `v1beta1`, whose tables look the same.
    V1Beta1,
}

impl TableVersion {
    /// The version of this name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
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
