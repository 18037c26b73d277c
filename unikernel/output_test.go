package unikernel

import (
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
