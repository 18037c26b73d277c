package kernel

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
)

// The console, the loam command's ports, reports, and the end of the machine.

// Output goes to the serial port, or to the ports of the loam command, which keep standard output and errors apart.
func TestOutput(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.write(at, 'a'|'b'<<8)
	u.want(1, linux.SYS_WRITE, 1, at, 1)
	u.want(1, linux.SYS_WRITE, 2, at+1, 1)
	if got := string(u.machine.output); got != "ab" {
		t.Errorf("serial port: %q", got)
	}
	u.machine.controlled = true
	u.kernel().findControl()
	u.want(2, linux.SYS_WRITE, 1, at, 2)
	u.want(1, linux.SYS_WRITE, 2, at+1, 1)
	u.kernel().say("!")
	if out, errors := string(u.machine.streams[boot.PortOutput]), string(u.machine.streams[boot.PortErrors]); out != "ab" || errors != "b!" {
		t.Errorf("output %q, errors %q", out, errors)
	}
	if got := string(u.machine.output); got != "ab" {
		t.Errorf("serial port: %q", got)
	}
}

// A call writes 64 KiB at most, so that interrupts are not disabled for long.
func TestLongOutput(t *testing.T) {
	u := newUser(t)
	const size, most = 100 << 10, 64 << 10
	at := u.memory(size/pageSize, protRead|protWrite)
	u.want(most, linux.SYS_WRITE, 1, at, size)
	if got := len(u.machine.output); got != most {
		t.Errorf("%d bytes are written", got)
	}
	u.want(0, linux.SYS_WRITE, 1, 8, 0)
	u.fails(linux.EFAULT, linux.SYS_WRITE, 1, at+size-16, 32)
}

// The serial port is polled until its FIFO is empty, and given up if it does not exist.
func TestBusySerialPort(t *testing.T) {
	m := newMachine(t, 1, 1)
	m.busy = 500
	m.core.say("a text that does not fit into the FIFO of the port")
	if got := string(m.output); got != "a text that does not fit into the FIFO of the port" || m.busy != 0 {
		t.Errorf("%q, %d polls are left", got, m.busy)
	}
	m.busy = 1 << 40
	m.core.say("x")
	if polls := 1<<40 - m.busy; polls < consoleTries || polls > consoleTries+10 {
		t.Errorf("%d polls of a port that does not exist", polls)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[uint64]string{
		0: "0 0x0000000000000000", 9: "9 0x0000000000000009", 10: "10 0x000000000000000a",
		1<<64 - 1: "18446744073709551615 0xffffffffffffffff", 0xfedc_ba98_7654_3210: "18364758544493064720 0xfedcba9876543210",
	} {
		m := newMachine(t, 1, 1)
		m.core.sayInt(v)
		m.core.say(" ")
		m.core.sayHex(v)
		if got := string(m.output); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The program's exit status ends the machine: by a port of the loam command, which takes a byte, or by QEMU's device, which
// takes seven bits.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		status     uint64
		controlled bool
		want       uint32
	}{{0, false, 0}, {7, false, 7}, {130, false, 2}, {0, true, 0}, {130, true, 130}, {255, true, 255}, {256 + 3, true, 3}} {
		m := newMachine(t, 1, 1)
		m.controlled = c.controlled
		m.core.findControl()
		u := user{m.cpus[0], t}
		if got := m.ends(func() { u.call(linux.SYS_EXIT_GROUP, c.status) }); got != c.want {
			t.Errorf("exit status %d: %d, want %d", c.status, got, c.want)
		}
	}
}

// serial connects the serial port to an interrupt, and returns the interrupt's number.
func (u user) serial() uint64 {
	u.t.Helper()
	u.addIOAPIC(0, 24)
	u.kernel().listen(serialIRQ, false, false)
	if u.kernel().serialInterrupt == none {
		u.t.Fatal("the serial port has no interrupt")
	}
	return uint64(u.kernel().serialInterrupt)
}

// The loam command sends signals as bytes. On a machine that it has not started, a user types, and only Ctrl-C has an effect.
func TestSerialInput(t *testing.T) {
	for _, c := range []struct {
		controlled bool
		input      string
		want       []signal.Number
	}{
		{true, "\x0f", []signal.Number{15}},
		{true, "\x00\x0a\x41\x0c", []signal.Number{10, 12}}, // 0 and 65 are no signals
		{false, "\x0f\x0a text\r\n", nil},
		{false, "stop\x03", []signal.Number{2}},
		{true, strings.Repeat("\x0a", 50), []signal.Number{10}},
		{true, "", nil},
	} {
		u := newUser(t)
		u.stack()
		for _, n := range []signal.Number{2, 10, 12, 15} {
			u.handle(n)
		}
		u.kernel().controlled = c.controlled
		number := u.serial()
		u.machine.arrive(0, []byte(c.input)...)
		u.interrupt(amd64.VectorDevice + number)
		for _, n := range c.want {
			u.returnsFrom(n)
		}
		if f := frameOf(u.page()); f.IP == modelHandler {
			t.Errorf("%q: a handler too many, of signal %d", c.input, f.DI)
		}
		if Rung != 0 {
			t.Errorf("the poller sees the interrupt of the serial port: %#x", Rung)
		}
		if left := len(u.machine.arriving); left != 0 {
			t.Errorf("%q: %d bytes are left", c.input, left)
		}
	}
}

// A device that returns bytes for ever is no serial port, and does not keep the core.
func TestEndlessInput(t *testing.T) {
	u := newUser(t)
	number := u.serial()
	u.machine.arrive(0, make([]byte, 1000)...)
	u.interrupt(amd64.VectorDevice + number)
	if left := len(u.machine.arriving); left != 1000-64 {
		t.Errorf("%d bytes are left", left)
	}
}

// A machine without a serial port, or without an I/O APIC for its line, has no interrupt for it.
func TestNoSerialPort(t *testing.T) {
	u := newUser(t)
	u.kernel().listen(serialIRQ, false, false)
	if n := u.kernel().serialInterrupt; n != none {
		t.Errorf("no I/O APIC, and interrupt %d", n)
	}
	u.addIOAPIC(0, 24)
	u.machine.noSerial = true
	u.kernel().listen(serialIRQ, false, false)
	if n := u.kernel().serialInterrupt; n != none {
		t.Errorf("no serial port, and interrupt %d", n)
	}
}

// The report of a crash names its reason. A crash during the report ends the machine at once, and other CPUs halt.
func TestCrash(t *testing.T) {
	for _, c := range []struct {
		vector, code, cr2 uint64
		want              string
	}{
		{amd64.VectorPage, 0, boot.Stacks + stackSpan/2, "the kernel's stack is too small for what it does"},
		{amd64.VectorPage, 0, boot.Stacks - 8, "the kernel failed"},
		{amd64.VectorPage, amd64.FaultPresent, boot.Stacks + 8, "the kernel failed"},
		{amd64.VectorProtection, 0, boot.Stacks + 8, "the kernel failed"},
		{amd64.VectorNMI, 0, 0, "the machine wants it to stop (a non-maskable interrupt)"},
		{amd64.VectorMachine, 0, 0, "the hardware has failed (a machine check)"},
	} {
		m := newMachine(t, 2, 1)
		p := m.cpus[0]
		p.cr2 = c.cr2
		p.interruptFrame = amd64.Frame{Vector: c.vector, Code: c.code, IP: 0x1234}
		if status := m.ends(func() { p.fatal() }); status != statusCrash {
			t.Errorf("%s: status %d", c.want, status)
		}
		if got := string(m.output); !strings.HasPrefix(got, "\nloam: "+c.want+"\n") || !strings.Contains(got, "ip 0x0000000000001234\n") {
			t.Errorf("output %q", got)
		}
		m.output = nil
		m.ends(func() { p.fatal() })
		if got, want := string(m.output), "and failed again while it told of that, at ip 0x0000000000001234\n"; got != want {
			t.Errorf("a crash in the report: %q, want %q", got, want)
		}
		m.output, m.status = nil, 0
		m.ends(func() { m.cpus[1].fatal() }) // HALT ends the CPU of the model
		if len(m.output) != 0 || m.status != 0 {
			t.Errorf("another CPU reports, too: %q", m.output)
		}
	}
}

// The stack trace of a crash reads only memory that has a page, from its first byte to its last.
func TestReadable(t *testing.T) {
	u := newUser(t)
	at := u.memory(3, protRead|protWrite)
	for _, page := range []uint64{0, 1} { // the third page has no memory yet
		u.write(at+page*pageSize, 1)
	}
	for _, c := range []struct {
		addr, size uint64
		want       bool
	}{
		{at, 8, true}, {at + pageSize - 8, 16, true}, {at + 2*pageSize - 16, 16, true}, {at + 2*pageSize - 8, 16, false},
		{at + 2*pageSize, 8, false}, {at - 8, 16, false}, {1 << 63, 8, false}, {^uint64(7), 16, false},
	} {
		if got := u.kernel().readable(c.addr, c.size); got != c.want {
			t.Errorf("%d bytes at %#x: %v", c.size, c.addr, got)
		}
	}
}
