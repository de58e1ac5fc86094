//! The schemas of custom resource definitions: what is kept of an object, what is filled in, and what it must be.
//!
//! See <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>.

mod check;
mod prune;
mod rules;
mod validate;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use check::schema_faults;
pub(crate) use prune::{pruned, with_defaults, without_nulls};
pub(crate) use rules::{Pattern, Rules};
pub(crate) use validate::{faults, status_faults};

/// A structural schema as far as the server goes by it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Schema {
    /// The JSON type; none of a value of any type.
    pub(crate) of: Option<Type>,
    /// The fields of an object.
    pub(crate) properties: BTreeMap<String, Self>,
    /// The fields that no property names.
    pub(crate) additional: Additional,
    /// The items of a list.
    pub(crate) items: Option<Box<Self>>,
    /// Keeps fields that are not named.
    pub(crate) preserves_unknown: bool,
    /// The value is an object of Kubernetes, with a type and metadata.
    pub(crate) embedded: bool,
    /// A whole number or a text.
    pub(crate) int_or_string: bool,
    /// Null is a value of its own.
    pub(crate) nullable: bool,
    /// What stands for a value that is left out.
    pub(crate) default: Option<Value>,
    /// How the items of a list are told apart.
    pub(crate) list: ListType,
    /// An object that is one value to whoever owns it.
    pub(crate) atomic_map: bool,
    /// What else it demands.
    pub(crate) rules: Rules,
}

/// A type of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// What fields without a name of their own may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Additional {
    /// Nothing is said of them.
    #[default]
    Unsaid,
    /// They are no fields.
    Refused,
    /// They may be anything.
    Any,
    /// They are values of this schema.
    Of(Box<Schema>),
}

/// How the items of a list are told apart (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Not at all: the list is one value.
    #[default]
    Atomic,
    /// By what they are.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

impl Schema {
    /// Reads a schema as a stored definition has it; what it says that means nothing here is passed over.
    pub(crate) fn parse(schema: &Value) -> Self {
        let flag = |name: &str| schema[name] == Value::Bool(true);
        let texts = |name: &str| -> Vec<String> {
            let list = schema[name].as_array().into_iter().flatten();
            list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        Self {
            of: schema["type"].as_str().and_then(Type::parse),
            properties: properties.map(|(name, property)| (name.clone(), Self::parse(property))).collect(),
            additional: match &schema["additionalProperties"] {
                Value::Bool(true) => Additional::Any,
                Value::Bool(false) => Additional::Refused,
                Value::Null => Additional::Unsaid,
                of => Additional::Of(Box::new(Self::parse(of))),
            },
            items: schema.get("items").filter(|items| items.is_object()).map(|items| Box::new(Self::parse(items))),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            nullable: flag("nullable"),
            default: schema.get("default").cloned(),
            list: match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(texts("x-kubernetes-list-map-keys")),
                _ => ListType::Atomic,
            },
            atomic_map: schema["x-kubernetes-map-type"] == "atomic",
            rules: Rules::parse(schema),
        }
    }

    /// The schema of a field, be it named or not.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Of(schema)) => Some(schema),
            _ => None,
        }
    }
}

impl Type {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}
