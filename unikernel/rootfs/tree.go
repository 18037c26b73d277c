package rootfs

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"loam/fs"
)

// tree is a tree of files to which archives are added. An entry replaces an earlier file of its name; a directory keeps
// its content. Layers follow the OCI image specification, "Image Layer Filesystem Changeset".
type tree struct {
	root     *node
	layer    int      // number of the archive that is being added, from 1
	contents *os.File // contents of regular files, one after the other
	size     int64    // of contents, in bytes
	most     int64    // maximum of size, and of all bytes read
	read     int64    // bytes of archives that were read
	names    int
	maxNames int
	devices  int // device files outside of /dev, which were left out
}

// node is a file of any type. A file with several names is one node.
type node struct {
	kind     byte // tar.TypeDir, TypeReg, TypeSymlink or TypeFifo
	mode     int64
	uid, gid int
	time     time.Time
	xattrs   map[string]string // PAX records of extended attributes
	target   string            // of a symbolic link
	at, size int64             // content of a regular file: offset in tree.contents, and length

	parent   *node // of a directory; the root's is itself
	children map[string]entry
}

// entry is one name of a node.
type entry struct {
	*node
	layer int // the last archive that has the name
}

// Limits of path names, as on Linux.
const (
	maxName  = fs.MaxName
	maxPath  = fs.MaxPath - 1
	maxLinks = 40 // symbolic links that are followed in one path
)

// Prefixes of names in a layer that hide names of earlier layers.
const (
	whiteout      = ".wh."
	opaque        = ".wh..wh..opq"
	whiteoutOther = ".wh..wh." // files of AUFS, which the specification reserves
)

func newTree(contents *os.File, most int64, maxNames int) *tree {
	t := &tree{contents: contents, most: most, maxNames: maxNames}
	t.root = &node{kind: tar.TypeDir, mode: 0o755, time: time.Unix(0, 0), children: map[string]entry{}}
	t.root.parent = t.root
	return t
}

// addArchive adds the files of an archive. If layer is true, it obeys whiteouts.
func (t *tree) addArchive(r io.Reader, layer bool) error {
	t.layer++
	archive := tar.NewReader(bufio.NewReaderSize(&meter{r, t}, 64<<10))
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		if err := t.add(h, archive, layer); err != nil {
			return err
		}
	}
}

// meter counts the bytes that are read from archives, and returns errTooLarge when they are too many. Otherwise, a small
// file that decompresses to zeros without end would never be read to its end.
type meter struct {
	from io.Reader
	tree *tree
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if m.tree.read += int64(n); m.tree.read > m.tree.most {
		return 0, errTooLarge()
	}
	return n, err
}

// Advice for archives that cannot be a root folder.
const makeAgain = "make the archive again"

// add adds one entry of an archive.
func (t *tree) add(h *tar.Header, content io.Reader, layer bool) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := inside(h.Name)
	if err != nil {
		return err
	}
	if name == "" {
		if h.Typeflag == tar.TypeDir {
			t.root.describe(h)
		}
		return nil
	}
	if layer && isReserved(name) {
		return nil
	}
	dir, base := path.Split(name)
	parent, err := t.folder(dir)
	if err != nil {
		return errorf(makeAgain, "its file %s cannot be created: %v", h.Name, err)
	}
	if layer && strings.HasPrefix(base, whiteout) {
		parent.hide(base, t.layer)
		return nil
	}
	old, exists := parent.children[base]
	if exists && old.kind == tar.TypeDir && h.Typeflag == tar.TypeDir {
		old.describe(h)
		parent.children[base] = entry{old.node, t.layer}
		return nil
	}
	n, err := t.newNode(h, parent, content)
	if err != nil || n == nil {
		return err
	}
	return t.put(parent, base, n)
}

// put gives a node a name.
func (t *tree) put(parent *node, name string, n *node) error {
	if t.names++; t.names > t.maxNames {
		return errTooMany(t.maxNames)
	}
	parent.children[name] = entry{n, t.layer}
	return nil
}

// newNode returns the node that an entry describes. It returns nil for a device file.
func (t *tree) newNode(h *tar.Header, parent *node, content io.Reader) (*node, error) {
	n := &node{kind: h.Typeflag}
	n.describe(h)
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		n.kind = tar.TypeReg
		return n, t.store(n, content)
	case tar.TypeDir:
		n.parent, n.children = parent, map[string]entry{}
	case tar.TypeSymlink:
		if n.target = h.Linkname; n.target == "" || len(n.target) > maxPath {
			return nil, errorf(makeAgain, "the symbolic link %s has a target of %d bytes", h.Name, len(n.target))
		}
	case tar.TypeFifo:
	case tar.TypeLink:
		return t.linked(h)
	case tar.TypeChar, tar.TypeBlock:
		if !strings.HasPrefix(path.Clean("/"+h.Name), "/dev/") { // the guest has its own files there
			t.devices++
		}
		return nil, nil
	default:
		return nil, errorf(makeAgain, "the type %q of %s is not known", h.Typeflag, h.Name)
	}
	return n, nil
}

// describe sets the attributes that all types of files have.
func (n *node) describe(h *tar.Header) {
	n.mode, n.uid, n.gid, n.time = h.Mode&int64(fs.Permissions), h.Uid, h.Gid, h.ModTime
	n.xattrs = nil
	for key, value := range h.PAXRecords {
		if strings.HasPrefix(key, xattrRecord) {
			if n.xattrs == nil {
				n.xattrs = map[string]string{}
			}
			n.xattrs[key] = value
		}
	}
}

// xattrRecord is the prefix of PAX records with extended attributes, as GNU tar and star write them.
const xattrRecord = "SCHILY.xattr."

// store copies the content of a regular file.
func (t *tree) store(n *node, content io.Reader) error {
	n.at = t.size
	var err error
	n.size, err = io.Copy(&limitedWriter{t.contents, t.most - t.size}, content)
	t.size += n.size
	if err != nil {
		return damaged(err)
	}
	return nil
}

// linked returns the node whose second name an entry is (a hard link).
func (t *tree) linked(h *tar.Header) (*node, error) {
	target, err := inside(h.Linkname)
	if err != nil {
		return nil, err
	}
	dir, base := path.Split(target)
	parent, err := t.find(dir, false)
	if err == nil {
		n := parent.children[base].node
		switch {
		case n == nil:
		case n.kind == tar.TypeDir:
			return nil, errorf(makeAgain, "the hard link %s leads to the folder %s", h.Name, h.Linkname)
		default:
			return n, nil
		}
	}
	return nil, errorf(makeAgain, "the hard link %s leads to %s, which it does not contain", h.Name, h.Linkname)
}

// inside returns a cleaned path without a slash at its start. It is empty for the root. A path that leaves the root is an
// error.
func inside(name string) (string, error) {
	depth := 0
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return "", errorf(makeAgain, "its path %s leads out of the root folder", name)
		}
		if len(part) > maxName {
			return "", errorf(makeAgain, "the name %.40s... has %d bytes, more than %d", part, len(part), maxName)
		}
	}
	if len(name) > maxPath {
		return "", errorf(makeAgain, "the path %.40s... has %d bytes, more than %d", name, len(name), maxPath)
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

var (
	errNoFolder = errors.New("a file is in the place of its folder")
	errLinks    = errors.New("it is behind too many symbolic links")
	errNone     = errors.New("its folder does not exist")
)

// folder returns the directory at a path. Missing directories are created.
func (t *tree) folder(name string) (*node, error) { return t.find(name, true) }

// find returns the directory at a path. It follows symbolic links as chroot(2) does: the root is its own parent.
func (t *tree) find(name string, create bool) (*node, error) {
	at, links := t.root, 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			at = at.parent
			continue
		}
		next := at.children[part].node
		if next == nil {
			if !create {
				return nil, errNone
			}
			next = &node{kind: tar.TypeDir, mode: 0o755, time: t.root.time, parent: at, children: map[string]entry{}}
			if err := t.put(at, part, next); err != nil {
				return nil, err
			}
		}
		switch next.kind {
		case tar.TypeDir:
			at = next
		case tar.TypeSymlink:
			if links++; links > maxLinks {
				return nil, errLinks
			}
			if path.IsAbs(next.target) {
				at = t.root
			}
			rest = slices.Concat(strings.Split(next.target, "/"), rest)
		default:
			return nil, errNoFolder
		}
	}
	return at, nil
}

// hide applies a whiteout in a directory: it removes names of earlier layers.
func (n *node) hide(name string, layer int) {
	if name == opaque {
		n.hideAll(layer)
		return
	}
	name = strings.TrimPrefix(name, whiteout)
	if e, exists := n.children[name]; exists && e.hidden(layer) {
		delete(n.children, name)
	}
}

// isReserved reports whether a path has a name that AUFS uses for its own files.
func isReserved(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, whiteoutOther) && part != opaque {
			return true
		}
	}
	return false
}

// hideAll removes the names of earlier layers below a directory.
func (n *node) hideAll(layer int) {
	maps.DeleteFunc(n.children, func(_ string, e entry) bool { return e.hidden(layer) })
}

// hidden reports whether a whiteout in a layer removes a name, and removes the names below it. A directory stays if the
// layer itself has files in it.
func (e entry) hidden(layer int) bool {
	if e.kind == tar.TypeDir {
		e.hideAll(layer)
	}
	return e.layer < layer && len(e.children) == 0
}

// write writes the tree as an archive. Names are sorted, so that equal trees give equal archives.
func (t *tree) write(to io.Writer) error {
	w := &treeWriter{tree: t, to: tar.NewWriter(to), written: map[*node]string{}}
	if err := w.write(t.root, "."); err != nil {
		return err
	}
	return w.to.Close()
}

// treeWriter is a write in progress.
type treeWriter struct {
	tree    *tree
	to      *tar.Writer
	written map[*node]string // the first name written of each regular file; further names become hard links to it
}

// write writes a file, and the files below it.
func (w *treeWriter) write(n *node, name string) error {
	if len(name) > maxPath {
		return errorf(makeAgain, "the path %.40s... has more than %d bytes", name, maxPath)
	}
	h := &tar.Header{
		Name: name, Typeflag: n.kind, Mode: n.mode, Uid: n.uid, Gid: n.gid, ModTime: n.time, Linkname: n.target,
		Size: n.size, PAXRecords: n.xattrs,
	}
	if n.time.Nanosecond() != 0 {
		h.Format = tar.FormatPAX // the other formats have whole seconds
	}
	first, again := w.written[n]
	switch {
	case again:
		h.Typeflag, h.Linkname, h.Size, h.PAXRecords = tar.TypeLink, first, 0, nil
	case n.kind != tar.TypeDir:
		w.written[n] = name
	}
	if err := w.to.WriteHeader(h); err != nil {
		return unwritable(name, err)
	}
	if h.Typeflag == tar.TypeReg {
		if _, err := io.Copy(w.to, io.NewSectionReader(w.tree.contents, n.at, n.size)); err != nil {
			return unwritable(name, err)
		}
	}
	for _, child := range slices.Sorted(maps.Keys(n.children)) {
		if err := w.write(n.children[child].node, path.Join(name, child)); err != nil {
			return err
		}
	}
	return nil
}

// unwritable returns the error for a file that cannot be written to the result.
func unwritable(name string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return errorf(makeAgain, "its file %s cannot be copied: %v", name, err)
}
