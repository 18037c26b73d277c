package mount

import (
	"slices"
	"strings"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
)

// context is the file of fsopen(2) and fspick(2): a file system that is being configured.
type context struct {
	q file.Queue

	mu       sync.Mutex // guards the fields below
	kind     string
	source   string
	options  []string
	readOnly bool // see access
	access   bool // the parameter ro or rw was set since the file system was changed last
	phase    phase
	root     fs.Place // root of the new mount, or of the mount that fspick has found
}

// phase is the state of a context: it gets parameters until the file system is created, and is then mounted once.
type phase uint8

const (
	parameters phase = iota
	created          // fsmount(2) may follow
	changing         // FSCONFIG_CMD_RECONFIGURE may follow
	failed
)

// Name implements file.Named.
func (x *context) Name() string { return "anon_inode:[fscontext]" }

func (x *context) Queue() *file.Queue { return &x.q }
func (x *context) Mode() uint32       { return 0o600 }
func (x *context) Events() file.Events {
	return file.PollIn | file.PollOut
}

// Read would return messages about errors. There are none.
func (x *context) Read([]byte) (int, linux.Errno)  { return 0, linux.ENODATA }
func (x *context) Write([]byte) (int, linux.Errno) { return 0, linux.EINVAL }
func (x *context) Close()                          {}

// fsopen implements fsopen(2). Errors: EPERM, EINVAL, EFAULT, ENODEV.
func fsopen(c call.Caller, a call.Args) (uint64, linux.Errno) {
	switch {
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return 0, linux.EPERM
	case number(a.A2)&^linux.FSOPEN_CLOEXEC != 0:
		return 0, linux.EINVAL
	}
	kind, errno := text(c, a.A1, mem.PageSize)
	if errno != 0 {
		return 0, errno
	}
	if !isMemory(kind) && !c.Process.View().Tree.HasSingle(kind) {
		return 0, linux.ENODEV
	}
	return result(c.Process.Install(&context{kind: kind}, number(a.A2)&linux.FSOPEN_CLOEXEC != 0))
}

// text reads a string of less than most bytes. Errors: EFAULT, EINVAL for a longer one.
func text(c call.Caller, addr uint64, most int) (string, linux.Errno) {
	s, errno := c.Memory.String(addr, most)
	if errno == linux.ENAMETOOLONG {
		errno = linux.EINVAL
	}
	return s, errno
}

// fspick implements fspick(2). Errors: EPERM, EINVAL, EFAULT, those of paths.
func fspick(c call.Caller, a call.Args) (uint64, linux.Errno) {
	const known = linux.FSPICK_CLOEXEC | linux.FSPICK_SYMLINK_NOFOLLOW | linux.FSPICK_NO_AUTOMOUNT | linux.FSPICK_EMPTY_PATH
	flags := number(a.A3)
	switch {
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return 0, linux.EPERM
	case flags&^known != 0:
		return 0, linux.EINVAL
	}
	_, at, errno := find(c, a.A1, a.A2, flags&linux.FSPICK_SYMLINK_NOFOLLOW == 0, flags&linux.FSPICK_EMPTY_PATH != 0)
	switch {
	case errno != 0:
		return 0, errno
	case !at.IsMountRoot():
		return 0, linux.EINVAL
	}
	return result(c.Process.Install(&context{phase: changing, root: at}, flags&linux.FSPICK_CLOEXEC != 0))
}

// find reads a path and finds its file: see posix.Process.Find.
func find(c call.Caller, dirfd, addr uint64, follow, mayBeEmpty bool) (*fs.View, fs.Place, linux.Errno) {
	path, errno := c.Memory.String(addr, fs.MaxPath)
	if errno != 0 {
		return nil, fs.Place{}, errno
	}
	return c.Process.Find(number(dirfd), path, follow, mayBeEmpty)
}

// contextOf returns the context of a descriptor. Errors: EBADF, EINVAL for another file.
func contextOf(c call.Caller, fd uint64) (*context, linux.Errno) {
	o := c.Process.Opened(number(fd))
	if o == nil || o.PathOnly() {
		return nil, linux.EBADF
	}
	x, ok := o.File.(*context)
	if !ok {
		return nil, linux.EINVAL
	}
	return x, 0
}

// fsconfig implements fsconfig(2). Errors: EINVAL, EBADF, EFAULT, EOPNOTSUPP, EBUSY.
func fsconfig(c call.Caller, a call.Args) (uint64, linux.Errno) {
	command := number(a.A2)
	if number(a.A1) < 0 {
		return 0, linux.EINVAL
	}
	if errno := checkCommand(command, a.A3 != 0, a.A4 != 0, number(a.A5)); errno != 0 {
		return 0, errno
	}
	x, errno := contextOf(c, a.A1)
	if errno != 0 {
		return 0, errno
	}
	var key, value string
	const maxKey, maxValue = 256, 256
	if a.A3 != 0 {
		if key, errno = text(c, a.A3, maxKey); errno != 0 {
			return 0, errno
		}
	}
	if command == linux.FSCONFIG_SET_STRING {
		if value, errno = text(c, a.A4, maxValue); errno != 0 {
			return 0, errno
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch command {
	case linux.FSCONFIG_CMD_CREATE:
		return 0, x.create(c)
	case linux.FSCONFIG_CMD_RECONFIGURE:
		return 0, x.reconfigure(c)
	}
	return 0, x.set(command, key, value)
}

// checkCommand checks which arguments a command has. Errors: EINVAL, EOPNOTSUPP.
func checkCommand(command int, key, value bool, aux int) linux.Errno {
	const maxBinary = 1 << 20
	wrong := false
	switch command {
	case linux.FSCONFIG_SET_FLAG:
		wrong = !key || value || aux != 0
	case linux.FSCONFIG_SET_STRING:
		wrong = !key || !value || aux != 0
	case linux.FSCONFIG_SET_BINARY:
		wrong = !key || !value || aux <= 0 || aux > maxBinary
	case linux.FSCONFIG_SET_PATH, linux.FSCONFIG_SET_PATH_EMPTY:
		wrong = !key || !value || aux < 0 && aux != linux.AT_FDCWD
	case linux.FSCONFIG_SET_FD:
		wrong = !key || value || aux < 0
	case linux.FSCONFIG_CMD_CREATE, linux.FSCONFIG_CMD_RECONFIGURE:
		wrong = key || value || aux != 0
	default:
		return linux.EOPNOTSUPP
	}
	if wrong {
		return linux.EINVAL
	}
	return 0
}

// set sets a parameter. Errors: EBUSY, EINVAL for a parameter that the file system does not have.
func (x *context) set(command int, key, value string) linux.Errno {
	switch {
	case x.phase != parameters && x.phase != changing:
		return linux.EBUSY
	case key == "ro" || key == "rw":
		x.readOnly, x.access = key == "ro", true
		return 0
	case slices.Contains([]string{"sync", "async", "dirsync", "lazytime", "nolazytime", "mand", "nomand"}, key): // without effect
		return 0
	case key == "source":
		if command != linux.FSCONFIG_SET_STRING || x.source != "" {
			return linux.EINVAL
		}
		x.source = value
		return 0
	case !isMemory(x.kind) || command != linux.FSCONFIG_SET_STRING || strings.Contains(value, ","):
		return linux.EINVAL
	}
	option := key + "=" + value
	if _, _, ok := memfs.ParseOptions(option); !ok {
		return linux.EINVAL
	}
	x.options = append(x.options, option)
	return 0
}

// create creates the file system. Errors: EBUSY, EPERM, and those of newMount.
func (x *context) create(c call.Caller) linux.Errno {
	switch {
	case x.phase != parameters:
		return linux.EBUSY
	case !c.Process.May(linux.CAP_SYS_ADMIN): // another process may have opened the context
		return linux.EPERM
	}
	about := fs.Mounted{Source: x.source, Kind: x.kind}
	if about.Source == "" {
		about.Source = "none"
	}
	if x.readOnly && isShared(x.kind) { // the other mounts stay writable
		about.Flags = fs.ReadOnlyMount
	}
	tree := c.Process.View().Tree
	var errno linux.Errno
	x.root, errno = newMount(c.Process, tree, about, strings.Join(x.options, ","))
	if x.phase = created; errno != 0 {
		x.phase = failed
	} else if x.readOnly && !isShared(x.kind) {
		tree.SetReadOnly(x.root, true)
	}
	return errno
}

// reconfigure makes a file system read-only or writable, for all its mounts. Errors: EBUSY, EPERM.
func (x *context) reconfigure(c call.Caller) linux.Errno {
	switch {
	case x.phase != changing:
		return linux.EBUSY
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return linux.EPERM
	case !x.access:
		return 0
	}
	x.access = false
	return file.ToErrno(c.Process.View().Tree.SetReadOnly(x.root, x.readOnly))
}
