package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
)

// Between the loam command and the kernel: what the program writes goes to ports
// that take bytes and nothing else (QEMU's isa-debugcon, package boot has their
// numbers), and so does the exit status, as the last byte; signals come by the
// first serial port, each as a byte with its number, and so does the time of the day
// (wall.go). A machine that was started otherwise has no such ports: then all output
// goes to the serial port, and what comes from there is somebody typing, of which only
// Ctrl-C means something.

// controlled is whether the loam command has started this machine; set once.
var controlled bool

// findControl asks for the ports.
func findControl() {
	controlled = amd64.In8(boot.PortControl) == portAnswer
}

// portAnswer is what such a port says when it is read.
const portAnswer = 0xe9

// serialInterrupt is the number of the port's interrupt; negative: it has none.
var serialInterrupt = -1

// serialIRQ is the interrupt of the first serial port on the ISA bus.
const serialIRQ = 4

// listen has the port interrupt when a byte has come. A monitor without the port
// is no reason not to start.
func listen(gsi uint32, level, low bool) {
	const present, wanted, enable = 0x5a, 1 << 0, 1 << 3
	amd64.Out8(serialScratch, present)
	if amd64.In8(serialScratch) != present {
		return
	}
	var flags uint32
	if level {
		flags |= amd64.IOAPICLevel
	}
	if low {
		flags |= amd64.IOAPICLow
	}
	if n := openLine(uint64(gsi), flags); n >= 0 {
		serialInterrupt = int(n)
		amd64.Out8(serialModem, 3|enable)
		amd64.Out8(serialEnable, wanted)
	}
}

// receive takes what has come.
func receive(c *cpu) {
	const most = 64 // more than the queue of the port has; then it is not a port
	const controlC, interrupt = 3, 2
	for range most {
		if amd64.In8(serialStatus)&serialReady == 0 {
			break
		}
		b := amd64.In8(serialData)
		switch {
		case controlled && signal.Number(b).Valid():
			tellAny(c, int32(b))
		case !controlled && b == controlC:
			tellAny(c, interrupt)
		}
	}
	doneInterrupt(uint64(serialInterrupt))
}
