//go:build !race

package unikernel

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"loam/unikernel/overlay"
)

// The other tests build with the installed Go. The tests in this file use releases that the go command downloads, about
// 70 MB each. By default they are the oldest and the newest supported release. LOAM_TEST_RELEASES lists other releases
// (go1.26.3,go1.26.8); the word all means every patch release. A program is booted with each of them. Listed releases
// and the newest one also run more programs.

func TestReleases(t *testing.T) {
	tried := overlay.Tried()
	for _, release := range releases(t) {
		t.Run(release, func(t *testing.T) {
			t.Setenv("GOTOOLCHAIN", release)
			if out, err := exec.Command("go", "version").CombinedOutput(); err != nil {
				t.Skipf("cannot be had: %s", out)
			} else if !strings.Contains(string(out), release+" ") {
				t.Fatalf("the go command is another one: %s", out)
			}
			if out, err := machineCommand(NoNetwork, "early").CombinedOutput(); err != nil || string(out) != "ok\n" {
				t.Errorf("in a machine: %v: %s", err, out)
			}
			if os.Getenv("LOAM_TEST_RELEASES") == "" && release != tried[len(tried)-1] {
				return
			}
			for program, kind := range map[string]NetworkKind{"sockets": NoNetwork, "web": UserNetwork} {
				out, err := guestCommand(kind, program).CombinedOutput()
				if err != nil || string(out) != "ok\n" {
					t.Errorf("%s: %v: %s", program, err, out)
				}
			}
		})
	}
}

// releases returns the releases of Go to test with.
func releases(t *testing.T) []string {
	tried := overlay.Tried()
	ends := tried[0] + "," + tried[len(tried)-1]
	if wanted := cmp.Or(os.Getenv("LOAM_TEST_RELEASES"), ends); wanted != "all" {
		return strings.Split(wanted, ",")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-versions", "golang.org/toolchain").Output()
	if err != nil {
		t.Fatalf("which releases there are: %v", err)
	}
	var all []string
	for version := range strings.FieldsSeq(string(out)) {
		for known := range strings.SplitSeq(overlay.Known(), ", ") {
			release, ours := strings.CutSuffix(strings.TrimPrefix(version, "v0.0.1-"), ".linux-amd64")
			if ours && strings.HasPrefix(release, known+".") {
				all = append(all, release)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no known release in %q", out)
	}
	return all
}
