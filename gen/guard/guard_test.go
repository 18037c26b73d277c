package guard

import (
	"io/fs"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// An address is public unless it is reserved for private or local use. A pattern is public if it can produce a public
// address.
func TestPublic(t *testing.T) {
	for pattern, want := range map[string]bool{
		"10.0.0.2":                  false,
		"10.0.0.0/8":                false,
		"8.0.0.0/6":                 true, // contains 10.0.0.0/8 and public addresses
		"192.168.1.1-192.168.1.9":   false,
		"192.168.1.1-192.169.0.1":   true,
		"192.168.1.0-192.168.1.9+3": false,
		"10.0.0.1,8.8.8.8":          true,
		"10.0.0.1,127.0.0.1":        false,
		"8.8.8.8":                   true,
		"10.0.0.1+1":                true,
		"random":                    true,
		"random:10.0.0.0/8":         false,
		"2001:db8::1":               false,
		"2600::1":                   true,
		"fe80::/64":                 false,
		"::/0":                      true,
		"0.0.0.0/0":                 true,
		"":                          true,
	} {
		if got := PublicPattern(pattern); got != want {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
	if !Public(netip.MustParsePrefix("1.1.1.1/32")) {
		t.Error("1.1.1.1 is not ours")
	}
}

// A modest rate is allowed to any destination, a higher rate only to addresses that are not public.
func TestCheck(t *testing.T) {
	if err := Check("8.8.8.8", ModestRate); err != nil {
		t.Error(err)
	}
	if err := Check("10.0.0.1", math.Inf(1)); err != nil {
		t.Error(err)
	}
	if err := Check("8.8.8.8", ModestRate+1); err == nil || !strings.Contains(err.Error(), "8.8.8.8 is a public address") {
		t.Error(err)
	}
}

// TestDrop runs Drop in a child process, because it cannot be undone.
func TestDrop(t *testing.T) {
	if os.Getenv("GUARD_TEST_DROP") != "" {
		dropped(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDrop$")
	cmd.Env = append(os.Environ(), "GUARD_TEST_DROP=1")
	if os.Geteuid() != 0 {
		t.Skip("needs root: other users have no privileges to drop")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// dropped calls Drop and checks every thread through a directory that was opened before. Afterwards a
// path to /proc may be inaccessible, if only root can read the root directory.
func dropped(t *testing.T) {
	tasks, err := os.OpenRoot("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	if err := Drop(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 || os.Getegid() == 0 {
		t.Errorf("still user %d of group %d", os.Geteuid(), os.Getegid())
	}
	names, err := fs.Glob(tasks.FS(), "*/status")
	if err != nil || len(names) == 0 {
		t.Fatalf("threads: %v, %v", names, err)
	}
	for _, name := range names {
		status, err := tasks.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []string{"CapEff", "CapPrm"} {
			if !strings.Contains(string(status), set+":\t0000000000000000") {
				t.Errorf("capabilities are left:\n%s", status)
			}
		}
	}
}
