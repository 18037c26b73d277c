package kernel

import "loam/arch/amd64"

// What the kernel has to say goes to the first serial port: a 16550 (National
// Semiconductor PC16550D data sheet). It is polled: there is no interrupt.

const (
	serialPort   = 0x3f8
	serialData   = serialPort
	serialEnable = serialPort + 1 // of interrupts; of the rate while serialLine says so
	serialQueue  = serialPort + 2
	serialLine   = serialPort + 3
	serialModem  = serialPort + 4
	serialStatus = serialPort + 5

	serialRoom = 1 << 5 // in serialStatus: the queue is empty
	serialDeep = 16     // bytes in the queue
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

// write sends bytes.
func write(b []byte) {
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
		write(b[:n])
		text = text[n:]
	}
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
	write(b[i:])
}

// exitPort is QEMU's device isa-debug-exit, which ends QEMU with the status
// 2*value + 1.
const exitPort = 0x501

// statusFailed is the value when the kernel cannot go on.
const statusFailed = 125

// powerOff ends the machine.
func powerOff(status uint8) {
	amd64.Out8(exitPort, status)
	// There is no such device. The keyboard controller can reset the machine,
	// which ends a monitor that was told not to start it again.
	amd64.Out8(0x64, 0xfe)
	for {
		amd64.Halt()
	}
}
