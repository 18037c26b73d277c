package load

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"loam/test/bench/subject"
)

// Every load works over a pipe between two Loam stacks and between two gVisor stacks, and returns the samples that it
// documents. The load whose client uses sockets of the kernel is left out.
func TestLoads(t *testing.T) {
	for _, name := range []string{subject.Loam, subject.GVisor} {
		t.Run(name, func(t *testing.T) { testLoads(t, name) })
	}
}

func testLoads(t *testing.T, stack string) {
	counts := func(ns []int) (names []string) {
		for _, n := range ns {
			names = append(names, fmt.Sprint(n))
		}
		return names
	}
	want := map[string][]string{
		BulkSend:    {"CPU s/GB", "Gb/s", "allocs/MB"},
		BulkReceive: {"CPU s/GB", "Gb/s", "allocs/MB"},
		PingPong:    {"p50", "p99"},
		Connect:     {"conns/s"},
		Idle:        {"bytes"},
		Clients:     counts(ClientCounts),
	}
	for name, samples := range want {
		t.Run(name, func(t *testing.T) {
			a, b := hosts(t, stack, name)
			l, err := ByName(name, 50)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Serve(b); err != nil {
				t.Fatal(err)
			}
			got, err := l.Run(a, b.Addr(), 10*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(slices.Values(samples)); !slices.Equal(g, w) {
				t.Errorf("samples are %v, want %v", g, w)
			}
			for sample, v := range got {
				if v <= 0 {
					t.Errorf("%s is %v, want something", sample, v)
				}
			}
		})
	}
}

// hosts returns two stacks on a pipe, or one with its loopback.
func hosts(t *testing.T, stack, load string) (a, b subject.Host) {
	t.Helper()
	s, err := subject.ByName(stack)
	if err != nil {
		t.Fatal(err)
	}
	if load == Clients {
		a, err = s.Loop()
		b = a
	} else {
		a, b, err = s.Pipe(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestUnknownLoad(t *testing.T) {
	if _, err := ByName("juggle", 0); err == nil {
		t.Error("a load that is not there was found")
	}
}

func TestQuantile(t *testing.T) {
	xs := []time.Duration{5, 1, 3, 2, 4}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 3}, {1, 5}} {
		if got := quantile(xs, c.q); got != c.want {
			t.Errorf("quantile %v is %v, want %v", c.q, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %v, want 0", got)
	}
}

// A stack that loses or changes a byte has no throughput.
func TestCheckSeesDamage(t *testing.T) {
	good := slices.Clone(pattern[7 : 7+chunk])
	if err := check(good, 3*chunk+7); err != nil {
		t.Errorf("a piece of the stream: %v", err)
	}
	good[100]++
	if err := check(good, 3*chunk+7); err == nil {
		t.Error("a changed byte was not seen")
	}
	if err := check(pattern[8:8+chunk], 3*chunk+7); err == nil {
		t.Error("a lost byte was not seen")
	}
}

// An upload counts the bytes that the server has read. It fails if the server has read another number of bytes than
// were sent.
func TestUpload(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(n int64) int64
		fails  bool
	}{
		"all bytes":     {func(n int64) int64 { return n }, false},
		"another count": {func(n int64) int64 { return n - 1 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var read int64
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				read, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, c.answer(read))
			}))
			defer server.Close()
			n, took, err := HTTP{Server: netip.MustParseAddrPort(server.Listener.Addr().String())}.Upload(20 * time.Millisecond)
			if (err != nil) != c.fails {
				t.Fatalf("Upload: %v", err)
			}
			if !c.fails && (n == 0 || n != read || took < 20*time.Millisecond) {
				t.Errorf("%d bytes of %d in %v", n, read, took)
			}
		})
	}
}
