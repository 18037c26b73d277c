package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
)

// The connection between the loam command and the kernel. The program's output goes to ports that accept single
// bytes (QEMU's isa-debugcon; package boot defines their numbers). The exit status follows as the last byte, on a
// port of its own. Signals arrive on the first serial port, one byte each with the signal's number. So does the
// wall clock time (wall.go).
//
// A machine that the loam command did not start has no such ports. Then all output goes to the serial port, and its
// input comes from a user. Only Ctrl-C has an effect.

// findControl detects the ports of the loam command.
func (k *core) findControl() {
	k.controlled = amd64.In8(boot.PortControl) == portAnswer
}

// portAnswer is the value that a read of an isa-debugcon port returns.
const portAnswer = 0xe9

// serialIRQ is the ISA interrupt of the first serial port.
const serialIRQ = 4

// listen enables the receive interrupt of the serial port, which is connected to the line with a global number (GSI). If the
// port does not exist, listen does nothing.
func (k *core) listen(gsi uint32, level, low bool) {
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
	if n := k.openLine(uint64(gsi), flags); n >= 0 {
		k.serialInterrupt = int(n)
		amd64.Out8(serialModem, 3|enable)
		amd64.Out8(serialEnable, wanted)
	}
}

// receive reads the bytes that the serial port has received. Each byte is the number of a signal, which receive
// sends to the program.
func (k *core) receive(c *cpu) {
	const most = 64 // more than the FIFO of the port holds: a port that returns more bytes is not a serial port
	const controlC, interrupt = 3, 2
	for range most {
		if amd64.In8(serialStatus)&serialReady == 0 {
			break
		}
		b := amd64.In8(serialData)
		switch {
		case k.controlled && signal.Number(b).Valid():
			k.signalProgram(c, int32(b))
		case !k.controlled && b == controlC:
			k.signalProgram(c, interrupt)
		}
	}
	k.doneInterrupt(uint64(k.serialInterrupt))
}
