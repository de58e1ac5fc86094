//! What a handler changed of an object, as a patch of the object as it was received.

use serde_json::Value;

use super::carry::carry_surely;
use super::guard::same_object;
use super::{Arrays, JsonPatch, MAX_DEPTH, PatchError, fits};

impl JsonPatch {
    /// The patch of `received` that does what a handler did who saw it through a type: as `before`, of which it made
    /// `after`. This is what a mutating
    /// [admission webhook](https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/)
    /// answers.
    ///
    /// Only what differs between `before` and `after` is changed: fields that the type does not know stay, and
    /// defaults that it filled in are not written unless they were changed. Elements of lists belong together if they
    /// have the same `name`, provided that each has its own; else if they are at the same place.
    ///
    /// # Errors
    /// [`Unmatched`](PatchError::Unmatched) if a list holds what the type does not know, and its elements, which have
    /// no names of their own, were moved, or changed while others were added or removed, or look the same;
    /// [`IdentityChanged`](PatchError::IdentityChanged) if apiVersion, kind, name, namespace, uid or resourceVersion
    /// would change.
    ///
    /// ```
    /// use cloudcoil_core::JsonPatch;
    /// use serde_json::json;
    ///
    /// let received = json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "novel": 1}, {"name": "b"}]}});
    /// // A type that knows no `novel`, and has a default for `tty`.
    /// let container = |name: &str, tty: bool| json!({"name": name, "tty": tty});
    /// let pod = |containers| json!({"kind": "Pod", "spec": {"containers": containers}});
    /// let before = pod([container("a", false), container("b", false)]);
    /// let after = pod([container("a", true), container("b", false)]);
    /// assert_eq!(
    ///     serde_json::to_value(JsonPatch::mutation(&received, &before, &after)?).unwrap(),
    ///     json!([{"op": "add", "path": "/spec/containers/0/tty", "value": true}])
    /// );
    /// # Ok::<(), cloudcoil_core::PatchError>(())
    /// ```
    pub fn mutation(received: &Value, before: &Value, after: &Value) -> Result<Self, PatchError> {
        if [received, before, after].into_iter().any(|object| !fits(object, MAX_DEPTH)) {
            return Err(PatchError::TooDeep);
        }
        let wanted = carry_surely(received.clone(), before, after.clone())?;
        same_object(received, &wanted)?;
        Self::diff_with(received, &wanted, Arrays::ByElement)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::patch::Pointer;

    /// The object that the patch makes of `received`.
    fn mutated(received: &Value, before: &Value, after: &Value) -> Result<Value, PatchError> {
        let mut document = received.clone();
        JsonPatch::mutation(received, before, after)?.apply(&mut document)?;
        Ok(document)
    }

    #[test]
    fn only_what_the_handler_changed_is_in_the_patch() {
        let received = json!({ "kind": "W", "metadata": { "name": "w" }, "spec": { "size": 1.0, "novel": [1] } });
        let before = json!({
            "kind": "W", "metadata": { "name": "w", "labels": {} },
            "spec": { "size": 1, "mode": "Auto", "limits": { "cpu": 1, "memory": 2 } },
        });
        assert_eq!(JsonPatch::mutation(&received, &before, &before), Ok(JsonPatch::new()));
        let mut after = before.clone();
        after["metadata"]["labels"]["a/b"] = json!("c");
        after["spec"]["limits"]["cpu"] = json!(3);
        assert_eq!(
            Value::from(JsonPatch::mutation(&received, &before, &after).unwrap()),
            json!([
                { "op": "add", "path": "/metadata/labels", "value": { "a/b": "c" } },
                { "op": "add", "path": "/spec/limits", "value": { "cpu": 3 } },
            ])
        );
    }

    #[test]
    fn what_the_handler_removes_goes_and_the_unknown_stays() {
        let received = json!({ "spec": { "size": 1, "novel": 2 }, "odd": 3 });
        let (before, after) = (json!({ "spec": { "size": 1, "mode": "Auto" } }), json!({ "spec": {} }));
        let patch = JsonPatch::mutation(&received, &before, &after).unwrap();
        assert_eq!(Value::from(patch), json!([{ "op": "remove", "path": "/spec/size" }]));
    }

    #[test]
    fn named_elements_keep_what_is_theirs_wherever_they_go() {
        let received = json!([{ "name": "a", "x": 1 }, { "name": "b", "x": 2 }, { "name": "c", "x": 3 }]);
        let before = json!([{ "name": "a", "d": 0 }, { "name": "b", "d": 0 }, { "name": "c", "d": 0 }]);
        for (after, wanted) in [
            (
                json!([{ "name": "c", "d": 0 }, { "name": "a", "d": 7 }]),
                json!([{ "name": "c", "x": 3 }, { "name": "a", "x": 1, "d": 7 }]),
            ),
            (
                json!([{ "name": "new" }, { "name": "b", "d": 0 }, { "name": "a", "d": 0 }, { "name": "c" }]),
                json!([{ "name": "new" }, { "name": "b", "x": 2 }, { "name": "a", "x": 1 }, { "name": "c", "x": 3 }]),
            ),
            (json!([]), json!([])),
        ] {
            assert_eq!(mutated(&received, &before, &after), Ok(wanted), "{after}");
        }
    }

    #[test]
    fn elements_without_names_keep_what_is_theirs_at_their_places() {
        let received = json!([{ "p": 1, "x": 1 }, { "p": 2, "x": 2 }, { "p": 3, "x": 3 }]);
        let before = json!([{ "p": 1 }, { "p": 2 }, { "p": 3 }]);
        for (after, wanted) in [
            (
                json!([{ "p": 1 }, { "p": 9 }, { "p": 3 }]),
                json!([{ "p": 1, "x": 1 }, { "p": 9, "x": 2 }, { "p": 3, "x": 3 }]),
            ),
            (json!([{ "p": 1 }, { "p": 3 }]), json!([{ "p": 1, "x": 1 }, { "p": 3, "x": 3 }])),
            (
                json!([{ "p": 0 }, { "p": 1 }, { "p": 2 }, { "p": 3 }]),
                json!([{ "p": 0 }, { "p": 1, "x": 1 }, { "p": 2, "x": 2 }, { "p": 3, "x": 3 }]),
            ),
            (json!([]), json!([])),
        ] {
            assert_eq!(mutated(&received, &before, &after), Ok(wanted), "{after}");
        }
    }

    #[test]
    fn elements_that_cannot_be_told_apart_are_an_error_that_names_the_list() {
        let plain = [1, 2, 3].map(|port| json!({ "p": port }));
        let twice = ["a", "a"].map(|name| json!({ "name": name }));
        for (read, after, fault) in [
            (plain.to_vec(), json!([{ "p": 2 }, { "p": 1 }, { "p": 3 }]), "moved"),
            (plain.to_vec(), json!([{ "p": 3 }, { "p": 1 }, { "p": 2 }]), "moved"),
            (plain.to_vec(), json!([{ "p": 9 }, { "p": 3 }]), "added or removed"),
            (twice.to_vec(), json!([{ "name": "a" }]), "look the same"),
            (twice.to_vec(), json!([{ "name": "a" }, { "name": "a" }, { "name": "a" }]), "look the same"),
        ] {
            let mut stored = read.clone();
            for (index, element) in stored.iter_mut().enumerate() {
                element["novel"] = json!(index);
            }
            let object = |ports: Value| json!({ "spec": { "ports": ports } });
            let error = mutated(&object(stored.into()), &object(read.clone().into()), &object(after.clone()));
            let Err(PatchError::Unmatched { path, fault: found }) = error else { panic!("{after}: {error:?}") };
            assert_eq!(path.as_str(), "/spec/ports", "{after}");
            assert!(found.contains(fault), "{after}: {found}");
            // With nothing that the type does not know there is nothing to lose.
            assert_eq!(
                mutated(&object(read.clone().into()), &object(read.into()), &object(after.clone())),
                Ok(object(after))
            );
        }
        let hidden = JsonPatch::mutation(&json!([1, 2]), &json!([1]), &json!([3]));
        assert!(matches!(hidden, Err(PatchError::Unmatched { .. })), "{hidden:?}");
    }

    #[test]
    fn a_handler_cannot_make_another_object_of_it() {
        let received = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": { "a": "b" } },
        });
        for path in [
            "/apiVersion",
            "/kind",
            "/metadata/name",
            "/metadata/namespace",
            "/metadata/uid",
            "/metadata/resourceVersion",
        ] {
            let path = Pointer::parse(path).unwrap();
            for change in [JsonPatch::new().add(path.clone(), "x"), JsonPatch::new().remove(path.clone())] {
                let mut after = received.clone();
                change.apply(&mut after).unwrap();
                let error = JsonPatch::mutation(&received, &received, &after);
                assert_eq!(error, Err(PatchError::IdentityChanged { path: path.clone() }));
            }
        }
        assert!(JsonPatch::mutation(&received, &received, &json!({})).is_err());
    }

    #[test]
    fn objects_that_are_nested_too_deep_are_refused() {
        let deep = (0..=MAX_DEPTH).fold(json!(0), |inner, _| json!([inner]));
        for (received, before, after) in
            [(&deep, &json!(0), &json!(0)), (&json!(0), &deep, &json!(0)), (&json!(0), &json!(0), &deep)]
        {
            assert_eq!(JsonPatch::mutation(received, before, after), Err(PatchError::TooDeep));
        }
    }
}
