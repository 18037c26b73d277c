package guest

import (
	"fmt"
	"strconv"
	"strings"
)

// Kinds of disks, for Disk.Kind.
const (
	DiskVirtio = "virtio"
	DiskNVMe   = "nvme"
	DiskAHCI   = "ahci"
)

// Disk describes a disk image of the host for the guest. A virtual machine sees it as hardware; a process gets a
// descriptor of the image.
type Disk struct {
	Kind     string // DiskVirtio, DiskNVMe or DiskAHCI
	FD       int    // descriptor of the image in a process
	Name     string // name of the image on the host, for messages
	Path     string // mount point of the file system on it; "/": the root; empty: a block device only
	ReadOnly bool
	Snapshot bool // writes stay in memory, and the image does not change
	Fresh    bool // the image was just created, so the program's user becomes the owner of its root directory
}

// encode writes the line of a disk.
func (d *Disk) encode(b *strings.Builder) {
	fmt.Fprintf(b, "disk kind=%s", d.Kind)
	if d.FD != 0 {
		fmt.Fprintf(b, " fd=%d", d.FD)
	}
	if d.Name != "" {
		fmt.Fprintf(b, " name=%s", escape(d.Name))
	}
	if d.Path != "" {
		fmt.Fprintf(b, " path=%s", escape(d.Path))
	}
	for _, f := range d.flags() {
		if *f.value {
			fmt.Fprintf(b, " %s=yes", f.key)
		}
	}
	b.WriteString("\n")
}

// flag is a boolean field of a Disk with its key in the encoding.
type flag struct {
	key   string
	value *bool
}

func (d *Disk) flags() []flag {
	return []flag{{"readonly", &d.ReadOnly}, {"snapshot", &d.Snapshot}, {"fresh", &d.Fresh}}
}

// set stores one word of a disk's line, key=value, in the field that it describes.
func (d *Disk) set(key, value string) (err error) {
	for _, f := range d.flags() {
		if f.key == key {
			*f.value = true
			return nil
		}
	}
	switch key {
	case "kind":
		d.Kind = value
	case "fd":
		d.FD, err = strconv.Atoi(value)
	case "name":
		d.Name, err = unescape(value)
	case "path":
		d.Path, err = unescape(value)
	default:
		err = errMalformed
	}
	return err
}
