//go:build linux && !race

package servers

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The same servers in virtual machines. -parallel sets the number of machines that run at the same time, of any kind,
// so that the full test finishes within a day. It checks that there are no errors and that memory does not grow; the
// rates mean nothing.

var (
	machines = flag.String("machines", "q35:2,microvm:1", "`MODEL:CPUS`, with commas between: where TestMachines runs the servers; all is every one")
	record   = flag.String("record", "", "add what TestMachines finds to this `file`, leave out what it has, and write docs/servers-vm.md")
)

// allMachines is the meaning of -machines all.
const allMachines = "q35:1,q35:2,q35:4,microvm:1,microvm:2,microvm:4"

const machineReport = "../../docs/servers-vm.md"

// finding is the result of one server in one machine: a line of the file -record and of docs/servers-vm.md.
type finding struct {
	Machine, Server, Load, Unit string
	Seconds                     int
	Rate                        float64
	Errors                      int
	Grown                       int // growth of QEMU's memory, in KiB: at the end, compared with after the first minute
	Resident                    int // QEMU's memory at the end, in KiB
}

// inMachines returns the servers that TestMachines runs: those that are quick to build, or all that
// have a load for machines.
func inMachines(t *testing.T) []server {
	list := everyServer(t)
	return slices.DeleteFunc(list, func(s server) bool {
		return len(s.machineLoad) == 0 || !*all && s.name != ownServer && s.name != "go-httpbin"
	})
}

// Every server serves under load in a virtual machine without an error, and exits on Ctrl-C.
func TestMachines(t *testing.T) {
	need(t, "qemu-system-x86_64")
	loam := buildLoam(t)
	r := readRecord(t)
	names := *machines
	if names == "all" {
		names = allMachines
	}
	for _, s := range inMachines(t) {
		s.build(t, loam)
	}
	for _, machine := range strings.Split(names, ",") {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			for _, s := range inMachines(t) {
				if r.has(machine, s.name) {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.testMachine(t, loam, machine, r)
				})
			}
		})
	}
}

// build builds a server once, so that machines that start it at the same time find it in the cache of
// go build. Otherwise the build would take up the time in which the server must start.
func (s *server) build(t *testing.T, loam string) {
	t.Helper()
	out, err := exec.Command(loam, "build", "-o", filepath.Join(t.TempDir(), "program"), s.pkg).CombinedOutput()
	if err != nil {
		t.Fatalf("loam build %s: %v\n%s", s.pkg, err, out)
	}
}

func (s *server) testMachine(t *testing.T, loam, machine string, r *recorder) {
	d := time.Duration(*seconds) * time.Second
	p := s.startInMachine(t, loam, machine)
	var found []finding
	for _, l := range s.machineLoad {
		f := p.measure(t, l, d)
		t.Logf("%s, %s: %.0f %s, %d errors; memory grew by %d KiB", s.what, l.name, f.rate, f.unit, f.errors, f.grown)
		if f.errors > 0 || f.rate <= 0 {
			p.quit(t)
			t.Fatalf("%s, %s: %d errors in %v:\n%s\n%s", s.what, l.name, f.errors, d, f.detail, p.log)
		}
		found = append(found, finding{
			Machine: machine, Server: s.name, Load: s.what + ", " + l.name, Unit: f.unit, Seconds: *seconds,
			Rate: f.rate, Errors: f.errors, Grown: f.grown, Resident: p.resident(),
		})
	}
	p.interrupt(t)
	if !t.Failed() {
		r.add(t, found)
	}
}

// startInMachine boots a server. machine is MODEL:CPUS.
func (s *server) startInMachine(t *testing.T, loam, machine string) *process {
	model, cpus, ok := strings.Cut(machine, ":")
	if _, err := strconv.Atoi(cpus); !ok || err != nil {
		t.Fatalf("-machines: %q is not MODEL:CPUS", machine)
	}
	return s.startOnLoam(t, loam, "--platform", "vm", "--machine", model, "--cpus", cpus, "-m", "1G")
}

// recorder keeps findings in the file -record, so that an interrupted run can be continued. Without a
// file, nothing is kept.
type recorder struct {
	mu    sync.Mutex
	found []finding
}

func readRecord(t *testing.T) *recorder {
	r := &recorder{}
	if *record == "" {
		return r
	}
	f, err := os.Open(*record)
	if os.IsNotExist(err) {
		return r
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var one finding
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", *record, err)
		}
		r.found = append(r.found, one)
	}
	if err := writeMachineReport(r.found); err != nil {
		t.Error(err)
	}
	return r
}

// has reports whether a server has been run for at least the duration of this run.
func (r *recorder) has(machine, server string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.found, func(f finding) bool {
		return f.Machine == machine && f.Server == server && f.Seconds >= *seconds
	})
}

// add records findings and writes the table.
func (r *recorder) add(t *testing.T, found []finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, found...)
	if *record == "" {
		return
	}
	f, err := os.OpenFile(*record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, one := range found {
		if err := json.NewEncoder(f).Encode(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeMachineReport(r.found); err != nil {
		t.Error(err)
	}
}

func writeMachineReport(found []finding) error {
	var b strings.Builder
	version, _ := exec.Command("go", "env", "GOVERSION").Output()
	fmt.Fprintf(&b, `# Well-known servers in virtual machines

This table is made by %s with %s, on %d CPUs that the machines and the clients share. QEMU
emulates every instruction (-accel tcg), and up to fifteen of these machines run at the same time. So the rates
show only that the servers worked. The important results are the number of errors that the clients report, and the growth of
QEMU's memory between the end of the first minute and the end of the load. Every server ended with exit status 0 after Ctrl-C.
[servers.md](servers.md) names the modules of the servers.

| machine type, CPUs | server | load | duration, s | rate | errors | QEMU's memory, MiB | growth after the first minute, MiB |
|---|---|---|--:|--:|--:|--:|--:|
`, "`make vmservers`", strings.TrimSpace(string(version)), runtime.NumCPU())
	servers := append([]server{{name: ownServer}}, servers...)
	order := func(f finding) (place [2]int) {
		place[0] = slices.Index(strings.Split(allMachines, ","), f.Machine)
		place[1] = slices.IndexFunc(servers, func(s server) bool { return s.name == f.Server })
		return place
	}
	for _, f := range slices.SortedFunc(slices.Values(found), func(a, b finding) int {
		x, y := order(a), order(b)
		return slices.Compare(x[:], y[:])
	}) {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %.0f %s | %d | %d | %.1f |\n",
			strings.ReplaceAll(f.Machine, ":", ", "), f.Server, f.Load, f.Seconds, f.Rate, f.Unit, f.Errors, f.Resident>>10, float64(f.Grown)/1024)
	}
	return os.WriteFile(machineReport, []byte(b.String()), 0o644)
}
