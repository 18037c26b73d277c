package imagefile

import (
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"loam/fs"
)

// Cat writes the content of a file to w.
func (i *Image) Cat(name string, w io.Writer) error {
	place, err := i.View.Lookup(i.View.Root, name, true)
	if err != nil {
		return i.missing(name, err)
	}
	switch place.Node.Attr().Mode.Type() {
	case fs.Regular:
	case fs.Dir:
		return errorf("name a file in it", "%s:%s is a folder", i.name, name)
	default:
		return errorf("name a regular file", "%s:%s has no content", i.name, name)
	}
	if err := i.read(place, w); err != nil {
		return i.missing(name, err)
	}
	return nil
}

// names returns the names in a folder, sorted.
func (i *Image) names(place fs.Place) (names []string, err error) {
	dir, ok := place.Node.(fs.Directory)
	if !ok {
		return nil, nil
	}
	err = dir.Read(0, func(e fs.Entry) bool {
		names = append(names, e.Name)
		return true
	})
	slices.Sort(names)
	return names, err
}

// List lists a folder, or a file, one name a line; long adds the attributes in the format of ls -ln, and all adds
// the contents of the folders below.
func (i *Image) List(name string, long, all bool, w io.Writer) error {
	place, err := i.View.Lookup(i.View.Root, name, !long)
	if err != nil {
		return i.missing(name, err)
	}
	if place.Node.Attr().Mode.Type() != fs.Dir {
		return i.line(place, name, long, w)
	}
	return i.list(place, name, "", long, all, w)
}

// list lists a folder; prefix comes before its names.
func (i *Image) list(place fs.Place, name, prefix string, long, all bool, w io.Writer) error {
	names, err := i.names(place)
	if err != nil {
		return i.missing(name, err)
	}
	for _, n := range names {
		below := path.Join("/", name, n)
		child, err := i.View.Lookup(i.View.Root, below, false)
		if err != nil {
			return i.missing(below, err)
		}
		if err := i.line(child, prefix+n, long, w); err != nil {
			return err
		}
		if all && child.Node.Attr().Mode.Type() == fs.Dir {
			if err := i.list(child, below, prefix+n+"/", long, all, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// line writes the line of a file.
func (i *Image) line(place fs.Place, name string, long bool, w io.Writer) error {
	a := place.Node.Attr()
	if !long {
		_, err := fmt.Fprintln(w, quoted(name))
		return err
	}
	size := fmt.Sprint(a.Size)
	if kind := a.Mode.Type(); kind == fs.CharDevice || kind == fs.BlockDevice {
		size = fmt.Sprintf("%d,%d", a.Device.Major, a.Device.Minor)
	}
	_, err := fmt.Fprintf(w, "%s %3d %5d %5d %12s %s %s%s\n", modeText(a.Mode), a.Links, a.UID, a.GID, size, timeText(a.Modify), quoted(name), linkText(place))
	return err
}

// quoted returns a name as it is if it can be printed, and quoted otherwise.
func quoted(name string) string {
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}

func linkText(place fs.Place) string {
	if l, ok := place.Node.(fs.Link); ok {
		if to, err := l.Target(); err == nil {
			return " -> " + quoted(to)
		}
	}
	return ""
}

func timeText(t fs.Time) string { return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04:05") }

// modeText returns the mode in the format of ls -l.
func modeText(m fs.Mode) string {
	kind := map[fs.Mode]byte{fs.Regular: '-', fs.Dir: 'd', fs.Symlink: 'l', fs.CharDevice: 'c', fs.BlockDevice: 'b', fs.Fifo: 'p', fs.Socket: 's'}[m.Type()]
	b := []byte("?rwxrwxrwx")
	b[0] = max(kind, '-')
	for n := range 9 {
		if m>>(8-n)&1 == 0 {
			b[n+1] = '-'
		}
	}
	for _, s := range []struct {
		bit   fs.Mode
		at    int
		mark  byte
		other byte // the letter that is shown if the execute permission is not set
	}{{fs.SetUID, 3, 's', 'S'}, {fs.SetGID, 6, 's', 'S'}, {fs.Sticky, 9, 't', 'T'}} {
		if m&s.bit != 0 {
			if b[s.at] == 'x' {
				b[s.at] = s.mark
			} else {
				b[s.at] = s.other
			}
		}
	}
	return string(b)
}

// Stat writes the attributes of a file.
func (i *Image) Stat(name string, w io.Writer) error {
	place, err := i.View.Lookup(i.View.Root, name, false)
	if err != nil {
		return i.missing(name, err)
	}
	a := place.Node.Attr()
	_, err = fmt.Fprintf(w, "name      %s%s\ninode     %d\nmode      %04o %s\nlinks     %d\nowner     %d:%d\nsize      %d\nblocks    %d of 512 bytes\nmodified  %s\nchanged   %s\naccessed  %s\n",
		quoted(name), linkText(place), a.Inode, a.Mode&fs.Permissions, modeText(a.Mode), a.Links, a.UID, a.GID, a.Size, a.Blocks,
		timeText(a.Modify), timeText(a.Status), timeText(a.Access))
	for _, attr := range i.View.Xattrs(place) {
		if value, xerr := i.View.Xattr(place, attr); xerr == nil && err == nil {
			_, err = fmt.Fprintf(w, "attribute %s=%q\n", attr, value)
		}
	}
	return err
}

// Describe writes the size, state and features of the file system.
func (i *Image) Describe(w io.Writer) error {
	s, u := i.Summary, i.Usage()
	state := "clean"
	if s.Dirty {
		state = "not unmounted: its journal is recovered when it is mounted"
	}
	if s.ReadOnly != "" {
		state += "; only read: " + s.ReadOnly
	}
	_, err := fmt.Fprintf(w, "label     %s\nuuid      %x-%x-%x-%x-%x\nsize      %d blocks of %d bytes\nfree      %d blocks, %d of %d inodes\nstate     %s\nfeatures  %s\n",
		quoted(s.Label), s.UUID[:4], s.UUID[4:6], s.UUID[6:8], s.UUID[8:10], s.UUID[10:], s.Blocks, s.BlockSize,
		u.BlocksFree, u.FilesFree, u.Files, state, s.Features)
	return err
}
