package amd64

import "unsafe"

// HPET is the address at which the registers of the High Precision Event Timer are mapped: IA-PC HPET specification
// 1.0a, section 2.3. Only the lower half of the main counter is used, since not every machine supports 64-bit
// reads.
type HPET uintptr

// Offsets of the timer's registers from HPET.
const (
	hpetPeriod  = 0x004
	hpetConfig  = 0x010
	hpetCounter = 0x0f0
)

// HPETMostPeriod is the longest period of a tick that the specification allows, in femtoseconds: 100 ns, or 10 MHz.
const HPETMostPeriod = 0x05f5_e100

func (h HPET) register(offset uintptr) *uint32 {
	// Safety: h is the page of the registers, offset one of the constants above.
	addr := uintptr(h) + offset
	return *(**uint32)(unsafe.Pointer(&addr))
}

// Start starts the counter and returns the period of a tick in femtoseconds.
func (h HPET) Start() (period uint32) {
	const enable = 1 << 0
	config := h.register(hpetConfig)
	store32(config, load32(config)|enable)
	return load32(h.register(hpetPeriod))
}

// Counter returns the lower half of the counter.
func (h HPET) Counter() uint32 { return load32(h.register(hpetCounter)) }
