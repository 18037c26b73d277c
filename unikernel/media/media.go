// Package media writes disk and CD images from which UEFI firmware starts an application: raw disks, qcow2 disks, and ISO
// 9660 CDs. An image holds only the application, with the name /EFI/BOOT/BOOTX64.EFI. All of its content, also its
// identifiers, depends only on the application.
//
// Reading order: fat.go (the file system), gpt.go (a disk), qcow2.go, iso.go. Sources are named in each file.
package media

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// Formats of images.
const (
	Raw   = "img"
	QCOW2 = "qcow2"
	ISO   = "iso"
)

// ErrTooLarge is returned for an application that does not fit into an image.
var ErrTooLarge = errors.New("media: the application is larger than 1.9 GiB")

// sector is the size of a sector of a disk, in bytes.
const sector = 512

var le = binary.LittleEndian

// extent is a part of an image.
type extent struct {
	at   int64 // offset in bytes
	data []byte
}

// image is the content of a disk or a CD: size bytes, which are zero outside of the extents. The extents are sorted and do not
// overlap.
type image struct {
	size    int64
	extents []extent
}

func (m *image) add(at int64, data []byte) { m.extents = append(m.extents, extent{at, data}) }

// Write writes an image in a format into a file, whose content it replaces. Parts of a raw image that are zero become holes of
// the file.
func Write(f *os.File, format string, application []byte) error {
	m, err := encode(format, application)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if err := f.Truncate(m.size); err != nil {
		return err
	}
	for _, e := range m.extents {
		if _, err := f.WriteAt(e.data, e.at); err != nil {
			return err
		}
	}
	return nil
}

// encode returns the content of the file.
func encode(format string, application []byte) (*image, error) {
	volume, err := fat(application)
	if err != nil {
		return nil, err
	}
	switch format {
	case Raw:
		return gpt(volume, application), nil
	case QCOW2:
		return qcow2(gpt(volume, application)), nil
	case ISO:
		return iso(volume), nil
	}
	return nil, fmt.Errorf("media: there is no format %q", format)
}

// identifier returns n bytes that depend on the application and the purpose. n is at most 32.
func identifier(application []byte, purpose string, n int) []byte {
	h := sha256.New()
	io.WriteString(h, "loam "+purpose+"\x00")
	h.Write(application)
	return h.Sum(nil)[:n]
}

// align rounds up to a multiple of a unit.
func align(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
