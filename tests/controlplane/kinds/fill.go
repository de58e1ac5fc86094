package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A filler sets fields of objects, the same ones every time. A field that few objects had so far is set, others
// seldom, so that all objects together have every field and each alone stays small.
type filler struct {
	random *rand.Rand
	set    map[fieldKey]int
	seen   map[fieldKey]bool
}

type fieldKey struct {
	owner reflect.Type
	index int
}

func newFiller() *filler {
	return &filler{rand.New(rand.NewPCG(3, 4)), map[fieldKey]int{}, map[fieldKey]bool{}}
}

// missed are the fields that were met but never set.
func (f *filler) missed() []string {
	var missed []string
	for key := range f.seen {
		if f.set[key] == 0 {
			missed = append(missed, fmt.Sprintf("%s.%s", key.owner, key.owner.Field(key.index).Name))
		}
	}
	slices.Sort(missed)
	return missed
}

func (f *filler) value(v reflect.Value, depth int) {
	if f.special(v, depth) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		f.fields(v, depth)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		// One pointer in three is to an empty value.
		if f.random.IntN(3) > 0 || !isScalar(v.Type().Elem()) {
			f.value(v.Elem(), depth)
		}
	case reflect.Slice:
		f.list(v, depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"a", "b/" + f.word()}[:1+f.random.IntN(2)] {
			element := reflect.New(v.Type().Elem()).Elem()
			f.value(element, depth)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), element)
		}
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(pick(f, int64(1), 2, -1, 443, math.MaxInt32, math.MinInt32))
	case reflect.Int64:
		v.SetInt(pick(f, int64(1), 30, -1, math.MaxInt64, math.MinInt64))
	case reflect.Float64:
		v.SetFloat(pick(f, 0.5, 5, -1e300, 1e21))
	default:
		panic(v.Type().String())
	}
}

func (f *filler) fields(v reflect.Value, depth int) {
	for i := range v.NumField() {
		goField := v.Type().Field(i)
		if goField.Tag.Get("protobuf") == "" || goField.Tag.Get("protobuf") == "-" {
			continue
		}
		key := fieldKey{v.Type(), i}
		f.seen[key] = true
		always := goField.Type.Kind() == reflect.Struct && goField.Type.NumField() > 1
		if always || f.wants(key, goField.Type, depth) {
			// Counted first, so that a type within itself ends.
			f.set[key]++
			f.value(v.Field(i), depth+1)
		}
	}
}

func (f *filler) wants(key fieldKey, t reflect.Type, depth int) bool {
	count := 1
	if t.Kind() == reflect.Pointer && isScalar(t.Elem()) {
		count = 2
	}
	return f.set[key] < count || depth < 8 && f.random.IntN(12) == 0
}

func (f *filler) list(v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(f.word()))
		return
	}
	for range 1 + f.random.IntN(2) {
		element := reflect.New(v.Type().Elem()).Elem()
		f.value(element, depth)
		v.Set(reflect.Append(v, element))
	}
}

// special fills the types that have their own JSON.
func (f *filler) special(v reflect.Value, depth int) bool {
	switch special := v.Addr().Interface().(type) {
	case *metav1.Time:
		*special = metav1.Unix(pick(f, int64(0), 1, 951782400, -62135596799, 253402300799), 0)
	case *metav1.MicroTime:
		*special = metav1.MicroTime{Time: time.Unix(pick(f, int64(1), -1, 1700000000), pick(f, int64(0), 1000, 999999999))}
	case *resource.Quantity:
		*special = resource.MustParse(pick(f, "0", "500m", "0.5", "1536Mi", "2048Ki", "1e3", "-5", "1.500"))
	case *intstr.IntOrString:
		*special = pick(f, intstr.FromInt32(8080), intstr.FromInt32(0), intstr.FromString("25%"), intstr.FromString(""))
	case *runtime.RawExtension:
		special.Raw = []byte(pick(f, `{"kind":"K","a":[1,2.5,null]}`, `"text"`, `{}`))
	case *metav1.FieldsV1:
		special.SetRawBytes([]byte(pick(f, `{"f:spec":{".":{},"f:a":{}}}`, `{}`)))
	case *apiextensionsv1.JSON:
		special.Raw = []byte(pick(f, `1`, `"x"`, `[]`, `{"a":null}`, `false`))
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		special.Allows = f.random.IntN(2) == 0
		special.Schema = f.schema(depth)
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		if special.Schema = f.schema(depth); special.Schema == nil {
			f.value(reflect.ValueOf(&special.JSONSchemas).Elem(), depth)
		}
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		if special.Schema = f.schema(depth); special.Schema == nil {
			special.Property = []string{f.word(), f.word()}
		}
	default:
		return false
	}
	return true
}

func (f *filler) schema(depth int) *apiextensionsv1.JSONSchemaProps {
	if f.random.IntN(2) == 0 {
		return nil
	}
	schema := &apiextensionsv1.JSONSchemaProps{}
	f.value(reflect.ValueOf(schema).Elem(), depth)
	return schema
}

// word is short, and sometimes needs an escape in JSON or is no ASCII.
func (f *filler) word() string {
	return pick(f, "a", "b", "web", "x-1", "<&>", "\"\\\n", "é完", "\u2028")
}

func isScalar(t reflect.Type) bool {
	return t.Kind() == reflect.String || t.Kind() == reflect.Bool || t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64
}

func pick[T any](f *filler, values ...T) T { return values[f.random.IntN(len(values))] }
