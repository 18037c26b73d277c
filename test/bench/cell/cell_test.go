package cell

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"loam/test/bench/load"
	"loam/test/bench/subject"
)

// The processes of a measurement (a cell) run the program of this test: TestMain calls Main.
func TestMain(m *testing.M) {
	if Main() {
		return
	}
	os.Exit(m.Run())
}

func TestCells(t *testing.T) {
	for _, spec := range []Spec{
		{Subject: subject.Loam, Place: Pipe, Load: load.PingPong, Procs: 1},
		{Subject: subject.Loam, Place: PipeGSO, Load: load.BulkSend},
		{Subject: subject.Loam, Place: Tap, Load: load.BulkSend},
		{Subject: subject.Loam, Place: Tap, Load: load.BulkReceive},
		{Subject: subject.Loam, Place: Tap, Load: load.Connect, Far: true},
		{Subject: subject.Loam, Place: Tap, Load: load.Echo, Far: true},
		{Subject: subject.LoamPacket, Place: Veth, Load: load.BulkSend},
		{Subject: subject.LoamRing, Place: Veth, Load: load.BulkReceive},
		{Subject: subject.LoamXDP, Place: Veth, Load: load.BulkSend},
		{Subject: subject.LoamXDP, Place: Veth, Load: load.BulkReceive},
		{Subject: subject.GVisor, Place: Pipe, Load: load.PingPong, Procs: 1},
		{Subject: subject.GVisor, Place: PipeGSO, Load: load.BulkSend},
		{Subject: subject.GVisor, Place: Tap, Load: load.BulkSend},
		{Subject: subject.GVisorVnet, Place: Tap, Load: load.BulkReceive},
		{Subject: subject.GVisorVnet, Place: Tap, Load: load.BulkSend},
		{Subject: subject.GVisor, Place: Tap, Load: load.Connect, Far: true},
		{Subject: subject.GVisor, Place: Tap, Load: load.Echo, Far: true},
		{Subject: subject.Linux, Place: Pipe, Load: load.PingPong},
		{Subject: subject.Linux, Place: Tap, Load: load.BulkSend},
		{Subject: subject.Linux, Place: Loop, Load: load.Clients},
	} {
		t.Run(strings.Join([]string{spec.Subject, string(spec.Place), spec.Load}, " "), func(t *testing.T) {
			spec.Span = 20 * time.Millisecond
			samples, err := Run(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if len(samples) == 0 {
				t.Error("no samples")
			}
		})
	}
}

// A measurement (a cell) leaves the network namespace of its caller unchanged.
func TestNothingStaysBehind(t *testing.T) {
	before := devices(t)
	spec := Spec{Subject: subject.GVisor, Place: Tap, Load: load.PingPong, Span: 10 * time.Millisecond}
	if _, err := Run(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if after := devices(t); after != before {
		t.Errorf("devices are %s, were %s", after, before)
	}
}

func devices(t *testing.T) string {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// An error in a process of a measurement is returned to the process that started it, with its reason.
func TestErrorsAreReturned(t *testing.T) {
	for want, spec := range map[string]Spec{
		"no subject": {Subject: "nobody", Place: Pipe, Load: load.PingPong},
		"no load":    {Subject: subject.GVisor, Place: Pipe, Load: "juggle"},
		"no place":   {Subject: subject.GVisor, Place: "nowhere", Load: load.PingPong},
	} {
		if _, err := Run(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}
