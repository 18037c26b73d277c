package call

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"

	"loam/abi/linux"
)

// openFiles returns the descriptors of this process.
func openFiles(t *testing.T) map[int]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]bool{}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		if _, err := os.Lstat("/proc/self/fd/" + e.Name()); err == nil { // ReadDir has closed the descriptor of the folder
			all[fd] = true
		}
	}
	return all
}

// asOnLinux runs a sequence on Linux and on Loam, and compares the outcomes. On Loam it runs for each way in which a caller's
// memory can be accessed.
func asOnLinux(t *testing.T, s *sequence) {
	t.Helper()
	asOnLinuxBy(t, s, newCaller)
}

// asOnLinuxBy does the work of asOnLinux with a function that returns a caller.
func asOnLinuxBy(t *testing.T, s *sequence, newCaller func(t testing.TB, size int) (Caller, *flatMemory)) {
	t.Helper()
	want := onLinux(t, s)
	for _, memory := range []string{"shared", "copied", "copied by a scratch buffer"} {
		c, m := newCaller(t, seqMemory)
		c.Process.Umask(0o22)
		switch memory {
		case "copied":
			m.copies = true
		case "copied by a scratch buffer":
			m.copies, m.scratch = true, make([]byte, Small)
		}
		y := system{memory: m.bytes, base: base}
		y.do = func(number int, a [6]uint64) (uint64, linux.Errno) { return do(c, number, a[:]...) }
		compare(t, memory, s, want, y.run(s))
	}
}

// compare reports the steps whose outcomes differ.
func compare(t *testing.T, memory string, s *sequence, want, got []outcome) {
	t.Helper()
	faults := 0
	for i, w := range want {
		g, st := got[i], s.steps[i]
		problem := ""
		switch {
		case memory == "shared" && g.errno == linux.EFAULT && w.errno != 0: // addresses are checked early
			continue
		case g.errno != w.errno:
			problem = fmt.Sprintf("returns %v (%d), on Linux %v (%d)", g.errno, int64(g.result), w.errno, int64(w.result))
		case g.result&^st.ignore != w.result&^st.ignore:
			problem = fmt.Sprintf("returns %d, on Linux %d", int64(g.result), int64(w.result))
		case !bytes.Equal(g.memory, w.memory):
			at := 0
			for g.memory[at] == w.memory[at] {
				at++
			}
			end := min(at+16, len(g.memory))
			problem = fmt.Sprintf("leaves at %#x %x, on Linux %x", at, g.memory[at:end], w.memory[at:end])
		default:
			continue
		}
		name := "?"
		if r := ByNumber(st.number); r != nil {
			name = r.Name
		}
		t.Errorf("%s memory, step %d: %s%#x %s", memory, i, name, st.args, problem)
		if faults++; faults > 12 || g.errno == w.errno {
			return // later steps may differ because of this one
		}
	}
}
