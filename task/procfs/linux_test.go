package procfs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/posix/credential"
)

// onLinux returns a file of this process on Linux.
func onLinux(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sample is a process for these tests.
func sample() *Stat {
	s := &Stat{
		PID: 7, TID: 7, Name: "a b", State: 'S', Threads: 1, Memory: true, Credentials: credential.New(0, 0),
		Affinity: []uint64{3}, TerminalGroup: -1, Parent: 1,
	}
	for i := range s.Limits {
		s.Limits[i] = linux.Rlimit{Cur: infinite, Max: infinite}
	}
	return s
}

// keys returns the words before the colons in a file such as status.
func keys(text string) (all []string) {
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ":")
		all = append(all, name)
	}
	return all
}

// Files have the same fields as on Linux, in the same order. The Linux that runs the test may have additional
// fields, for features that Loam lacks.
func TestFieldsAsLinux(t *testing.T) {
	s := sample()
	behindName := func(text string) int {
		_, rest, _ := strings.Cut(text, ") ") // the name of the program, in parentheses, may contain spaces
		return len(strings.Fields(rest))
	}
	if got, want := behindName(s.stat(true)), behindName(onLinux(t, "stat")); got != want {
		t.Errorf("stat has %d fields behind the name, and %d on Linux", got, want)
	}
	if got, want := len(strings.Fields(s.statm())), len(strings.Fields(onLinux(t, "statm"))); got != want {
		t.Errorf("statm has %d fields, and %d on Linux", got, want)
	}
	for name, text := range map[string]string{
		"status": s.status(), "io": Counts{}.io(), "fdinfo/0": (&Descriptor{}).fdinfo(),
	} {
		want := keys(onLinux(t, name))
		for _, key := range keys(text) {
			i := slices.Index(want, key)
			if i < 0 {
				t.Errorf("%s: Linux has no %q, or earlier", name, key)
				continue
			}
			want = want[i+1:]
		}
	}
	rows := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			all = append(all, line[:26]+line[68:])
		}
		return all
	}
	if got, want := rows(s.limits()), rows(onLinux(t, "limits")); !slices.Equal(got, want) {
		t.Errorf("limits: %q, and on Linux %q", got, want)
	}
}

// A reader that may not trace a process sees no addresses in stat.
func TestStatHidesAddresses(t *testing.T) {
	s := sample()
	s.CodeStart, s.StackStart, s.ArgStart, s.ExitCode = 0x1000, 0x2000, 0x3000, 256
	open, closed := strings.Fields(s.stat(true)), strings.Fields(s.stat(false))
	// Indices of the fields startstack, arg_start and exit_code. They are one larger than in proc(5), counted from 0, because
	// the name of the program contains a space.
	for _, field := range []int{28, 48, 52} {
		if open[field] == "0" || closed[field] != "0" {
			t.Errorf("field %d: %s, and %s for others", field, open[field], closed[field])
		}
	}
	if closed[26] != "1" {
		t.Errorf("startcode is %s for others", closed[26])
	}
}

func TestSetsOfCPUs(t *testing.T) {
	for _, c := range []struct {
		set        []uint64
		mask, list string
	}{
		{[]uint64{1}, "1", "0"},
		{[]uint64{0xb}, "b", "0-1,3"},
		{[]uint64{1 << 40}, "100,00000000", "40"},
		{[]uint64{0xf << 60, 3}, "3,f0000000,00000000", "60-65"},
		{nil, "0", ""},
	} {
		if mask, list := cpuMask(c.set), cpuList(c.set); mask != c.mask || list != c.list {
			t.Errorf("%x: %s %s, want %s %s", c.set, mask, list, c.mask, c.list)
		}
	}
}
