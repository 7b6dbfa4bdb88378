package admission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// CheckConfigurationFile refuses an admission configuration file (kind
// AdmissionConfiguration, apiserver.config.k8s.io/v1) in which a plugin would
// not get what was written for it: the library ignores a name that nobody
// registered, a second entry of one name and a path beside a configuration in
// silence, and exits on a path it cannot read. All that is wrong comes back in
// one error that names the file. No path is fine: there is no file then.
func CheckConfigurationFile(path string, registered []string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the admission configuration: %w", err)
	}
	var config apiserverv1.AdmissionConfiguration
	if err := DecodeConfiguration(data, apiserverv1.SchemeGroupVersion.WithKind("AdmissionConfiguration"), &config); err != nil {
		return fmt.Errorf("decoding the admission configuration %s: %w", path, err)
	}
	if err := checkPlugins(config.Plugins, filepath.Dir(path), sets.New(registered...)).ToAggregate(); err != nil {
		return fmt.Errorf("checking the admission configuration %s: %w", path, err)
	}
	return nil
}

func checkPlugins(plugins []apiserverv1.AdmissionPluginConfiguration, dir string, registered sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, plugin := range plugins {
		fldPath := field.NewPath("plugins").Index(i)
		switch {
		case !registered.Has(plugin.Name):
			errs = append(errs, field.NotSupported(fldPath.Child("name"), plugin.Name, sets.List(registered)))
		case seen.Has(plugin.Name):
			errs = append(errs, field.Duplicate(fldPath.Child("name"), plugin.Name))
		}
		seen.Insert(plugin.Name)
		if plugin.Path == "" {
			continue
		}
		if plugin.Configuration != nil {
			errs = append(errs, field.Invalid(fldPath.Child("path"), plugin.Path, "cannot be set with configuration"))
			continue
		}
		file := plugin.Path
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if _, err := os.ReadFile(file); err != nil {
			errs = append(errs, field.Invalid(fldPath.Child("path"), plugin.Path, err.Error()))
		}
	}
	return errs
}

// DecodeConfiguration decodes YAML or JSON into a configuration of the given
// kind. Another apiVersion or kind, and fields that are unknown, doubled or of
// another case are errors.
func DecodeConfiguration(data []byte, kind schema.GroupVersionKind, into any) error {
	data, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	var got metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &got); err != nil {
		return err
	}
	want := metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
	if got != want {
		return fmt.Errorf("apiVersion and kind must be %q and %q, not %q and %q", want.APIVersion, want.Kind, got.APIVersion, got.Kind)
	}
	strictErrs, err := json.UnmarshalStrict(data, into)
	return errors.Join(append(strictErrs, err)...)
}
