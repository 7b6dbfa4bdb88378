package page

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folders returns where the packages of all functions are.
func folders(t *testing.T) map[string]string {
	t.Helper()
	arguments := []string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}
	for _, stage := range stages {
		for _, f := range stage.Functions {
			arguments = append(arguments, f.Package)
		}
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &complaints)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	return dirs
}

// functionsIn returns the names of all functions and methods of a folder.
func functionsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok {
				names = append(names, receiver(f)+f.Name.Name)
			}
		}
	}
	return names
}

// receiver is the type of a method, with a dot.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expression := f.Recv.List[0].Type
	for {
		switch e := expression.(type) {
		case *ast.StarExpr:
			expression = e.X
		case *ast.IndexExpr:
			expression = e.X
		case *ast.Ident:
			return e.Name + "."
		default:
			return "?."
		}
	}
}

func TestStagesAreDoneWhereTheTableSays(t *testing.T) {
	dirs := folders(t)
	names := map[string][]string{}
	for _, stage := range stages {
		if len(stage.Functions) == 0 {
			t.Errorf("%s names no function", stage.Name)
		}
		for _, f := range stage.Functions {
			if names[f.Package] == nil {
				names[f.Package] = functionsIn(t, dirs[f.Package])
			}
			if !slices.Contains(names[f.Package], f.Name) {
				t.Errorf("%s: there is no %s in %s", stage.Name, f.Name, f.Package)
			}
		}
	}
}

// constants returns the values of all constants of a type in a folder.
func constants(t *testing.T, dir, typeName string) (values []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typeName {
				values = append(values, strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
			}
			return true
		})
	}
	return values
}

func TestEachStageIsInTheTableOnce(t *testing.T) {
	want := constants(t, "../apis/pipeline/v1alpha1", "StageName")
	got := make([]string, len(stages))
	for i, stage := range stages {
		got[i] = string(stage.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEachStageIsToldInBothLanguages(t *testing.T) {
	for _, stage := range stages {
		for _, text := range []text{stage.Title, stage.Purpose} {
			if text.EN == "" || text.ZH == "" {
				t.Errorf("%s: got %+v", stage.Name, text)
			}
		}
		if got := strings.Count(stage.Purpose.EN+" ", ". "); got != 2 {
			t.Errorf("%s is told of in %d sentences", stage.Name, got)
		}
		if got := strings.Count(stage.Purpose.ZH, "。"); got != 2 {
			t.Errorf("%s is told of in %d Chinese sentences", stage.Name, got)
		}
	}
}

func TestStagesAreServed(t *testing.T) {
	p, _ := fakePage(t)
	_, content := ask(t, p.URL()+"stages")
	var got []stage
	if err := json.Unmarshal([]byte(content), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stages, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The groups are drawn by name.
func TestTheDrawingKnowsEachGroup(t *testing.T) {
	script, err := os.ReadFile("static/pipeline.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range stages {
		if stage.Group != answers && !strings.Contains(string(script), `"`+string(stage.Group)+`"`) {
			t.Errorf("%s is in the group %s, which is not drawn", stage.Name, stage.Group)
		}
		if stage.Group == answers && !strings.Contains(string(script), `"`+string(stage.Name)+`"`) {
			t.Errorf("%s is not drawn on the way back", stage.Name)
		}
	}
}

// The walk through the code in the documentation names the same places.
func TestTheDocumentationNamesTheFunctions(t *testing.T) {
	content, err := os.ReadFile("../../docs/pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			rows[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[3])
		}
	}
	for _, s := range stages {
		var names []string
		for _, f := range s.Functions {
			names = append(names, "`"+strings.TrimPrefix(f.Package, "github.com/samplecrd/network-apiserver/")+"."+f.Name+"`")
		}
		if want := strings.Join(names, "<br>"); rows[string(s.Name)] != want {
			t.Errorf("%s: docs/pipeline.md says %q, want %q", s.Name, rows[string(s.Name)], want)
		}
	}
}
