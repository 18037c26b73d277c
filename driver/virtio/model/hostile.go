package model

// Hostile says how a device lies.
type Hostile struct {
	// Next returns the next decision, as a lie; a fuzzer's input, or a list. A
	// device that has run out of decisions does as it should.
	Next func() (Lie, uint32)

	NeverResets     bool
	RefusesFeatures bool
	ConfigMoves     bool // the configuration changes at every look
	// Read changes what a register reads as; nil: it does not. at counts from the
	// begin of the device's registers.
	Read func(at, width int, v uint64) uint64
}

// Lie is a way to give a chain back.
type Lie uint8

// Lies. What goes with them is a number.
const (
	Truth    Lie = iota // as it should
	WrongID             // another chain, by number
	TooLong             // with more bytes written than there was room for
	Written             // with that many bytes written
	Twice               // two times
	Jump                // the index moves by that number
	Silence             // not at all
	Late                // not now, but with the next
	Broken              // the device says that it needs a reset
	Changing            // the configuration changes meanwhile
	Spurious            // and interrupts that nobody asked for
	Quiet               // and the interrupt is lost
	Lies                // how many there are
)

// Script is a Next that goes through a list, of a lie and its number each.
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

// FromBytes is a Next that takes two bytes of an input each time.
func FromBytes(input []byte) func() (Lie, uint32) {
	return func() (Lie, uint32) {
		if len(input) < 2 {
			return Truth, 0
		}
		l, n := Lie(input[0])%Lies, uint32(input[1])
		input = input[2:]
		if n >= 0xf0 {
			n = n << 24 // far out
		}
		return l, n
	}
}

// lie gives chains back as h says.
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

// scribble writes an element that the driver may be reading, as a device that lies
// may: that race is meant, and hidden from the race detector.
//
//go:norace
func (q *Queue) scribble(i int, id, written uint32) { q.element(i, id, written) }
