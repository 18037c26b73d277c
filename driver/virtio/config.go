package virtio

import "fmt"

// generationTries bounds how often the configuration is read again because it
// changed meanwhile (section 2.5.1).
const generationTries = 16

// ReadConfig has read called until the configuration was the same from its begin to
// its end. size is how many bytes of it read looks at.
func (d *Device) ReadConfig(size int, read func(c Config)) error {
	r := d.t.config()
	if r == nil || r.Size() < size {
		return d.wrap(fmt.Errorf("%w: its configuration is shorter than %d bytes", ErrLayout, size))
	}
	for range generationTries {
		before := d.t.generation()
		read(Config{d})
		if d.t.generation() == before {
			return nil
		}
	}
	return d.wrap(fmt.Errorf("%w: its configuration does not stay", ErrLayout))
}

// Config reads fields of the configuration, each by its width (section 4.1.3.1).
type Config struct{ d *Device }

// U8 is the field of one byte at a place.
func (c Config) U8(at int) uint8 { return c.d.t.config().Read8(at) }

// U16 is a field of two bytes.
func (c Config) U16(at int) uint16 { return c.d.t.config().Read16(at) }

// U32 is a field of four bytes.
func (c Config) U32(at int) uint32 { return c.d.t.config().Read32(at) }

// U64 is a field of eight bytes, which is read in two halves.
func (c Config) U64(at int) uint64 { return uint64(c.U32(at)) | uint64(c.U32(at+4))<<32 }
