package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
)

// The console: the program's writes to file descriptors 1 and 2, and the kernel's own messages. They are written to the
// ports of control.go if these exist. Otherwise they are written to the first serial port, a 16550 (National Semiconductor
// PC16550D data sheet), which is polled while it transmits.

const (
	serialPort    = 0x3f8
	serialData    = serialPort
	serialEnable  = serialPort + 1 // Interrupt Enable Register; the high byte of the rate divisor while bit 7 of serialLine is set
	serialQueue   = serialPort + 2
	serialLine    = serialPort + 3
	serialModem   = serialPort + 4
	serialStatus  = serialPort + 5
	serialScratch = serialPort + 7

	serialReady = 1 << 0 // bit 0 of the Line Status Register, Data Ready: a byte was received
	serialRoom  = 1 << 5 // bit 5 of the Line Status Register, THRE: the transmit FIFO is empty
	serialDeep  = 16     // size of the transmit FIFO in bytes
)

// startConsole configures the port: 115200 bits a second, 8 data bits, no parity, 1 stop bit.
func startConsole() {
	amd64.Out8(serialEnable, 0)
	amd64.Out8(serialLine, 0x80)
	amd64.Out8(serialData, 1)
	amd64.Out8(serialEnable, 0)
	amd64.Out8(serialLine, 3)
	amd64.Out8(serialQueue, 7)
	amd64.Out8(serialModem, 3)
}

// consoleTries is the maximum number of polls for room in the FIFO, because the port may not exist.
const consoleTries = 1e6

// write writes bytes that the program has written to file descriptor 1 or 2 to the console.
func (k *core) write(fd uint64, b []byte) {
	if k.controlled {
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

// say writes a message of the kernel to the console, where the program's standard error goes, too.
func (k *core) say(text string) {
	for len(text) > 0 {
		var b [64]byte
		n := copy(b[:], text)
		k.write(2, b[:n])
		text = text[n:]
	}
}

// sayHex writes a number in hexadecimal, with 16 digits.
func (k *core) sayHex(v uint64) {
	var b [18]byte
	b[0], b[1] = '0', 'x'
	for i := range 16 {
		b[17-i] = "0123456789abcdef"[v>>(4*i)&15]
	}
	k.write(2, b[:])
}

// sayInt writes a number in decimal.
func (k *core) sayInt(v uint64) {
	var b [20]byte
	i := len(b)
	for {
		i--
		b[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			break
		}
	}
	k.write(2, b[i:])
}

// exitPort is the port of QEMU's device isa-debug-exit. Writing a value there ends QEMU with the exit status
// 2*value + 1.
const exitPort = 0x501

// exitMost is a mask for the bits of an exit status that fit into QEMU's exit status.
const exitMost = 0x7f

// Exit statuses of QEMU if the kernel, and not the program, ends the machine.
const (
	statusCrash       = 125 // the kernel has failed
	statusFailed      = 124 // the kernel cannot start on this machine
	statusOutOfMemory = 123
)

// powerOff ends the machine with an exit status. It does not return.
func (k *core) powerOff(status uint32) {
	if k.controlled {
		amd64.Out8(boot.PortControl, uint8(status))
	}
	amd64.Out32(exitPort, status&exitMost)
	// The device isa-debug-exit does not exist. The keyboard controller resets the machine, which ends a monitor
	// that was started with an option not to reboot.
	amd64.Out8(0x64, 0xfe)
	for {
		amd64.Halt()
	}
}
