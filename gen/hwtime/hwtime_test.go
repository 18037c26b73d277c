//go:build linux

package hwtime

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loam/internal/netns"
)

func TestMain(m *testing.M) { netns.Main(m) }

// fakeDevice has a clock with an arbitrary origin, which runs slower than the system's by one part in 20,000.
type fakeDevice struct {
	now     int64 // system time, in nanoseconds
	filters uint32
	clock   bool
	set     unix.HwTstampConfig
	fail    map[string]error
	samples int
	closed  bool
}

const began = int64(1_700_000_000_000_000_000)

func (f *fakeDevice) device(system int64) int64 { return 77 + (system-began)*19_999/20_000 }

func (f *fakeDevice) abilities() (uint32, bool, error) {
	return f.filters, f.clock, f.fail["abilities"]
}
func (f *fakeDevice) config() (unix.HwTstampConfig, error) { return f.set, f.fail["config"] }

func (f *fakeDevice) configure(c unix.HwTstampConfig) error {
	f.set = c
	return f.fail["configure"]
}

func (f *fakeDevice) sample() (Sample, error) {
	f.samples++
	return Sample{f.device(f.now), f.now}, f.fail["sample"]
}

func (f *fakeDevice) close() error {
	f.closed = true
	return nil
}

func newFake() *fakeDevice {
	return &fakeDevice{
		now: began, filters: 1 << unix.HWTSTAMP_FILTER_ALL, clock: true, fail: map[string]error{},
		set: unix.HwTstampConfig{Tx_type: 1, Rx_filter: 12},
	}
}

// Device times are converted to system times, whatever the offset and drift of the device's clock, with one reading
// per second.
func TestTimesAreConverted(t *testing.T) {
	f := newFake()
	s, err := start(f)
	if err != nil {
		t.Fatal(err)
	}
	if f.set != (unix.HwTstampConfig{Tx_type: 1, Rx_filter: unix.HWTSTAMP_FILTER_ALL}) {
		t.Errorf("%+v is set", f.set)
	}
	for range 3000 { // 30 s of simulated time
		f.now += int64(10 * time.Millisecond)
		got := s.System(f.device(f.now))
		off := got - f.now
		// Before the second sample the drift is not known. At 50 parts per million, that is an error of up to 50 µs in
		// the first second.
		bound := int64(50 * time.Microsecond)
		if f.now-began > int64(1100*time.Millisecond) {
			bound = 1000
		}
		if off > bound || off < -bound {
			t.Fatalf("%v after the beginning it is off by %d ns", time.Duration(f.now-began), off)
		}
	}
	if f.samples < 25 || f.samples > 32 {
		t.Errorf("%d readings in 30 s", f.samples)
	}
	// Conversion continues if the clock cannot be read, and after one of the clocks was set.
	f.fail["sample"] = errors.New("gone")
	f.now += int64(5 * time.Second)
	if off := s.System(f.device(f.now)) - f.now; off > 2000 || off < -2000 {
		t.Errorf("without readings it is off by %d ns after 5 s", off)
	}
	delete(f.fail, "sample")
	before := f.now
	f.now += int64(time.Hour)
	s.clock.Add(Sample{f.device(before) + int64(2*time.Second), f.now})
	if got := s.clock.System(f.device(before) + int64(2*time.Second) + 1000); got != f.now+1000 {
		t.Errorf("when the clock was set: %d, want %d", got, f.now+1000)
	}
	if err := s.Close(); err != nil || f.set != (unix.HwTstampConfig{Tx_type: 1, Rx_filter: 12}) || !f.closed {
		t.Errorf("%v, %+v is left", err, f.set)
	}
}

// A device that cannot time stamp frames is left unchanged. If enabling fails halfway, the device's configuration is
// restored.
func TestDevicesWithoutTimestamps(t *testing.T) {
	for what, change := range map[string]func(*fakeDevice){
		"some frames only": func(f *fakeDevice) { f.filters = 1 << 12 },
		"no clock":         func(f *fakeDevice) { f.clock = false },
	} {
		f := newFake()
		change(f)
		if _, err := start(f); !errors.Is(err, ErrNone) || f.set.Rx_filter != 12 {
			t.Errorf("%s: %v, %+v", what, err, f.set)
		}
	}
	broken := errors.New("broken")
	for _, what := range []string{"abilities", "config", "configure", "sample"} {
		f := newFake()
		f.fail[what] = broken
		if _, err := start(f); !errors.Is(err, broken) || what != "configure" && f.set.Rx_filter != 12 {
			t.Errorf("%s fails: %v, %+v", what, err, f.set)
		}
	}
}

// Of several readings of the two clocks, closest returns the one that took the shortest time, with the midpoint of the
// system's times.
func TestClosestReading(t *testing.T) {
	at := func(ns uint32) unix.PtpClockTime { return unix.PtpClockTime{Sec: 5, Nsec: ns} }
	got := closest([][3]unix.PtpClockTime{{at(0), at(70), at(900)}, {at(1000), at(77), at(1100)}, {at(2000), at(90), at(2500)}})
	if want := (Sample{5_000_000_077, 5_000_001_050}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A virtual interface has no clock, and Open returns ErrNone.
func TestVirtualInterfaces(t *testing.T) {
	a, _ := netns.Veth(t, 1500, 1)
	if _, err := Open(a); !errors.Is(err, ErrNone) || !strings.HasPrefix(err.Error(), a) {
		t.Error(err)
	}
	if _, err := Open("nosuch0"); err == nil || errors.Is(err, ErrNone) {
		t.Error(err)
	}
}
