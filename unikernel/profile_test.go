package unikernel

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"loam/usernet"
)

// The profiles that a running program serves with net/http/pprof are as useful on each platform as on Linux: the
// busiest function is at the top.
func TestProfiles(t *testing.T) {
	for name, o := range map[string]Options{
		"process":         {},
		"machine, 1 CPU":  {Target: Target{Platform: Machine}, Machine: MachineConfig{CPUs: 1}},
		"machine, 2 CPUs": {Target: Target{Platform: Machine}, Machine: MachineConfig{CPUs: 2}},
	} {
		t.Run(name, func(t *testing.T) { testProfiles(t, o) })
	}
}

func testProfiles(t *testing.T, o Options) {
	url := serving(t, o, "profile")
	cpu := cpuProfile(t, url)
	if share(cpu, "main.hot") < 60 {
		t.Errorf("a busy function has less than 60 %% of the samples:\n%s", cpu)
	}
	heap := pprof(t, url+"heap?gc=1") // gc=1: otherwise the profile shows the state at the last collection
	if share(heap, "main.hoard") < 60 {
		t.Errorf("who keeps the memory has less than 60 %% of it:\n%s", heap)
	}
	if all := string(get(t, url+"goroutine?debug=2")); !regexp.MustCompile(`goroutine \d+ \[chan receive.*\]:\nmain\.wait\(`).MatchString(all) {
		t.Errorf("the goroutine that waits is not among:\n%s", all)
	}
	trace := file(t, get(t, url+"trace?seconds=1"))
	out, err := exec.Command("go", "tool", "trace", "-d=parsed", trace).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "main.hot") {
		t.Errorf("the trace cannot be read, %v: %.2000s", err, out)
	}
}

// cpuProfile returns a profile with enough samples for a stable result. On a busy machine a program may get
// little CPU time.
func cpuProfile(t *testing.T, url string) string {
	t.Helper()
	const enough, longest = 500 * time.Millisecond, 64 // CPU time for a stable result; length in seconds
	for seconds := 2; ; seconds *= 2 {
		top := pprof(t, fmt.Sprint(url, "profile?seconds=", seconds))
		if sampled(top) >= enough || seconds >= longest {
			return top
		}
	}
}

// sampled returns the CPU time that a profile covers, from the output of go tool pprof -top.
func sampled(top string) time.Duration {
	m := regexp.MustCompile(`Total samples = (\S+)`).FindStringSubmatch(top)
	if m == nil {
		return 0
	}
	d, _ := time.ParseDuration(strings.ReplaceAll(m[1], "mins", "m"))
	return d
}

// serving starts a program of testdata that serves HTTP on port 80 and ends with the test. It returns the
// URL of its profiles.
func serving(t *testing.T, o Options, program string) (url string) {
	host := freePort(t)
	o.Target.Args = []string{"./testdata/guest/" + program}
	o.Network = Network{Kind: UserNetwork, Forwards: []usernet.Forward{
		{Proto: "tcp", Host: host, Guest: netip.AddrPortFrom(netip.Addr{}, 80)},
	}}
	ended := make(chan error, 1) // the goroutine that runs the program sends its error once
	go func() {
		_, err := Run(t.Context(), o)
		ended <- err
	}()
	root := "http://" + host.String() + "/"
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get(root + "debug/pprof/")
		if err == nil {
			resp.Body.Close()
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the program has ended: %v", err)
		case <-tick.C:
		}
	}
	t.Cleanup(func() {
		http.Get(root + "quit") // the connection breaks because the program ends
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return root + "debug/pprof/"
}

// get returns a page.
func get(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, resp.Status, err, b)
	}
	return b
}

// file writes data to a temporary file and returns its path.
func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// pprof returns the output of go tool pprof for a profile.
func pprof(t *testing.T, url string) string {
	t.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-top", file(t, get(t, url))).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// share returns a function's own share of all samples, in per cent.
func share(top, function string) float64 {
	m := regexp.MustCompile(`(?m)^\s*\S+\s+([\d.]+)%\s.*\s` + regexp.QuoteMeta(function) + `$`).FindStringSubmatch(top)
	if m == nil {
		return 0
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	return v
}
