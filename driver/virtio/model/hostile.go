package model

// Hostile describes how a device violates the standard.
type Hostile struct {
	// Next returns the next violation and its parameter, from a fuzzer's input or a list. After the last one it
	// returns Truth.
	Next func() (Lie, uint32)

	NeverResets     bool
	RefusesFeatures bool
	ConfigMoves     bool // the configuration changes at every read
	// Read replaces the value v of a register read; nil: values are not changed. at is relative to the start of the
	// device's registers.
	Read func(at, width int, v uint64) uint64
}

// Lie is a way to complete a chain wrongly.
type Lie uint8

// Values of Lie. Each has a parameter, n.
const (
	Truth    Lie = iota // completed correctly
	WrongID             // completes chain n instead
	TooLong             // reports 1+n more bytes than were written
	Written             // reports n bytes written
	Twice               // completed twice
	Jump                // advances the index by n
	Silence             // never completed
	Late                // completed together with the next one
	Broken              // sets DEVICE_NEEDS_RESET too
	Changing            // changes the configuration too
	Spurious            // raises an unexpected interrupt too
	Quiet               // completed without an interrupt
	Lies                // number of values
)

// Script returns a Next that goes through a list.
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

// FromBytes returns a Next that consumes two bytes of an input at a time.
func FromBytes(input []byte) func() (Lie, uint32) {
	return func() (Lie, uint32) {
		if len(input) < 2 {
			return Truth, 0
		}
		l, n := Lie(input[0])%Lies, uint32(input[1])
		input = input[2:]
		if n >= 0xf0 {
			n = n << 24 // far out of range
		}
		return l, n
	}
}

// lie completes chains wrongly, as h.Next decides.
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
			q.done++ // shown with the next
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

// scribble writes an element that the driver may be reading, as a hostile device may do. The data race is intended,
// and is hidden from the race detector.
//
//go:norace
func (q *Queue) scribble(i int, id, written uint32) { q.element(i, id, written) }

// overwrite copies p to a segment that the driver may be using again, because the device has completed another chain in
// place of this one. The data race is intended, and is hidden from the race detector: hence no call of copy, which reports
// races in any function.
//
//go:norace
func overwrite(segment, p []byte) int {
	n := min(len(segment), len(p))
	for i := range n {
		segment[i] = p[i]
	}
	return n
}
