package kernel

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"loam/arch/amd64"
)

// The entry code knows fields by their offsets.
func TestOffsets(t *testing.T) {
	source, err := os.ReadFile("../unikernel/overlay/_vm/runtime/loam_entry_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)\s+\(?(\d+)(?:\+(0x[0-9a-f]+)\))?$`).FindAllSubmatch(source, -1) {
		n, _ := strconv.ParseUint(string(m[2]), 10, 64)
		more, _ := strconv.ParseUint(string(m[3]), 0, 64)
		defined[string(m[1])] = n + more
	}
	var c cpu
	var f amd64.Frame
	for name, want := range map[string]uintptr{
		"cpu_frameEnd": unsafe.Offsetof(c.frameEnd),
		"cpu_scratch":  unsafe.Offsetof(c.scratch),
		"cpu_stack":    unsafe.Offsetof(c.stack),
		"cpu_vector":   unsafe.Offsetof(c.vector),
		"cpu_crashEnd": unsafe.Offsetof(c.crashEnd),
		"cpu_ist1":     unsafe.Offsetof(c.task) + amd64.TaskStacks,
		"cpu_claimed":  unsafe.Offsetof(c.claimed),
		"cpu_dozes":    unsafe.Offsetof(c.dozes),
		"frame_vector": unsafe.Offsetof(f.Vector),
		"frameSize":    amd64.FrameSize,
		"exceptions":   amd64.VectorException,
	} {
		if got, ok := defined[name]; !ok || got != uint64(want) {
			t.Errorf("%s is %d, and %d in the code", name, want, got)
		}
	}
}

// The runtime's side knows calls by their numbers.
func TestCallNumbers(t *testing.T) {
	for constant, c := range map[string]struct {
		file string
		want int
	}{
		"loamCallPoll":  {"loam_device.go", CallPoll},
		"loamCallShare": {"loam_wake.go", CallShare},
	} {
		source, err := os.ReadFile("../unikernel/overlay/_vm/runtime/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("\nconst %s = %#x\n", constant, c.want); !strings.Contains(string(source), line) {
			t.Errorf("%s does not have %q", c.file, line)
		}
	}
}
