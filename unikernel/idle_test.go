package unikernel

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loam/usernet"
)

// BenchmarkIdle measures the CPU time of the host that a machine uses while its program waits for a connection, as a
// percentage of one CPU. The target is below 2 %. With LOAM_IDLE_SECONDS (make idle) it measures every kind of machine;
// the variable is the length of each measurement, and of the pause before it, in seconds.
func BenchmarkIdle(b *testing.B) {
	models, counts := []string{"q35", "microvm"}, []int{1, 2, 4}
	seconds, err := strconv.Atoi(os.Getenv("LOAM_IDLE_SECONDS"))
	if err != nil {
		models, counts, seconds = models[:1], counts[1:2], 1
	}
	watched := time.Duration(seconds) * time.Second
	for _, model := range models {
		for _, cpus := range counts {
			b.Run(fmt.Sprintf("%s/%d", model, cpus), func(b *testing.B) {
				qemu := idleMachine(b, MachineConfig{Model: model, CPUs: cpus})
				time.Sleep(watched)
				before, begin := cpuTime(b, qemu), time.Now()
				for b.Loop() {
					time.Sleep(watched)
				}
				share := float64(cpuTime(b, qemu)-before) / float64(time.Since(begin))
				b.ReportMetric(100*share, "%CPU")
				b.ReportMetric(0, "ns/op") // the time per operation has no meaning here
			})
		}
	}
}

// idleMachine starts a machine that ends with the benchmark. It returns the process ID of QEMU once the
// program listens.
func idleMachine(b *testing.B, m MachineConfig) (qemu string) {
	host := freePort(b)
	ended := make(chan error, 1) // the goroutine sends once
	go func() {
		_, err := Run(b.Context(), Options{
			Target:  Target{Args: []string{"./testdata/guest/clock"}, Platform: Machine},
			Args:    []string{"idle"},
			Machine: m,
			Network: Network{Kind: UserNetwork, Forwards: []usernet.Forward{
				{Proto: "tcp", Host: host, Guest: netip.AddrPortFrom(netip.Addr{}, 7)},
			}},
		})
		ended <- err
	}()
	c := connect(b, host, ended)
	b.Cleanup(func() {
		c.Close()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for pid := range strings.FieldsSeq(string(children)) {
			if isQEMU(pid) {
				return pid
			}
		}
	}
	b.Fatal("there is no QEMU")
	return ""
}

// cpuTime returns the CPU time of a process on all CPUs: proc(5), /proc/PID/stat.
func cpuTime(b *testing.B, pid string) time.Duration {
	const user, system, tick = 11, 12, 10 * time.Millisecond // indices of fields, counted after the command's name
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	_, behind, ok := strings.Cut(string(stat), ") ")
	fields := strings.Fields(behind)
	if err != nil || !ok || len(fields) <= system {
		b.Fatalf("%q, %v", stat, err)
	}
	u, err1 := strconv.Atoi(fields[user])
	s, err2 := strconv.Atoi(fields[system])
	if err1 != nil || err2 != nil {
		b.Fatalf("%q", stat)
	}
	return time.Duration(u+s) * tick
}
