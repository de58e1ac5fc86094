package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

const bodiesHeader = `# JSON bodies, and what an API server %s makes of them under strict field validation.
# Written by tests/controlplane/kinds; do not edit. Words are parted by tabs.
#
# body JSON OBJECT STRICT   the object it returns, and what strict validation reports, as a JSON list
# bad JSON ERROR            the error, as a JSON text
`

// A member of an object within JSON text. The first two are kind and apiVersion, which stay as they are: their
// faults are found before the kind is known.
var member = regexp.MustCompile(`"([a-zA-Z0-9-]+)":("(?:[^"\\]|\\.)*"|[-0-9.e+]+|true|false|null|\{\}|\[\]|)`)

// Values of all sorts to put in place of others.
var replacements = strings.Split(`5 -1 1.5 99999999999 "x" "" "10" true null {} [] [null] {"a":null} [{}] "2024-02-30T00:00:00Z" "2024-01-31T01:00:00+01:00" "2024-01-31T01:00:00.123456Z" "0.5" "YQ==" "YQ=" [{"name":"n","name":"m","x":1}] {"a":{"b":1},"a":2}`, " ")

// body writes bodies made from the JSON of an object by small changes.
func (g *golden) body(text string) error {
	if len(member.FindAllString(text, -1)) <= 2 {
		return nil
	}
	random := g.fill.random
	for range 3 {
		changed := repeat(random, text)
		if random.IntN(5) > 0 {
			changed = text
			for range 1 + random.IntN(3) {
				changed = change(random, changed)
			}
		}
		object, _, err := g.strict.Decode([]byte(changed), nil, nil)
		reports := []string{}
		if strict, ok := runtime.AsStrictDecodingError(err); ok {
			for _, report := range strict.Errors() {
				reports = append(reports, report.Error())
			}
		} else if err != nil {
			fmt.Fprintf(g.bodies, "bad\t%s\t%s\n", changed, quote(err.Error()))
			continue
		}
		var stored bytes.Buffer
		if err := g.protobuf.Encode(object, &stored); err != nil {
			return err
		}
		answer, err := g.answer(stored.Bytes())
		if err != nil {
			return fmt.Errorf("%s: %w", changed, err)
		}
		fmt.Fprintf(g.bodies, "body\t%s\t%s\t%s\n", changed, answer, quote(reports))
	}
	return nil
}

// change renames a field or gives it another value.
func change(random *rand.Rand, text string) string {
	at := pickMember(random, text)
	if random.IntN(4) == 0 {
		return text[:at[3]] + "x" + text[at[3]:]
	}
	if at[4] == at[5] {
		return text
	}
	return text[:at[4]] + replacements[random.IntN(len(replacements))] + text[at[5]:]
}

// repeat has a field twice. The first value is a scalar: of others, Go would make one with the second.
func repeat(random *rand.Rand, text string) string {
	at := pickMember(random, text)
	replacement := replacements[random.IntN(len(replacements))]
	if strings.ContainsAny(replacement, "{[") {
		return text
	}
	return text[:at[0]] + text[at[0]:at[3]] + `":` + replacement + "," + text[at[0]:]
}

// pickMember is where a name and its value, when that is no object or list with something in it, are in a text.
func pickMember(random *rand.Rand, text string) []int {
	members := member.FindAllStringSubmatchIndex(text, -1)
	return members[2+random.IntN(len(members)-2)]
}

func quote(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return strings.TrimSpace(text.String())
}
