package main

import (
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// diff returns the lines of a unified diff of two objects in YAML; none where
// only the book of field managers differs, which is longer than the object.
func diff(before, after *runtime.RawExtension) ([]string, error) {
	a, err := document(before)
	if err != nil {
		return nil, err
	}
	b, err := document(after)
	if err != nil {
		return nil, err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: a, B: b, Context: 2})
	return lines(text), err
}

// document returns the YAML of an object, a line each, without its field managers.
func document(raw *runtime.RawExtension) ([]string, error) {
	object, err := decode(raw)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	text, err := yaml.Marshal(object)
	return slices.Collect(strings.Lines(string(text))), err
}

func decode(raw *runtime.RawExtension) (object map[string]any, err error) {
	err = json.Unmarshal(raw.Raw, &object)
	return object, err
}

// countFields counts what a user would have to type: lists and objects only by
// what is in them.
func countFields(value any) int {
	count := 0
	switch t := value.(type) {
	case map[string]any:
		for _, field := range t {
			count += countFields(field)
		}
	case []any:
		for _, item := range t {
			count += countFields(item)
		}
	default:
		count = 1
	}
	return count
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
