package kernel

import (
	"slices"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/boot"
	"loam/kernel/thread"
	"loam/kernel/timekeeper"
)

// Clocks: the calls that read them, their calibration, and the wall clock.

// near reports whether two times differ by less than 100 µs, which a few calls on the model take.
func near(a, b int64) bool { return a-b < 100e3 && b-a < 100e3 }

// readTime returns the time that is stored as a struct timespec.
func (u user) readTime(addr uint64) int64 {
	u.t.Helper()
	return int64(u.read(addr)*1e9 + u.read(addr+8))
}

// The clocks of clock_gettime(2) count from the start or from 1970. Clocks that do not exist are refused.
func TestClocks(t *testing.T) {
	const wall = 1_700_000_000e9
	u := newUser(t)
	u.kernel().clock.SetWall(wall)
	at := u.memory(1, protRead|protWrite)
	u.pass(3e9 + 2e6)
	for id, base := range map[int64]int64{
		realtime: wall, realtimeCoarse: wall, realtimeAlarm: wall, tai: wall,
		monotonic: 0, rawMonotonic: 0, monotonicCoarse: 0, boottime: 0, bootAlarm: 0,
	} {
		resolution := int64(1)
		if id == realtimeCoarse || id == monotonicCoarse {
			resolution = 4e6
		}
		u.want(0, linux.SYS_CLOCK_GETTIME, uint64(id), at)
		want := base + u.now()
		want -= want % resolution
		if got := u.readTime(at); !near(got, want) || got%resolution != 0 {
			t.Errorf("clock %d: %d, want %d", id, got, want)
		}
		u.want(0, linux.SYS_CLOCK_GETRES, uint64(id), at)
		if got := u.readTime(at); got != resolution {
			t.Errorf("clock %d has a resolution of %d ns", id, got)
		}
		u.want(0, linux.SYS_CLOCK_GETRES, uint64(id), 0)
	}
	for _, id := range []int64{10, 12, 16, 1 << 30, -1, -5, -9, -100} { // -9 is the clock of another process
		u.fails(linux.EINVAL, linux.SYS_CLOCK_GETTIME, uint64(id), at)
		u.fails(linux.EINVAL, linux.SYS_CLOCK_GETRES, uint64(id), at)
	}
}

// gettimeofday(2), time(2) and times(2) agree with the clocks.
func TestTimeCalls(t *testing.T) {
	const wall = 1_700_000_000e9
	u := newUser(t)
	u.kernel().clock.SetWall(wall)
	at := u.memory(1, protRead|protWrite)
	u.pass(7_654_321_000)
	u.write(at+32, 1<<64-1)
	u.want(0, linux.SYS_GETTIMEOFDAY, at, at+32)
	if got := int64(u.read(at)*1e9 + u.read(at+8)*1e3); !near(got, wall+u.now()) {
		t.Errorf("gettimeofday: %d", got)
	}
	if zone := u.read(at + 32); zone != 0 {
		t.Errorf("the time zone is %#x, want UTC", zone)
	}
	u.want(0, linux.SYS_GETTIMEOFDAY, 0, 0)
	seconds := int64(wall/1e9) + u.now()/1e9
	u.want(seconds, linux.SYS_TIME, 0)
	u.want(seconds, linux.SYS_TIME, at)
	if got := u.read(at); got != uint64(seconds) {
		t.Errorf("time stores %d", got)
	}
	u.write(at+8, 1)
	u.write(at+24, 1)
	u.want(u.now()/1e7, linux.SYS_TIMES, at)
	u.want(u.now()/1e7, linux.SYS_TIMES, 0)
	if user, system, children := u.read(at), u.read(at+8), u.read(at+24); user != uint64(u.now()/1e7) || system != 0 || children != 0 {
		t.Errorf("times: %d, %d, %d", user, system, children)
	}
}

// The CPU clock of a thread counts while the thread runs. The CPU clock of the process counts while any thread runs. Neither counts
// while the CPU is idle.
func TestProcessorClocks(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	read := func(id int64) int64 {
		u.want(0, linux.SYS_CLOCK_GETTIME, uint64(id), at)
		return u.readTime(at)
	}
	const ms = 1_000_000
	first, start := u.cpu.current, read(processTime)
	u.pass(3 * ms)
	if got := read(threadTime) - start; !near(got, 3*ms) {
		t.Errorf("the thread has used %d ns, want 3 ms", got)
	}
	second := u.clone()
	u.yields(1)
	u.current(second)
	u.pass(5 * ms)
	for _, id := range []int64{threadTime, -2, -3, -4} { // negative: the calling thread
		if got := read(id); !near(got, 5*ms) {
			t.Errorf("clock %d: the second thread has used %d ns, want 5 ms", id, got)
		}
	}
	u.timespec(at, 0, 40*ms)
	u.call(linux.SYS_NANOSLEEP, at)
	u.current(first)
	u.call(linux.SYS_NANOSLEEP, at)
	u.current(thread.None)
	u.idles()
	for _, id := range []int64{processTime, -6, -7, -8} { // negative: the calling process
		if got := read(id) - start; !near(got, 8*ms) {
			t.Errorf("clock %d: the threads have used %d ns, want 8 ms", id, got)
		}
	}
	for who, want := range map[int64]int64{0: 8 * ms, 1: 0, -1: 0} {
		u.want(0, linux.SYS_GETRUSAGE, uint64(who), at)
		got := int64(u.read(at)*1e9 + u.read(at+8)*1e3)
		if who == 1 {
			want = 5 * ms
			if u.cpu.current == first {
				want = start + 3*ms
			}
		} else if who == 0 {
			got -= start
		}
		if !near(got, want) {
			t.Errorf("getrusage of %d: %d ns, want %d", who, got, want)
		}
		if system := u.read(at + 16); system != 0 {
			t.Errorf("system time %d", system)
		}
	}
}

// startClock returns a machine whose clock has not been calibrated.
func startClock(t *testing.T) *machine {
	m := newMachine(t, 1, 1)
	m.core.clock = keeper{}
	m.core.reference, m.core.apicScale = referenceClock{}, 0
	machineCore.window, machineCore.windowEnd = m.core.window, 0 // the machine has no firmware
	t.Cleanup(func() { machineCore.window = 0 })
	return m
}

// within reports whether a differs from b by at most a part of b.
func within(a, b, part uint64) bool { return a <= b+b/part && b <= a+b/part }

// The counter and the timer of the local APIC are measured by the interval timer, whatever their rates are.
func TestCalibrate(t *testing.T) {
	for _, c := range []struct{ counterKHz, apicKHz uint64 }{
		{1_000_000, 1_000_000}, {2_400_000, 1_000_000}, {3_900_123, 24_000}, {24_000, 62_500},
	} {
		m := startClock(t)
		m.counterKHz, m.apicKHz = c.counterKHz, c.apicKHz
		m.core.calibrate()
		const exact = 4000
		if _, _, scale := m.core.clock.State(); !within(scale, timekeeper.Scale(1e6, c.counterKHz), exact) {
			t.Errorf("%d kHz: the scale is %#x", c.counterKHz, scale)
		}
		if want := timekeeper.Scale(c.apicKHz, 1e6); !within(m.core.apicScale, want, 100) {
			t.Errorf("%d kHz: the scale of the APIC's timer is %#x, want %#x", c.apicKHz, m.core.apicScale, want)
		}
	}
}

// A rate that the hypervisor or the processor reports is used if it agrees with the measured one.
func TestReportedRate(t *testing.T) {
	const present = 1 << 31
	for _, c := range []struct {
		what  string
		cpuid map[uint32][4]uint32
		exact bool
	}{
		{"no report", nil, false},
		{"the hypervisor", map[uint32][4]uint32{1: {2: present}, 0x4000_0000: {0x4000_0010}, 0x4000_0010: {2_400_000}}, true},
		{"the hypervisor is wrong", map[uint32][4]uint32{1: {2: present}, 0x4000_0000: {0x4000_0010}, 0x4000_0010: {2_500_000}}, false},
		{"the processor", map[uint32][4]uint32{0: {0x15}, 0x15: {2, 200, 24_000_000}}, true},
		{"the processor does not know its crystal", map[uint32][4]uint32{0: {0x15}, 0x15: {2, 200, 0}}, false},
		{"an old processor", map[uint32][4]uint32{0: {0xd}, 0x15: {2, 200, 24_000_000}}, false},
	} {
		m := startClock(t)
		m.counterKHz, m.cpuid = 2_400_000, c.cpuid
		m.core.calibrate()
		_, _, scale := m.core.clock.State()
		if exact := scale == timekeeper.Scale(1e9, 2_400_000_000); exact != c.exact {
			t.Errorf("%s: scale %#x, exact %v", c.what, scale, exact)
		}
	}
}

// A machine without a clock to measure by cannot start, and says so.
func TestNoClock(t *testing.T) {
	m := startClock(t)
	m.noTimer = true
	if status := m.ends(m.core.calibrate); status != statusFailed {
		t.Errorf("status %d", status)
	}
	if !strings.HasPrefix(string(m.output), "loam: the machine has no clock to measure its own by") {
		t.Errorf("output: %s", m.output)
	}
}

// A clock whose rate was measured badly is corrected by the reference, without going back.
func TestCorrection(t *testing.T) {
	u := newUser(t)
	u.machine.counterKHz = 1_000_100 // the core believes that it is 1,000,000: 100 ppm
	k := u.kernel()
	k.clock.Begin(k.sample(), 1<<32, 250_000)
	begin := int64(u.machine.ticks)
	at, last := u.memory(1, protRead|protWrite), int64(0)
	for range 3000 {
		u.pass(100e6)
		u.want(0, linux.SYS_CLOCK_GETTIME, monotonic, at)
		now := u.readTime(at)
		if now < last {
			t.Fatalf("the clock goes back from %d to %d", last, now)
		}
		last = now
	}
	if off := last - (int64(u.machine.ticks) - begin); off > 1e6 || off < -1e6 {
		t.Errorf("after 300 s the clock is off by %d ns, and would be by %d without correction", off, int64(30e6))
	}
}

// wallMachine is a machine with a real-time clock, started at a time in seconds since 1970.
func wallMachine(t *testing.T, start int64) (m *machine, paused *int64) {
	m = newMachine(t, 1, 1)
	paused = new(int64)
	m.rtc = func() int64 { return start + *paused + int64(m.ticks/1e9) }
	return m, paused
}

// Without the loam command and without a hypervisor's clock, the wall clock is set by the real-time clock.
func TestWallByRTC(t *testing.T) {
	for _, start := range []int64{0, 951_782_400, 1_700_000_000, 4_102_444_800} { // 2000-02-29, 2023, 2100
		m, _ := wallMachine(t, start)
		m.core.setWall()
		if got, want := m.core.wallSeconds(), m.rtc(); got != want {
			t.Errorf("wall clock %d, want %d", got, want)
		}
	}
	m := newMachine(t, 1, 1) // has no real-time clock
	m.core.setWall()
	if got := m.core.wallSeconds(); got < 0 || got > 1 {
		t.Errorf("without any clock: %d", got)
	}
}

// After a pause of the machine, in which only the real-time clock runs, the wall clock steps and the monotonic clock does not.
// A difference of a second may be a difference of two readings.
func TestPausedMachine(t *testing.T) {
	for _, c := range []struct {
		pause int64
		steps bool
	}{{0, false}, {1, false}, {-1, false}, {2, true}, {3600, true}, {-3600, true}} {
		m, paused := wallMachine(t, 1_700_000_000)
		k := m.core
		k.setWall()
		before, wall := k.clock.now(), k.clock.Wall
		*paused = c.pause
		k.checkWall(m.cpus[0].cpu)
		stepped := k.clock.Wall - wall
		if c.steps != (stepped != 0) || c.steps && (stepped < (c.pause-1)*1e9 || stepped > (c.pause+1)*1e9) {
			t.Errorf("a pause of %d s: the wall clock steps by %d ns", c.pause, stepped)
		}
		if now := k.clock.now(); !near(now, before) {
			t.Errorf("a pause of %d s: the clock steps by %d ns", c.pause, now-before)
		}
	}
}

// The loam command answers a request for the time on the serial port. The core asks until an answer is quick, five times at
// most, and uses the answer that was quickest.
func TestWallByCommand(t *testing.T) {
	const ms = uint64(1e6)
	const start = int64(1_700_000_000e9)
	for _, c := range []struct {
		what  string
		delay []uint64 // of each answer; after the last: no answer
		asked int
		most  uint64 // largest error of the wall clock, in nanoseconds
	}{
		{"quick", []uint64{ms / 10, ms / 10}, 1, ms / 10},
		{"the second is quick", []uint64{9 * ms, ms / 2, ms / 10}, 2, ms / 2},
		{"all are slow", []uint64{9 * ms, 8 * ms, 3 * ms, 7 * ms, 5 * ms, ms / 10}, 5, 3 * ms},
		{"the second is missing", []uint64{4 * ms}, 2, 4 * ms},
	} {
		m, _ := wallMachine(t, 0)
		asked := 0
		m.asked = func() {
			if asked++; asked <= len(c.delay) {
				at := start + int64(m.ticks+c.delay[asked-1]) // the answer is late, and correct when it arrives
				m.arrive(c.delay[asked-1], boot.AppendTime(nil, at)...)
			}
		}
		m.core.setWall()
		if asked != c.asked {
			t.Errorf("%s: asked %d times, want %d", c.what, asked, c.asked)
		}
		off := m.core.clock.now() + m.core.clock.Wall - start - int64(m.ticks)
		if off > int64(c.most) || off < -int64(c.most) {
			t.Errorf("%s: the wall clock is off by %d ns", c.what, off)
		}
	}
	m, _ := wallMachine(t, 1_600_000_000)
	m.asked = func() {}
	m.core.setWall()
	if got, want := m.core.wallSeconds(), m.rtc(); got != want {
		t.Errorf("no answer: %d, want the time of the real-time clock, %d", got, want)
	}
}

// Signals that arrive between the bytes of an answer are not lost.
func TestSignalsDuringRequest(t *testing.T) {
	u := newUser(t)
	u.stack()
	u.handle(15)
	m, k := u.machine, u.kernel()
	m.asked = func() {
		answer := boot.AppendTime(nil, 1_700_000_000e9)
		m.arrive(1000, slices.Concat([]byte{15}, answer[:4], []byte{0, 100}, answer[4:])...) // 0 and 100 are no signals
	}
	m.rtc = func() int64 { return 1_700_000_000 }
	k.checkWall(u.cpu)
	if got := k.wallSeconds(); got != 1_700_000_000 {
		t.Errorf("wall clock %d", got)
	}
	if k.earlySignals != 0 {
		t.Errorf("signals %#x are left", k.earlySignals)
	}
	u.call(linux.SYS_GETTID)
	u.handled(15)
}
