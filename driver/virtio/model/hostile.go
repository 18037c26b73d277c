package model

// Hostile describes how a device violates the standard.
type Hostile struct {
	// Next returns the next violation and its parameter. They come from a list, or from the input of a fuzz test. After
	// the last violation it returns Truth.
	Next func() (Lie, uint32)

	NeverResets     bool
	RefusesFeatures bool
	ConfigMoves     bool // the configuration changes at every read
	// Read returns the value that the driver reads from a register whose correct value is v; nil: all values are
	// correct. at is the offset in the device's registers, width the width of the access in bytes.
	Read func(at, width int, v uint64) uint64
}

// Lie is a way in which a device completes a chain incorrectly.
type Lie uint8

// Values of Lie. Each has a parameter n, which some of them use.
const (
	Truth    Lie = iota // completes the chain correctly
	WrongID             // completes chain n instead of this chain
	TooLong             // reports 1+n more bytes than were written
	Written             // reports that n bytes were written
	Twice               // completes the chain twice
	Jump                // advances the used index by n
	Silence             // never completes the chain
	Late                // completes the chain together with the next one
	Broken              // completes the chain and sets DEVICE_NEEDS_RESET
	Changing            // completes the chain and changes the configuration
	Spurious            // completes the chain and raises an unexpected interrupt
	Quiet               // completes the chain without an interrupt
	Lies                // number of values of Lie
)

// Script returns a function for Hostile.Next that returns the elements of a list.
func Script(lies ...struct {
	Lie    Lie
	Number uint32
}) func() (Lie, uint32) {
	return func() (Lie, uint32) {
		if len(lies) == 0 {
			return Truth, 0
		}
		l := lies[0]
		lies = lies[1:]
		return l.Lie, l.Number
	}
}

// FromBytes returns a function for Hostile.Next that takes each violation from two bytes of input.
func FromBytes(input []byte) func() (Lie, uint32) {
	return func() (Lie, uint32) {
		if len(input) < 2 {
			return Truth, 0
		}
		l, n := Lie(input[0])%Lies, uint32(input[1])
		input = input[2:]
		if n >= 0xf0 {
			n = n << 24 // large numbers become far out of range
		}
		return l, n
	}
}

// lie completes chains in the ways that h.Next returns.
func (q *Queue) lie(h *Hostile, heads []uint16, written []uint32) {
	for i, head := range heads {
		id, length := uint32(head), written[i]
		lie, number := Truth, uint32(0)
		if h.Next != nil {
			lie, number = h.Next()
		}
		step, advance := 1, q.advance
		switch lie {
		case WrongID:
			id = number
		case TooLong:
			length += 1 + number
		case Written:
			length = number
		case Twice:
			q.scribble(1, id, length)
			step = 2
		case Jump:
			step = int(int8(number))
		case Silence:
			continue
		case Late:
			q.scribble(0, id, length)
			q.done++ // the driver sees this completion together with the next
			continue
		case Broken:
			q.device.Break()
		case Changing:
			q.device.Change(func(config []byte) {
				for i := range config {
					config[i] ^= uint8(number)
				}
			})
		case Spurious:
			q.device.interrupt(q.vector, isrQueue|isrConfig)
		case Quiet:
			advance = q.move
		}
		q.scribble(0, id, length)
		advance(step)
	}
}

// scribble writes an element of the used ring that the driver may be reading, as a hostile device may do. The data race
// is intended; norace hides it from the race detector.
//
//go:norace
func (q *Queue) scribble(i int, id, written uint32) { q.element(i, id, written) }

// overwrite copies p to a segment that the driver may be using again, because the device has completed another chain in
// place of this one. The data race is intended; norace hides it from the race detector. overwrite does not call the
// builtin copy, for which the race detector reports races in any function.
//
//go:norace
func overwrite(segment, p []byte) int {
	n := min(len(segment), len(p))
	for i := range n {
		segment[i] = p[i]
	}
	return n
}
