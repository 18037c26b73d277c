package task

import (
	"testing"

	"loam/arch/amd64"
	"loam/task/signal"
)

// A fault with the privileges of ring 0 on a page that a store must first copy is resolved. If the page permits the access already,
// the same fault follows for ever, so the thread gets SIGSEGV.
func TestHopelessFault(t *testing.T) {
	const present, write = 1 << 0, 1 << 1
	const at = dataAt + 0x2000
	resolved := false
	status := run(t, func(u *user) {
		u.load32(at) // maps the zero page
		for range 2 {
			u.address, u.frame.Vector, u.frame.Code, u.frame.IP = at+4, amd64.VectorPage, present|write, textAt
			u.stop(Fault)
			resolved = true
		}
	})
	is(t, "status", int64(status), int64(signal.Segmentation))
	if !resolved {
		t.Error("the first fault was not resolved")
	}
}
