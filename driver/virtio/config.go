package virtio

import "fmt"

// generationTries is the maximum number of attempts to read a configuration that changes during the read (virtio 1.2
// section 2.5.1).
const generationTries = 16

// ReadConfig calls the function read, and repeats this until the configuration has not changed during the call. size
// is the number of bytes that read accesses. It returns ErrLayout if the configuration is shorter than size, or if it
// changes during each attempt.
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

// Config reads fields of the configuration. Each access has the width of the field (virtio 1.2 section 4.1.3.1).
type Config struct{ d *Device }

// U8 returns the one-byte field at an offset.
func (c Config) U8(at int) uint8 { return c.d.t.config().Read8(at) }

// U16 returns the two-byte field at an offset.
func (c Config) U16(at int) uint16 { return c.d.t.config().Read16(at) }

// U32 returns the four-byte field at an offset.
func (c Config) U32(at int) uint32 { return c.d.t.config().Read32(at) }

// U64 returns the eight-byte field at an offset. It reads the field in two halves.
func (c Config) U64(at int) uint64 { return uint64(c.U32(at)) | uint64(c.U32(at+4))<<32 }
