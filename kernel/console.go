package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
)

// What the program writes to descriptors 1 and 2, and what the kernel itself has
// to say, goes to the ports of control.go, or else to the first serial port: a
// 16550 (National Semiconductor PC16550D data sheet), which is watched while it
// sends.

const (
	serialPort    = 0x3f8
	serialData    = serialPort
	serialEnable  = serialPort + 1 // of interrupts; of the rate while serialLine says so
	serialQueue   = serialPort + 2
	serialLine    = serialPort + 3
	serialModem   = serialPort + 4
	serialStatus  = serialPort + 5
	serialScratch = serialPort + 7

	serialReady = 1 << 0 // in serialStatus: a byte has come
	serialRoom  = 1 << 5 // the queue is empty
	serialDeep  = 16     // bytes in the queue
)

// startConsole sets 115200 bits a second, 8 data bits, no parity, 1 stop bit.
func startConsole() {
	amd64.Out8(serialEnable, 0)
	amd64.Out8(serialLine, 0x80)
	amd64.Out8(serialData, 1)
	amd64.Out8(serialEnable, 0)
	amd64.Out8(serialLine, 3)
	amd64.Out8(serialQueue, 7)
	amd64.Out8(serialModem, 3)
}

// consoleTries bounds the wait for a port that never gets room: there may be none.
const consoleTries = 1e6

// write sends bytes that the program has written to a descriptor.
func write(fd uint64, b []byte) {
	if controlled {
		port := uint16(boot.PortOutput)
		if fd == 2 {
			port = boot.PortErrors
		}
		for _, c := range b {
			amd64.Out8(port, c)
		}
		return
	}
	for len(b) > 0 {
		for tries := 0; amd64.In8(serialStatus)&serialRoom == 0 && tries < consoleTries; tries++ {
			amd64.Pause()
		}
		n := min(len(b), serialDeep)
		for _, c := range b[:n] {
			amd64.Out8(serialData, c)
		}
		b = b[n:]
	}
}

// say sends text.
func say(text string) {
	for len(text) > 0 {
		var b [64]byte
		n := copy(b[:], text)
		write(2, b[:n])
		text = text[n:]
	}
}

// sayHex sends a number with 16 digits.
func sayHex(v uint64) {
	var b [18]byte
	b[0], b[1] = '0', 'x'
	for i := range 16 {
		b[17-i] = "0123456789abcdef"[v>>(4*i)&15]
	}
	write(2, b[:])
}

// sayInt sends a number.
func sayInt(v uint64) {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			break
		}
	}
	write(2, b[i:])
}

// exitPort is QEMU's device isa-debug-exit, which ends QEMU with the status
// 2*value + 1.
const exitPort = 0x501

// exitMost is what of a status QEMU's own has room for.
const exitMost = 0x7f

// How the machine ends when it is not the program that ends it.
const (
	statusCrash       = 125 // the kernel itself fails
	statusFailed      = 124 // the machine is not one on which it can start
	statusOutOfMemory = 123
)

// powerOff ends the machine.
func powerOff(status uint32) {
	if controlled {
		amd64.Out8(boot.PortControl, uint8(status))
	}
	amd64.Out32(exitPort, status&exitMost)
	// There is no such device. The keyboard controller can reset the machine,
	// which ends a monitor that was told not to start it again.
	amd64.Out8(0x64, 0xfe)
	for {
		amd64.Halt()
	}
}
