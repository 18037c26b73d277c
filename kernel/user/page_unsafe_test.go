package user

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"unsafe"

	"loam/arch/amd64"
	"loam/kernel"
)

// On a host there is neither Loam's kernel nor ring 3. These functions replace those that Loam adds to
// package runtime when it builds a guest.

//go:linkname hostCall runtime.loamCall
func hostCall(number, _, _ uintptr) (result, errno uintptr) {
	if number == kernel.CallTakeTable && len(reserve) > 0 {
		pa := reserve[0]
		reserve = reserve[1:]
		return uintptr(pa), 0
	}
	return 0, 1
}

// reserve are the physical addresses of the pages that the kernel has reserved for page tables.
var reserve []uint64

//go:linkname hostServeInterrupts runtime.loamServeInterrupts
func hostServeInterrupts() { served++ }

// served is the number of calls of serveInterrupts.
var served int

//go:linkname hostEnter loam/kernel/user.enter
func hostEnter(*page) uint64 { return 0 }

//go:linkname hostSaveOwn loam/kernel/user.saveOwn
func hostSaveOwn(*page) uint32 { return 0 }

//go:linkname hostForget loam/kernel/user.forget
func hostForget(_ *uint64, _, start, count uint64) uint64 {
	flushes = append(flushes, [2]uint64{start, count})
	if flushed := whenFlushed; flushed != nil {
		flushed()
	}
	return 0
}

// flushes are the start and the number of pages of each flush; the number 0 means all translations.
var flushes [][2]uint64

// whenFlushed is called in each flush, unless it is nil.
var whenFlushed func()

//go:linkname hostCopyDirect loam/kernel/user.copyDirect
func hostCopyDirect(_ uint64, _, _, _ uintptr) bool { return false }

//go:linkname hostTimestamp loam/arch/amd64.Timestamp
func hostTimestamp() uint64 { return 0 }

// The entry code has the correct offsets of a context's fields.
func TestOffsets(t *testing.T) {
	defined := map[string]uint64{}
	for _, file := range []string{"loam_user_amd64.s", "loam_isolated_amd64.s"} {
		source, err := os.ReadFile("../../unikernel/overlay/_vm/runtime/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^#define (page_\w+)\s+(\d+)$`).FindAllSubmatch(source, -1) {
			n, _ := strconv.ParseUint(string(m[2]), 10, 64)
			if before, ok := defined[string(m[1])]; ok && before != n {
				t.Errorf("%s is defined twice: %d and %d", m[1], before, n)
			}
			defined[string(m[1])] = n
		}
	}
	var p page
	for name, want := range map[string]uintptr{
		"page_fault":  unsafe.Offsetof(p.fault),
		"page_fsBase": unsafe.Offsetof(p.fsBase),
		"page_gsBase": unsafe.Offsetof(p.gsBase),
		"page_root":   unsafe.Offsetof(p.root),
		"page_active": unsafe.Offsetof(p.active),
		"page_stop":   unsafe.Offsetof(p.stop),
		"page_cpu":    unsafe.Offsetof(p.cpu),
		"page_live":   unsafe.Offsetof(p.live),
		"page_mxcsr":  unsafe.Offsetof(p.mxcsr),
		"page_vector": unsafe.Offsetof(p.vector),
		"page_wide":   unsafe.Offsetof(p.wide),

		"page_watched": unsafe.Offsetof(p.watched),
		"page_placed":  unsafe.Offsetof(p.placed),
		"page_second":  unsafe.Offsetof(p.second),
		"page_used":    unsafe.Offsetof(p.used),
		"page_seat":    unsafe.Offsetof(p.seat),
		"page_debug":   unsafe.Offsetof(p.debug),
		"page_control": unsafe.Offsetof(p.control),
		"page_status":  unsafe.Offsetof(p.status),
	} {
		if got, ok := defined[name]; !ok || got != uint64(want) {
			t.Errorf("%s is %d, and %d in the code", name, want, got)
		}
		delete(defined, name)
	}
	if len(defined) > 0 {
		t.Errorf("the code has more: %v", defined)
	}
	if unsafe.Offsetof(p.gsBase) != kernel.ContextGSBase || unsafe.Offsetof(p.live) != kernel.ContextLive || unsafe.Offsetof(p.vector) != kernel.ContextVector {
		t.Error("the kernel has other offsets")
	}
	if size := unsafe.Sizeof(p); size != amd64.PageSize || unsafe.Offsetof(p.vector)%64 != 0 {
		t.Errorf("a context has %d bytes; its vector registers begin at %d", size, unsafe.Offsetof(p.vector))
	}
}
