package amd64

import "testing"

// Registers in x2APIC mode have the numbers of SDM volume 3, table 11-6.
func TestX2APICRegisters(t *testing.T) {
	for offset, want := range map[uintptr]uint32{
		apicID: 0x802, apicEOI: 0x80b, apicSpurious: 0x80f, apicCommand: 0x830,
		apicTimer: 0x832, apicInitial: 0x838, apicCurrent: 0x839, apicDivide: 0x83e,
	} {
		if got := register2(offset); got != want {
			t.Errorf("%#x is at %#x, not at %#x", offset, got, want)
		}
	}
}
