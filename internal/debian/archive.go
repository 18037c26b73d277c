package debian

import (
	"bytes"
	"fmt"
)

// Archive is an initial file system for Linux: a cpio archive in the "newc" format
// (Documentation/driver-api/early-userspace/buffer-format.rst of Linux). Every header field is eight
// hexadecimal digits. Names and contents are padded to four bytes.
type Archive struct {
	b     bytes.Buffer
	inode int
}

const (
	isFolder = 0o040000
	isFile   = 0o100000
	isDevice = 0o020000 // a character device
)

// Folder adds a folder with mode 0755.
func (a *Archive) Folder(name string) { a.entry(name, isFolder|0o755, 0, 0, nil) }

// File adds a file with mode 0755.
func (a *Archive) File(name string, data []byte) { a.entry(name, isFile|0o755, 0, 0, data) }

// Device adds a character device with mode 0600.
func (a *Archive) Device(name string, major, minor int) {
	a.entry(name, isDevice|0o600, major, minor, nil)
}

// End adds the trailer and returns the archive.
func (a *Archive) End() []byte {
	a.entry("TRAILER!!!", 0, 0, 0, nil)
	return a.b.Bytes()
}

// entry adds a header with a name, and the data.
func (a *Archive) entry(name string, mode, major, minor int, data []byte) {
	a.inode++
	const links = 1
	a.b.WriteString("070701")
	for _, field := range []int{
		a.inode, mode, 0, 0, links, 0, len(data), 0, 0, major, minor, len(name) + 1, 0,
	} {
		fmt.Fprintf(&a.b, "%08X", field)
	}
	a.b.WriteString(name)
	a.b.WriteByte(0)
	a.pad()
	a.b.Write(data)
	a.pad()
}

func (a *Archive) pad() {
	for a.b.Len()%4 != 0 {
		a.b.WriteByte(0)
	}
}
