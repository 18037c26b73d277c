//go:build !race

package unikernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// childPrograms are the programs of this system that testdata/guest/children starts.
var childPrograms = []string{"/bin/sh", "/bin/echo", "/bin/cat", "/bin/sleep", "/bin/true"}

// childrenCommand returns a command that runs the program children in a machine.
func childrenCommand(cpus string, args ...string) *exec.Cmd {
	cmd := machineCommand(NoNetwork, "children", args...)
	cmd.Env = append(cmd.Env, withVolume+"="+strings.Join(childPrograms, ":"), machineCPUs+"="+cpus, "LC_ALL=C")
	return cmd
}

// A Go program in ring 0 starts programs of this system and itself. Its output is the same as on Linux.
func TestChildren(t *testing.T) {
	static := onThisHost(t, "children")
	host := exec.Command(static)
	host.Env = append(os.Environ(), "LC_ALL=C")
	want, err := host.CombinedOutput()
	if err != nil {
		t.Fatalf("on Linux: %v\n%s", err, want)
	}
	for _, cpus := range []string{"1", "2"} {
		got, err := childrenCommand(cpus).CombinedOutput()
		if err != nil {
			t.Errorf("%s CPUs: %v", cpus, err)
		}
		compareSections(t, cpus+" CPUs", string(got), string(want))
	}
}

// compareSections compares outputs whose parts begin with lines "# NAME".
func compareSections(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n# "), strings.Split(want, "\n# ")
	for i, section := range b {
		if i >= len(a) {
			t.Errorf("%s: no section %s", what, section)
		} else if a[i] != section {
			t.Errorf("%s:\n%s\nwant\n%s", what, a[i], section)
		}
	}
}

// A program that starts no other program is linked without package children, and Loam does not build it a second time
// for ring 3.
func TestChildrenAreLinkedOnDemand(t *testing.T) {
	for program, want := range map[string]bool{"once": false, "children": true} {
		p, err := NewPlan(t.Context(), Target{Args: []string{"./testdata/guest/" + program}, Platform: Machine})
		if err == nil {
			err = p.Build(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := defines(p.Program, guestModule+childrenPackage+".start"); got != want || err != nil {
			t.Errorf("%s is linked with children: %v, %v", program, got, err)
		}
		if _, err := os.Stat(p.plain()); (err == nil) != want {
			t.Errorf("the plain build of %s: %v", program, err)
		}
	}
}

// A file of -v that is a program brings its interpreter and libraries, unless another volume has them.
func TestVolumesBringLibraries(t *testing.T) {
	names := func(all []Volume) (names []string) {
		for _, v := range all {
			names = append(names, v.Guest)
		}
		return names
	}
	got := strings.Join(names(withLibraries([]Volume{{Host: "/bin/cat", Guest: "/bin/cat"}})), " ")
	if !strings.HasPrefix(got, "/bin/cat ") || !strings.Contains(got, "/ld-linux-x86-64.so.2") || !strings.Contains(got, "/libc.so.6") {
		t.Error(got)
	}
	with := []Volume{{Host: "/bin/cat", Guest: "/bin/cat"}, {Host: "/lib", Guest: "/lib"}, {Host: "/lib64", Guest: "/lib64"}}
	if got := names(withLibraries(with)); len(got) != len(with) {
		t.Error(got)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := names(withLibraries([]Volume{{Host: text, Guest: "/text"}, {Host: "/etc", Guest: "/x"}})); len(got) != 2 {
		t.Error(got)
	}
}
