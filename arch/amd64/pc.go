package amd64

// What is left of the IBM PC in every virtual machine of today: the interrupt
// controllers, which are silenced; the interval timer, by which faster clocks
// are measured; the clock of the day; the serial ports.

// The two 8259 interrupt controllers: Intel 8259A data sheet.
const (
	picCommand1, picData1 = 0x20, 0x21
	picCommand2, picData2 = 0xa0, 0xa1
)

// SilencePICs moves the interrupts of the 8259s out of the way of exceptions, in
// case a spurious one comes, and masks all of them.
func SilencePICs() {
	for _, w := range [...]struct {
		port  uint16
		value uint8
	}{
		{picCommand1, 0x11}, {picCommand2, 0x11}, // initialise, four words follow
		{picData1, VectorLegacy}, {picData2, VectorLegacy + 8},
		{picData1, 1 << 2}, {picData2, 2}, // the second hangs at input 2 of the first
		{picData1, 1}, {picData2, 1}, // 8086 mode
		{picData1, 0xff}, {picData2, 0xff}, // mask
	} {
		Out8(w.port, w.value)
	}
}

// The 8254 interval timer, of which channel 0 is started and watched without its
// interrupt: Intel 8254 data sheet. (Channel 2, by port 0x61, is what others take.
// QEMU's microvm has no such port.)
const (
	pitChannel0 = 0x40
	pitCommand  = 0x43

	// PITFrequency is in Hz: a third of the colour carrier of NTSC.
	PITFrequency = 1193182
)

// StartPIT has channel 0 count down, from 0xffff and again from there, and reports
// whether the machine has such a timer. In this mode it interrupts once at most.
func StartPIT() bool {
	const nothing = 0xff
	Out8(pitCommand, 0b00_11_000_0) // channel 0, low byte then high, mode 0: output rises at the end
	Out8(pitChannel0, 0xff)
	Out8(pitChannel0, 0xff)
	Out8(pitCommand, 0b11_1_0_001_0) // read back the status of channel 0
	return In8(pitChannel0) != nothing
}

// HoldPIT has ReadPIT return the count of now.
func HoldPIT() { Out8(pitCommand, 0b00_00_000_0) }

// ReadPIT is how far channel 0 has counted, modulo 1<<16, when HoldPIT was called.
func ReadPIT() uint16 {
	low := In8(pitChannel0)
	return ^(uint16(low) | uint16(In8(pitChannel0))<<8)
}

// The clock of the day: Motorola MC146818A data sheet.
const (
	rtcIndex = 0x70
	rtcData  = 0x71
)

func rtc(register uint8) uint8 {
	Out8(rtcIndex, register|0x80) // the highest bit keeps NMIs away
	return In8(rtcData)
}

// ReadRTC reads the registers of the clock that DecodeRTC takes. It reads until
// two readings agree, a few times at most: the clock may be ticking.
func ReadRTC() [8]uint8 {
	registers := [8]uint8{0x00, 0x02, 0x04, 0x07, 0x08, 0x09, 0x32, 0x0b}
	var last [8]uint8
	for range 16 {
		var now [8]uint8
		for i, r := range registers {
			now[i] = rtc(r)
		}
		if now == last {
			break
		}
		last = now
	}
	return last
}

// DecodeRTC turns registers (second, minute, hour, day, month, year, century,
// status B) into seconds since 1970, in UTC. What makes no sense as a date is 0.
func DecodeRTC(r [8]uint8) int64 {
	const binary, hours24, afternoon = 1 << 2, 1 << 1, 1 << 7
	status := r[7]
	pm := status&hours24 == 0 && r[2]&afternoon != 0
	r[2] &^= afternoon
	if status&binary == 0 {
		for i := range 7 {
			r[i] = r[i]>>4*10 + r[i]&15
		}
	}
	second, minute, hour := int64(r[0]), int64(r[1]), int64(r[2])
	day, month, year := int64(r[3]), int64(r[4]), int64(r[5])
	if status&hours24 == 0 {
		hour %= 12
		if pm {
			hour += 12
		}
	}
	if century := int64(r[6]); century >= 19 && century <= 99 {
		year += century * 100
	} else {
		year += 2000
	}
	if second > 59 || minute > 59 || hour > 23 || day < 1 || day > 31 || month < 1 || month > 12 || year < 1970 {
		return 0
	}
	// Days since 1 March of the year 0, with years that begin in March.
	if month < 3 {
		month += 12
		year--
	}
	days := day + (153*(month-3)+2)/5 + 365*year + year/4 - year/100 + year/400
	const epoch = 719469 // the same for 1 January 1970
	return (days-epoch)*86400 + hour*3600 + minute*60 + second
}
