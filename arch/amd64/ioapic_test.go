package amd64

import "testing"

// ioapicInput is one input as the data sheet of the 82093AA has it.
type ioapicInput struct {
	entry uint64
	high  bool // the line
	asks  bool // what the chip remembers of it
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

// rise is what happens when the line does. The edge of one at a masked input is ignored.
func (i *ioapicInput) rise() {
	i.high = true
	if i.entry&IOAPICLevel != 0 || i.entry&IOAPICMasked == 0 {
		i.asks = true
	}
}

// interrupts reports whether the processor hears of it.
func (i *ioapicInput) interrupts() bool { return i.asks && i.entry&IOAPICMasked == 0 }

// A line that rises while its input is masked and let go again interrupts, whenever in
// between it rises.
func TestIOAPICLine(t *testing.T) {
	const vector, cpu = 0x41, 3
	route := routing(testInput, vector, cpu, IOAPICLevel)
	writes := append(route[:],
		changing(testInput, vector, IOAPICLevel|IOAPICMasked), changing(testInput, vector, IOAPICLevel))
	for at := 1; at <= len(writes); at++ { // before the first the entry is firmware's
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

// Between the halves of an entry, of which the second names the processor, it is masked.
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
