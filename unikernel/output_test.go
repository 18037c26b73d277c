package unikernel

import (
	"path/filepath"
	"reflect"
	"testing"
)

func TestTestOutputs(t *testing.T) {
	outputs, folders := testOutputs([]string{
		"-test.v", "-test.coverprofile=/b/cover.out", "-test.outputdir=/out", "-test.cpuprofile=cpu", "-test.gocoverdir=/b/dir", "x=y",
	}, "/pkg")
	if want := []string{"/b/cover.out", "/out/cpu"}; !reflect.DeepEqual(outputs, want) {
		t.Errorf("outputs %q, want %q", outputs, want)
	}
	if want := []string{"/b/dir", "/b", "/out"}; !reflect.DeepEqual(folders, want) {
		t.Errorf("folders %q, want %q", folders, want)
	}
	if outputs, _ = testOutputs([]string{"-test.trace=t"}, "/pkg"); outputs[0] != "/pkg/t" {
		t.Errorf("without -test.outputdir %q", outputs)
	}
}

// Tests find what lies above their package, up to the module.
func TestAround(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"m/go.mod", "m/testdata/x", "m/a/f.go", "m/a/b/own", "m/other/g.go", "outside"} {
		if err := writeFile(filepath.Join(dir, name), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, name := range []string{"m/a/f.go", "m/go.mod", "m/testdata"} {
		want = append(want, filepath.Join(dir, name))
	}
	if got := around(filepath.Join(dir, "m/a/b")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := around(filepath.Join(dir, "m")); got != nil {
		t.Errorf("the module itself has %q around it", got)
	}
}
