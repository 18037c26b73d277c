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

// The entry code has the correct offsets of the fields of cpu and Frame.
func TestOffsets(t *testing.T) {
	defined := map[string]uint64{}
	for _, file := range []string{"loam_entry_amd64.s", "loam_user_amd64.s", "loam_isolated_amd64.s"} {
		source, err := os.ReadFile("../unikernel/overlay/_vm/runtime/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^#define (\w+)\s+\(?(\w+)(?:\+(0x[0-9a-f]+)\))?$`).FindAllSubmatch(source, -1) {
			n, _ := strconv.ParseUint(string(m[2]), 0, 64)
			more, _ := strconv.ParseUint(string(m[3]), 0, 64)
			name := string(m[1])
			if before, ok := defined[name]; ok && before != n+more {
				t.Errorf("%s is defined twice: %d and %d", name, before, n+more)
			}
			defined[name] = n + more
		}
	}
	var k core
	var c cpu
	var f amd64.Frame
	var a entryArea
	if unsafe.Sizeof(a) != amd64.PageSize {
		t.Errorf("an entryArea has %d bytes", unsafe.Sizeof(a))
	}
	clock := unsafe.Offsetof(k.clock)
	for name, want := range map[string]uintptr{
		"core_root":      unsafe.Offsetof(k.tables) + unsafe.Offsetof(k.tables.Root),
		"clock_sequence": clock,
		"clock_start":    clock + 8, // the fields of timekeeper.Clock are not exported: see its test of the layout
		"clock_base":     clock + 16,
		"clock_scale":    clock + 24,
		"clock_wall":     clock + unsafe.Offsetof(k.clock.Wall),

		"cpu_frameEnd": unsafe.Offsetof(c.frameEnd),
		"cpu_scratch":  unsafe.Offsetof(c.scratch),
		"cpu_stack":    unsafe.Offsetof(c.stack),
		"cpu_vector":   unsafe.Offsetof(c.vector),
		"cpu_crashEnd": unsafe.Offsetof(c.crashEnd),
		"cpu_ist1":     unsafe.Offsetof(c.task) + amd64.TaskStacks,
		"cpu_claimed":  unsafe.Offsetof(c.claimed),
		"cpu_dozes":    unsafe.Offsetof(c.dozes),
		"cpu_root":     unsafe.Offsetof(c.root),
		"cpu_active":   unsafe.Offsetof(c.active),
		"cpu_fsBase":   unsafe.Offsetof(c.fsBase),
		"cpu_callerSP": unsafe.Offsetof(c.callerSP),
		"cpu_callerBP": unsafe.Offsetof(c.callerBP),
		"cpu_callerG":  unsafe.Offsetof(c.callerG),
		"cpu_user":     unsafe.Offsetof(c.user),
		"cpu_number":   unsafe.Offsetof(c.number),
		"cpu_last":     unsafe.Offsetof(c.last),
		"cpu_copying":  unsafe.Offsetof(c.copying),
		"cpu_area":     unsafe.Offsetof(c.area),
		"area_cpu":     unsafe.Offsetof(a.cpu),
		"area_root":    unsafe.Offsetof(a.root),
		"area_scratch": unsafe.Offsetof(a.scratch),
		"area_exit":    unsafe.Offsetof(a.exit),
		"frame_sp":     unsafe.Offsetof(f.SP),
		"frame_ip":     unsafe.Offsetof(f.IP),
		"frame_cs":     unsafe.Offsetof(f.CS),
		"frame_flags":  unsafe.Offsetof(f.Flags),
		"frame_ss":     unsafe.Offsetof(f.SS),
		"frame_vector": unsafe.Offsetof(f.Vector),
		"frameSize":    amd64.FrameSize,
		"exceptions":   amd64.VectorException,

		"stubCount":  amd64.VectorCount,
		"stubDebug":  amd64.VectorDebug,
		"stubCall":   stubCall,
		"flagResume": amd64.FlagResume,

		"selectorCode":     amd64.CodeSelector,
		"selectorData":     amd64.DataSelector,
		"userCode":         amd64.UserCodeSelector,
		"userData":         amd64.UserDataSelector,
		"flagsUser":        amd64.FlagsUser,
		"flagAccess":       amd64.FlagAlign,
		"flagsAlways":      amd64.FlagFixed | amd64.FlagInterrupt,
		"vectorProtection": amd64.VectorProtection,
		"vectorPage":       amd64.VectorPage,
		"vectorDebug":      amd64.VectorDebug,
		"vectorCall":       amd64.VectorCall,
		"vectorSyscall":    amd64.VectorSyscall,
		"codeUser":         amd64.CodeUser,
		"vectorsAll":       uintptr(vectorsAll),
		"vectorsSSE":       uintptr(vectorsSSE),
		"page_gsBase":      ContextGSBase,
		"page_live":        ContextLive,
		"page_vector":      ContextVector,
	} {
		if got, ok := defined[name]; !ok || got != uint64(want) {
			t.Errorf("%s is %d, and %d in the code", name, want, got)
		}
	}
}

// The files that are added to package runtime use the same numbers for Loam's own system calls as this package.
func TestCallNumbers(t *testing.T) {
	for constant, c := range map[string]struct {
		file string
		want int
	}{
		"loamCallPoll":    {"loam_device.go", CallPoll},
		"loamCallShare":   {"loam_emulation.go", CallShare},
		"loamCallStandIn": {"loam_poller.go", CallStandIn},
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
