package amd64

// Devices of the IBM PC that virtual machines still have: the interrupt controllers, which are masked; the interval
// timer, which calibrates faster clocks; the real-time clock.

// The two 8259 interrupt controllers: Intel 8259A data sheet.
const (
	picCommand1, picData1 = 0x20, 0x21
	picCommand2, picData2 = 0xa0, 0xa1
)

// SilencePICs masks all interrupts of the 8259s. It also moves their vectors away from those of exceptions, because
// spurious interrupts can still arrive.
func SilencePICs() {
	for _, w := range [...]struct {
		port  uint16
		value uint8
	}{
		{picCommand1, 0x11}, {picCommand2, 0x11}, // initialise, four words follow
		{picData1, VectorLegacy}, {picData2, VectorLegacy + 8},
		{picData1, 1 << 2}, {picData2, 2}, // the second is connected to input 2 of the first
		{picData1, 1}, {picData2, 1}, // 8086 mode
		{picData1, 0xff}, {picData2, 0xff}, // mask
	} {
		Out8(w.port, w.value)
	}
}

// The 8254 interval timer: Intel 8254 data sheet. Channel 0 is used without its interrupt. Other systems use
// channel 2, which needs port 0x61; QEMU's microvm does not have that port.
const (
	pitChannel0 = 0x40
	pitCommand  = 0x43

	// PITFrequency is in Hz. It is a third of the NTSC colour subcarrier.
	PITFrequency = 1193182
)

// StartPIT starts channel 0, which counts down from 0xffff and wraps around, and reports whether the timer exists.
// In this mode it interrupts at most once.
func StartPIT() bool {
	const nothing = 0xff
	Out8(pitCommand, 0b00_11_000_0) // channel 0, low byte then high byte, mode 0: the output rises when the count ends
	Out8(pitChannel0, 0xff)
	Out8(pitChannel0, 0xff)
	Out8(pitCommand, 0b11_1_0_001_0) // read back the status of channel 0
	return In8(pitChannel0) != nothing
}

// HoldPIT latches the current count, so that ReadPIT reads both bytes of one value.
func HoldPIT() { Out8(pitCommand, 0b00_00_000_0) }

// ReadPIT returns the ticks since StartPIT, modulo 1<<16, at the last HoldPIT.
func ReadPIT() uint16 {
	low := In8(pitChannel0)
	return ^(uint16(low) | uint16(In8(pitChannel0))<<8)
}

// The real-time clock: Motorola MC146818A data sheet.
const (
	rtcIndex = 0x70
	rtcData  = 0x71
)

func rtc(register uint8) uint8 {
	Out8(rtcIndex, register|0x80) // bit 7 disables NMIs
	return In8(rtcData)
}

// ReadRTC reads the registers of the clock in the order that DecodeRTC expects. The clock may change during a reading,
// so ReadRTC reads until two readings agree, at most 16 times.
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

// DecodeRTC converts registers (second, minute, hour, day, month, year, century, status B) to seconds since 1970,
// in UTC. It returns 0 for an invalid date.
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
	// Days since 1 March of year 0; years start in March.
	if month < 3 {
		month += 12
		year--
	}
	days := day + (153*(month-3)+2)/5 + 365*year + year/4 - year/100 + year/400
	const epoch = 719469 // the value of days for 1 January 1970
	return (days-epoch)*86400 + hour*3600 + minute*60 + second
}
