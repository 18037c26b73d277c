package amd64

import "testing"

// ioapicInput models one input according to the data sheet of the 82093AA.
type ioapicInput struct {
	entry uint64
	high  bool // level of the line
	asks  bool // an interrupt is latched, and is delivered when the input is not masked
}

const testInput = 5

func (i *ioapicInput) write(w ioapicWrite) {
	switch w.register {
	case ioapicTable + 2*testInput:
		i.entry = i.entry&^0xffff_ffff | uint64(w.value)
	case ioapicTable + 2*testInput + 1:
		i.entry = i.entry&0xffff_ffff | uint64(w.value)<<32
	}
}

// rise raises the line. A rising edge at a masked edge-triggered input is ignored.
func (i *ioapicInput) rise() {
	i.high = true
	if i.entry&IOAPICLevel != 0 || i.entry&IOAPICMasked == 0 {
		i.asks = true
	}
}

// interrupts reports whether the processor receives an interrupt.
func (i *ioapicInput) interrupts() bool { return i.asks && i.entry&IOAPICMasked == 0 }

// A line that rises while its input is masked causes an interrupt after the input is unmasked. It does not matter
// between which of the register writes the line rises.
func TestIOAPICLine(t *testing.T) {
	const vector, cpu = 0x41, 3
	route := routing(testInput, vector, cpu, IOAPICLevel)
	writes := append(route[:],
		changing(testInput, vector, IOAPICLevel|IOAPICMasked), changing(testInput, vector, IOAPICLevel))
	// The line rises after the first write at the earliest, since before it the entry has the value that firmware left.
	for at := 1; at <= len(writes); at++ {
		var input ioapicInput
		for n, w := range writes {
			if n == at {
				input.rise()
			}
			input.write(w)
		}
		if at == len(writes) {
			input.rise()
		}
		if !input.interrupts() {
			t.Errorf("a line that rises before write %d does not interrupt", at)
		}
		if want := uint64(cpu)<<56 | IOAPICLevel | vector; input.entry != want {
			t.Errorf("the entry is %#x, not %#x", input.entry, want)
		}
	}
}

// An entry is masked between the writes of its two halves. The upper half selects the processor.
func TestIOAPICRouting(t *testing.T) {
	writes := routing(testInput, 0x41, 3, 0)
	var input ioapicInput
	for _, w := range writes[:len(writes)-1] {
		input.write(w)
		if input.entry&IOAPICMasked == 0 {
			t.Errorf("after a write of %#x to register %#x the input is not masked", w.value, w.register)
		}
	}
}
