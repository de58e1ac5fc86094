package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

const goldenHeader = `# Objects as typed Go clients send them, and as an API server %s that adds no defaults returns them.
# Written by tests/controlplane/kinds; do not edit.
#
# object PROTOBUF JSON     the body in base64; the JSON of what the decoded Go object encodes to
# damaged PROTOBUF JSON    a body with bytes changed that is still an object
# refused PROTOBUF         a body with bytes changed that is none
# quantity TEXT CANONICAL  both in quotes; ! for a text that is no quantity
`

// writeGolden returns the objects, and the JSON bodies.
func writeGolden() (objects, bodies []byte, err error) {
	types, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	var out, jsonOut bytes.Buffer
	fmt.Fprintf(&out, goldenHeader, release)
	fmt.Fprintf(&jsonOut, bodiesHeader, release)
	g := &golden{
		types:    types,
		protobuf: protobuf.NewSerializer(types, types),
		json:     json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{}),
		strict:   json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Strict: true}),
		fill:     newFiller(),
		out:      &out,
		bodies:   &jsonOut,
	}
	if err := g.objects(); err != nil {
		return nil, nil, err
	}
	if missed := g.fill.missed(); len(missed) > 0 {
		return nil, nil, fmt.Errorf("fields that no object sets: %s", strings.Join(missed, ", "))
	}
	writeQuantities(&out)
	return out.Bytes(), jsonOut.Bytes(), nil
}

type golden struct {
	types        *runtime.Scheme
	protobuf     runtime.Serializer
	json, strict runtime.Serializer
	fill         *filler
	out, bodies  *bytes.Buffer
}

func (g *golden) objects() error {
	root, err := kubernetesSource()
	if err != nil {
		return err
	}
	discovery, err := readDiscovery(root)
	if err != nil {
		return err
	}
	kinds := discovery.kinds()
	for _, kind := range everywhere {
		kinds = append(kinds, schema.GroupVersionKind{Version: "v1", Kind: kind})
	}
	for _, gvk := range kinds {
		for fill := range 3 {
			if err := g.object(gvk, fill > 0); err != nil {
				return fmt.Errorf("%s: %w", gvk, err)
			}
		}
	}
	return nil
}

func (g *golden) object(gvk schema.GroupVersionKind, filled bool) error {
	object, err := g.types.New(gvk)
	if err != nil {
		return err
	}
	if filled {
		g.fill.value(reflect.ValueOf(object).Elem(), 0)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var body bytes.Buffer
	if err := g.protobuf.Encode(object, &body); err != nil {
		return err
	}
	text, err := g.answer(body.Bytes())
	if err != nil {
		return err
	}
	fmt.Fprintf(g.out, "object %s %s\n", base64.StdEncoding.EncodeToString(body.Bytes()), text)
	if filled && body.Len() < 250 {
		g.damage(body.Bytes())
	}
	if filled && len(text) < 330 {
		return g.body(text)
	}
	return nil
}

// answer decodes a body and encodes the object as the API server does.
func (g *golden) answer(body []byte) (string, error) {
	object, _, err := g.protobuf.Decode(body, nil, nil)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := g.json.Encode(object, &text); err != nil {
		return "", err
	}
	return strings.TrimSpace(text.String()), nil
}

// hasMap tells whether a map is set anywhere in the object of a body. Go's decoder checks neither wire types nor
// lengths within maps, so what it makes of damage there is no measure.
func (g *golden) hasMap(body []byte) bool {
	object, _, err := g.protobuf.Decode(body, nil, nil)
	return err == nil && hasMap(reflect.ValueOf(object))
}

func hasMap(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && hasMap(v.Elem())
	case reflect.Map:
		return v.Len() > 0
	case reflect.Slice:
		for i := range v.Len() {
			if hasMap(v.Index(i)) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if hasMap(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// damage changes a few bytes of a body and records what becomes of it.
func (g *golden) damage(body []byte) {
	random := g.fill.random
	for range 6 {
		damaged := slices.Clone(body)
		for range 1 + random.IntN(2) {
			damaged = damageOnce(random, damaged)
		}
		encoded := base64.StdEncoding.EncodeToString(damaged)
		text, err := g.answer(damaged)
		switch {
		case runtime.IsNotRegisteredError(err):
			// The decoder takes options in any group and version, as of custom resources.
		case err != nil && random.IntN(4) == 0:
			fmt.Fprintf(g.out, "refused %s\n", encoded)
		case err == nil && !bytes.Equal(damaged, body) && !g.hasMap(body) && !g.hasMap(damaged) && !farTime.MatchString(text):
			fmt.Fprintf(g.out, "damaged %s %s\n", encoded, text)
		}
	}
}

// A time that RFC 3339 cannot write: Go does, and the decoder refuses.
var farTime = regexp.MustCompile(`"(-[0-9]+|[0-9]{5,})-[0-9]{2}-[0-9]{2}T`)

func damageOnce(random *rand.Rand, body []byte) []byte {
	if len(body) == 0 {
		return body
	}
	at := random.IntN(len(body))
	switch random.IntN(8) {
	case 0:
		return body[:at]
	case 1:
		return slices.Insert(body, at, byte(random.IntN(256)))
	case 2:
		return slices.Delete(body, at, at+1)
	}
	body[at] ^= 1 << random.IntN(8)
	return body
}

func writeQuantities(out *bytes.Buffer) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words string) string {
		list := strings.Split(words, " ")
		return list[random.IntN(len(list))]
	}
	for range 400 {
		text := pick("| | + - |")
		text = strings.ReplaceAll(text, "|", "")
		text += pick("0 1 7 10 12 100 1000 1023 1024 1536 2048 1000000 007 123456789 999999999999999999 9223372036854775807 12345678901234567890 ")
		if random.IntN(3) == 0 {
			text += "." + pick("0 5 50 500 001 125 000 0000000001 000000001 1234567891 ")
		}
		if !strings.ContainsAny(text, "0123456789") {
			continue // the parser in the core refuses these, as the grammar does
		}
		text += strings.ReplaceAll(pick("| | n u m k M G T P E Ki Mi Gi Ti Pi Ei e3 e-3 E3 e0 e1 e-12 e18 e30 e+6 K mi e B ee3 - i"), "|", "")
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			fmt.Fprintf(out, "quantity %q !\n", text)
			continue
		}
		canonical, _ := quantity.MarshalJSON()
		if again := resource.MustParse(quantity.String()); again.Cmp(quantity) != 0 {
			continue // from 1000E on, Kubernetes loses the suffix
		}
		fmt.Fprintf(out, "quantity %q %s\n", text, canonical)
	}
}
