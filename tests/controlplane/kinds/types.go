package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Types that write their own JSON, by Go name. Every other json.Marshaler is an error, so that a new one
// cannot slip in as a plain struct.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "!Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "!MicroTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "!FieldsV1",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "!Quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "!IntOrString",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "!RawExtension",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "!JSON",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "!SchemaOrArray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "!SchemaOrBool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "!SchemaOrStrings",
}

var scalars = map[reflect.Kind]string{
	reflect.String: "string", reflect.Bool: "bool", reflect.Int32: "int32", reflect.Int64: "int64",
	reflect.Float64: "double",
}

type openAPINamed interface{ OpenAPIModelName() string }

func describe(t reflect.Type, push func(reflect.Type)) (structType, error) {
	s := structType{id: packageID(t), name: t.Name()}
	named, ok := reflect.Zero(t).Interface().(openAPINamed)
	if !ok {
		return s, fmt.Errorf("no OpenAPI model name")
	}
	s.model = named.OpenAPIModelName()
	for i := range t.NumField() {
		f, err := describeField(t.Field(i), push)
		if err != nil {
			return s, fmt.Errorf("field %s: %w", t.Field(i).Name, err)
		}
		if f.name != "-" {
			s.fields = append(s.fields, f)
		}
	}
	return s, nil
}

// packageID is the group folder and version of a type: "core/v1", "meta/v1".
func packageID(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/")
}

func describeField(goField reflect.StructField, push func(reflect.Type)) (field, error) {
	tag := strings.Split(goField.Tag.Get("json"), ",")
	f := field{name: tag[0], patch: goField.Tag.Get("patchStrategy"), mergeKey: goField.Tag.Get("patchMergeKey")}
	if f.name == "-" {
		return f, nil
	}
	for _, option := range tag[1:] {
		switch option {
		case "inline": // a note to readers: encoding/json goes by the embedding and the missing name
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		default:
			return f, fmt.Errorf("json option %q", option)
		}
	}
	if f.name == "" && goField.Anonymous {
		f.name = "~"
	}
	if f.name == "" {
		return f, fmt.Errorf("no JSON name")
	}
	var err error
	if f.kind, err = typeName(goField.Type, push); err != nil {
		return f, err
	}
	f.goType, f.goElement = goNames(goField.Type, f.kind)
	return f, f.readWire(goField)
}

func (f *field) readWire(goField reflect.StructField) error {
	tag := goField.Tag.Get("protobuf")
	// Only the number is read. The wire type and label are sometimes wrong in the tags (DeleteOptions'
	// propagationPolicy, StorageClass' mountOptions); the encoders go by the Go type, as the table does.
	if tag == "" {
		if f.name != "~" || f.kind != "meta/v1.TypeMeta" {
			return fmt.Errorf("no protobuf tag")
		}
		return nil
	}
	parts := strings.Split(tag, ",")
	number, err := strconv.Atoi(parts[1])
	if err != nil || number <= 0 {
		return fmt.Errorf("protobuf tag %q", tag)
	}
	f.number = number
	return nil
}

// What Go calls types whose name in the table differs; of list messages, the first.
var goScalars = map[string]string{"double": "float64", "bytes": "[]uint8", "!Strings": "v1.ExtraValue"}

// goNames are Go's names of a field's type and of what it holds, which the API server's messages mention, where
// the table's own name does not tell.
func goNames(t reflect.Type, kind string) (whole, element string) {
	scalar := strings.TrimLeft(kind, "*[]{}")
	if plain, ok := goScalars[scalar]; ok {
		scalar = plain
	} else if strings.ToLower(scalar) != scalar || strings.Contains(scalar, "/") {
		return containerName(t), ""
	}
	inner := t
	if strings.TrimLeft(kind, "*[]{}") != kind {
		inner = t.Elem()
	}
	if inner.String() != scalar {
		element = inner.String()
	}
	return containerName(t), element
}

// containerName is the name of a list or map type that is not just "a list of" or "a map from strings to".
func containerName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && t.String() != "[]"+t.Elem().String(),
		t.Kind() == reflect.Map && t.String() != "map[string]"+t.Elem().String():
		return t.String()
	}
	return ""
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	message   = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
)

func typeName(t reflect.Type, push func(reflect.Type)) (string, error) {
	if name, ok := special[t.PkgPath()+"."+t.Name()]; ok {
		// Struct types under a special one are reached through its own fields.
		return name, pushFields(t, push)
	}
	if t.Name() != "" && reflect.PointerTo(t).Implements(marshaler) {
		return "", fmt.Errorf("%s has its own JSON form", t)
	}
	if scalar, ok := scalars[t.Kind()]; ok {
		return scalar, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		push(t)
		return packageID(t) + "." + t.Name(), nil
	case reflect.Pointer:
		return element("*", t, push)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return "", fmt.Errorf("map with keys %s", t.Key())
		}
		return element("{}", t, push)
	case reflect.Slice:
		return sliceName(t, push)
	}
	return "", fmt.Errorf("type %s", t)
}

func sliceName(t reflect.Type, push func(reflect.Type)) (string, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return "bytes", nil
	}
	if reflect.PointerTo(t).Implements(message) {
		// A named list is a message of its own on the wire, with the items in its field 1.
		if t.Elem().Kind() != reflect.String {
			return "", fmt.Errorf("list message of %s", t.Elem())
		}
		return "!Strings", nil
	}
	return element("[]", t, push)
}

func element(prefix string, t reflect.Type, push func(reflect.Type)) (string, error) {
	name, err := typeName(t.Elem(), push)
	return prefix + name, err
}

func pushFields(t reflect.Type, push func(reflect.Type)) error {
	for i := range t.NumField() {
		inner := t.Field(i).Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.Name() == "JSONSchemaProps" {
			push(inner)
		}
	}
	return nil
}
