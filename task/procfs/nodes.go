package procfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loam/abi/linux"
	"loam/fs"
)

// Config holds the settings of Processes.
type Config struct {
	Source Source
	// Mounts returns the texts of the files mounts and mountinfo. made are the mounts that processes have made.
	Mounts func(made []fs.Mounted) (mounts, info string)
	// Own is the process ID of callers that are not threads of a process. 0: such callers have no ID.
	Own int
}

// Processes holds the entries of all processes in the root directory of /proc.
type Processes struct {
	Config
	root  fs.Directory // parent of all entries: see SetRoot
	since fs.Time
}

// New returns the entries.
func New(c Config) *Processes { return &Processes{Config: c, since: fs.Tick(time.Now())} }

// node is a file or directory of a process, or of one of its threads.
type node struct {
	in       *Processes
	pid, tid int
	thread   bool // the file is below the directory task, and is about the thread
	what     *entry
	fd       int // number of the descriptor, below the directories fd and fdinfo, or index of namespaceKinds; otherwise -1
}

// kind is the type of an entry.
type kind uint8

const (
	folder kind = iota
	text
	memory
	pagemap
	magic
	symlink
)

// entry describes a kind of file in the directory of a process.
type entry struct {
	name    string
	kind    kind
	mode    fs.Mode
	guarded bool // access requires the permission to trace the process
	text    textFunc
	// part returns a part of a long text, as Process.Smaps does. Such a file has no function text.
	part   func(p Process, from uint64, size int) (text []byte, next uint64)
	set    Attribute
	link   Link
	number uint8 // unique number, part of the inode number
	hidden bool  // the file is not in the directory of a thread
	mounts bool  // the file shows the mounts of the process
}

// textFunc returns the text of a file for a reader.
type textFunc = func(n node, p Process, s *Stat, c fs.Caller) (string, error)

// plain returns a text function for a file that depends only on the snapshot of the thread.
func plain(f func(*Stat) string) textFunc {
	return func(_ node, _ Process, s *Stat, _ fs.Caller) (string, error) { return f(s), nil }
}

// withSizes returns a text function that adds the sizes of the memory to the snapshot before it calls f. A thread that has
// ended has none.
func withSizes(f textFunc) textFunc {
	return func(n node, p Process, s *Stat, c fs.Caller) (string, error) {
		if s.State != 'Z' {
			p.Sizes(s)
		}
		return f(n, p, s, c)
	}
}

// ofProcess returns a text function for a file that depends only on the process.
func ofProcess(f func(Process) []byte) textFunc {
	return func(_ node, p Process, _ *Stat, _ fs.Caller) (string, error) { return string(f(p)), nil }
}

func fixed(s string) textFunc {
	return plain(func(*Stat) string { return s })
}

// entries are the files of a process, in the order of a listing.
var entries []*entry

// Entries that are not in the list entries: the directory of a process, and files whose names are numbers.
var (
	own          = &entry{name: "", kind: folder, mode: 0o555}
	tasks        = &entry{name: "task", kind: folder, mode: 0o555, hidden: true}
	descriptors  = &entry{name: "fd", kind: folder, mode: 0o500}
	descriptions = &entry{name: "fdinfo", kind: folder, mode: 0o555}
	descriptor   = &entry{kind: magic, mode: 0o700, guarded: true}
	description  = &entry{kind: text, mode: 0o444, guarded: true}
)

func init() {
	entries = []*entry{
		tasks, descriptors, descriptions, namespaces,
		{name: "net", kind: symlink, mode: 0o777},
		{name: "environ", kind: text, mode: 0o400, guarded: true, text: ofProcess(Process.Environment)},
		{name: "auxv", kind: text, mode: 0o400, guarded: true, text: ofProcess(Process.Auxv)},
		{name: "status", kind: text, mode: 0o444, text: withSizes(plain((*Stat).status))},
		{name: "personality", kind: text, mode: 0o400, guarded: true, text: plain(func(s *Stat) string { return fmt.Sprintf("%08x\n", s.Persona) })},
		{name: "limits", kind: text, mode: 0o444, text: plain((*Stat).limits)},
		{name: "comm", kind: text, mode: 0o644, set: Name, text: plain(func(s *Stat) string { return s.Name + "\n" })},
		{name: "cmdline", kind: text, mode: 0o444, text: ofProcess(Process.Arguments)},
		{name: "stat", kind: text, mode: 0o444, text: withSizes(func(_ node, p Process, s *Stat, c fs.Caller) (string, error) {
			return s.stat(p.MayInspect(c)), nil
		})},
		{name: "statm", kind: text, mode: 0o444, text: withSizes(plain((*Stat).statm))},
		{name: "maps", kind: text, mode: 0o444, guarded: true, text: ofProcess(Process.Maps)},
		{name: "mem", kind: memory, mode: 0o600, guarded: true},
		{name: "cwd", kind: magic, mode: 0o777, link: WorkingDirectory},
		{name: "root", kind: magic, mode: 0o777, link: Root},
		{name: "exe", kind: magic, mode: 0o777, link: Executable},
		{name: "mounts", kind: text, mode: 0o444, mounts: true, text: func(n node, p Process, _ *Stat, _ fs.Caller) (string, error) {
			mounts, _ := n.in.Mounts(p.Mounted())
			return mounts, nil
		}},
		{name: "mountinfo", kind: text, mode: 0o444, mounts: true, text: func(n node, p Process, _ *Stat, _ fs.Caller) (string, error) {
			_, info := n.in.Mounts(p.Mounted())
			return info, nil
		}},
		{name: "smaps", kind: text, mode: 0o444, guarded: true, part: Process.Smaps},
		{name: "smaps_rollup", kind: text, mode: 0o444, guarded: true, text: func(_ node, p Process, _ *Stat, _ fs.Caller) (string, error) {
			text := p.Rollup()
			if text == nil {
				return "", linux.ESRCH
			}
			return string(text), nil
		}},
		{name: "pagemap", kind: pagemap, mode: 0o400, guarded: true},
		{name: "wchan", kind: text, mode: 0o444, text: fixed("0")},
		{name: "schedstat", kind: text, mode: 0o444, text: plain((*Stat).schedstat)},
		{name: "cpuset", kind: text, mode: 0o444, text: fixed("/\n")},
		{name: "cgroup", kind: text, mode: 0o444, text: fixed("0::/\n")},
		{name: "oom_score", kind: text, mode: 0o444, text: fixed("0\n")},
		{name: "oom_score_adj", kind: text, mode: 0o644, set: KillPreference, text: plain(func(s *Stat) string { return strconv.Itoa(s.KillPreference) + "\n" })},
		{name: "loginuid", kind: text, mode: 0o644, set: LoginUser, text: plain(func(s *Stat) string { return strconv.FormatUint(uint64(s.LoginUser), 10) })},
		{name: "sessionid", kind: text, mode: 0o444, text: fixed("4294967295")},
		{name: "uid_map", kind: text, mode: 0o444, text: fixed(initialIDs)},
		{name: "gid_map", kind: text, mode: 0o444, text: fixed(initialIDs)},
		{name: "setgroups", kind: text, mode: 0o444, text: fixed("allow\n")},
		{name: "io", kind: text, mode: 0o400, guarded: true, text: func(_ node, p Process, _ *Stat, _ fs.Caller) (string, error) { return p.Counts().io(), nil }},
	}
	all := append([]*entry{own, descriptor, description, namespace}, entries...)
	for i, e := range all {
		e.number = uint8(i)
	}
	description.text = func(n node, p Process, _ *Stat, _ fs.Caller) (string, error) {
		d, ok := p.Descriptor(n.fd)
		if !ok {
			return "", linux.ENOENT
		}
		return d.fdinfo(), nil
	}
}

// schedstat returns the CPU time in nanoseconds, and the number of times that the thread has run.
func (s *Stat) schedstat() string {
	return strconv.FormatInt(int64(s.User+s.System), 10) + " 0 " + strconv.FormatUint(s.Voluntary+s.Involuntary, 10) + "\n"
}

// process returns the process and a snapshot of the thread. Errors: ESRCH.
func (n node) process() (Process, *Stat, error) {
	p := n.in.Source.Process(n.pid)
	if p == nil || p.PID() != n.pid {
		return nil, nil, linux.ESRCH
	}
	s, ok := p.Stat(n.tid)
	if !ok {
		return nil, nil, linux.ESRCH
	}
	return p, &s, nil
}

// ProcessOf returns the ID of the process to whose directory in /proc a file belongs.
func ProcessOf(f fs.Node) (pid int, ok bool) {
	d, ok := f.(dirNode)
	return d.pid, ok && d.what == own && !d.thread
}

// Attr implements fs.Node. As on Linux, files of a process that is not dumpable belong to root.
func (n node) Attr() fs.Attr {
	a := fs.Attr{Inode: n.inode(), Mode: n.mode(), Links: 1, BlockSize: 1024, Access: n.in.since, Modify: n.in.since, Status: n.in.since}
	if a.Mode.Type() == fs.Dir {
		a.Links = 2
	}
	if a.Mode.Type() == fs.Symlink {
		a.Size = 64
	}
	if p := n.in.Source.Process(n.pid); p != nil {
		uid, gid, dumpable := p.Owner()
		if dumpable || a.Mode == fs.Dir|0o555 {
			a.UID, a.GID = uid, gid
		}
		if n.what == descriptor {
			a.Mode |= n.accessMode(p)
		}
	}
	return a
}

// accessMode returns the permission bits of a link in fd, which show how the file was opened.
func (n node) accessMode(p Process) fs.Mode {
	access, _ := p.AccessOf(n.fd)
	flags := fs.Flags(access)
	m := fs.Mode(0)
	if flags.MayRead() {
		m |= 0o500
	}
	if flags.MayWrite() {
		m |= 0o300
	}
	return m
}

func (n node) mode() fs.Mode {
	switch n.what.kind {
	case folder:
		return fs.Dir | n.what.mode
	case magic, symlink:
		if n.what == descriptor {
			return fs.Symlink
		}
		return fs.Symlink | n.what.mode
	}
	return fs.Regular | n.what.mode
}

func (n node) inode() uint64 {
	const fdBits, kindBits, tidBits = 20, 8, 22
	i := uint64(n.tid)<<(fdBits+kindBits) | uint64(n.what.number)<<fdBits | uint64(n.fd+1)&(1<<fdBits-1)
	if n.thread {
		i |= 1 << (fdBits + kindBits + tidBits)
	}
	return i
}

// Change implements fs.Node.
func (n node) Change(c fs.Change) error {
	if c.Fields == fs.SetSize { // O_TRUNC succeeds for a file that can be written, and has no effect
		return nil
	}
	return linux.EPERM
}

// Open implements fs.Node. A view opens files by OpenFor.
func (n node) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EACCES }

// OpenFor implements fs.Guarded.
func (n node) OpenFor(v *fs.View, flags fs.Flags) (fs.Handle, error) {
	p, _, err := n.process()
	if err != nil {
		return nil, err
	}
	h := handle{node: n, caller: v.Caller, flags: flags}
	if n.what.guarded { // before the check, because execve(2) may change the process
		h.memory = p.Pinned()
	}
	switch {
	case n.what.guarded && !p.MayInspect(v.Caller):
		return nil, linux.EACCES
	case flags.MayWrite() && n.what.mode&0o200 == 0:
		return nil, linux.EACCES
	}
	switch n.what.kind {
	case memory:
		return memoryHandle{h}, nil
	case pagemap:
		return pagemapHandle{h}, nil
	}
	text := &textHandle{handle: h}
	if n.what.name == "maps" {
		return mapsHandle{text}, nil
	}
	if tree := p.Tree(); n.what.mounts && tree != nil {
		return &mountsHandle{text, tree.NewMountAlert()}, nil
	}
	return text, nil
}

// dirNode is a directory. linkNode is a symbolic link with a text. magicNode is a symbolic link that leads directly to an
// open file.
type (
	dirNode   struct{ node }
	linkNode  struct{ node }
	magicNode struct{ node }
)

// wrap converts a node to the Go type that has the methods of its kind: a directory, a link or a file.
func wrap(n node) fs.Node {
	switch n.what.kind {
	case folder:
		return dirNode{n}
	case symlink:
		return linkNode{n}
	case magic:
		return magicNode{n}
	}
	return n
}

// Target implements fs.Link.
func (l linkNode) Target() (string, error) {
	if l.thread {
		return "../../../net", nil
	}
	return "../net", nil
}

// Target implements fs.Link.
func (m magicNode) Target() (string, error) { return "", linux.EACCES }

// find returns the place of the open file to which the link leads, and its path.
func (m magicNode) find(v *fs.View) (fs.Place, string, error) {
	p, _, err := m.process()
	if err != nil {
		return fs.Place{}, "", linux.ENOENT
	}
	if !p.MayInspect(v.Caller) {
		return fs.Place{}, "", linux.EACCES
	}
	switch m.what {
	case descriptor:
		d, ok := p.Descriptor(m.fd)
		if !ok {
			return fs.Place{}, "", linux.ENOENT
		}
		return d.Place, d.Name, nil
	case namespace:
		s := m.namespaceOf(p)
		return fs.Unnamed(s), s.text(m.node), nil
	}
	place, path, ok := p.Link(m.what.link)
	if !ok {
		return fs.Place{}, "", linux.ENOENT
	}
	return place, path, nil
}

// TargetFor implements fs.Personal.
func (m magicNode) TargetFor(v *fs.View) (string, error) {
	_, path, err := m.find(v)
	return path, err
}

// Jump implements fs.Magic.
func (m magicNode) Jump(v *fs.View) (fs.Place, error) {
	place, _, err := m.find(v)
	if err == nil && place.Node == nil {
		err = linux.ENOENT
	}
	return place, err
}

// decimal parses a name in a directory whose entries are numbers.
func decimal(name string) (int, bool) {
	n, err := strconv.ParseUint(name, 10, 31)
	return int(n), err == nil && (name == "0" || !strings.HasPrefix(name, "0"))
}

// Lookup implements fs.Directory.
func (d dirNode) Lookup(name string) (fs.Node, error) {
	p, _, err := d.process()
	if err != nil {
		return nil, linux.ENOENT
	}
	number, ok := decimal(name)
	switch d.what {
	case own:
		for _, e := range entries {
			if e.name == name && !(d.thread && e.hidden) {
				n := d.node
				n.what = e
				return wrap(n), nil
			}
		}
	case namespaces:
		return d.namespaceNamed(name)
	case tasks:
		if ok && slices.Contains(p.Threads(), number) {
			return dirNode{node{in: d.in, pid: d.pid, tid: number, thread: true, what: own, fd: -1}}, nil
		}
	default:
		if _, open := p.AccessOf(number); ok && open {
			return wrap(d.numbered(number)), nil
		}
	}
	return nil, linux.ENOENT
}

// numbered returns the entry of the directory fd or fdinfo for a descriptor.
func (d dirNode) numbered(fd int) node {
	n := d.node
	n.fd, n.what = fd, descriptor
	if d.what == descriptions {
		n.what = description
	}
	return n
}

// Parent implements fs.Directory.
func (d dirNode) Parent() fs.Directory {
	n := d.node
	switch {
	case d.what != own:
		n.what = own
	case d.thread:
		n.tid, n.thread, n.what = n.pid, false, tasks
	default:
		return d.in.root
	}
	return dirNode{n}
}

// NameOf implements fs.Directory.
func (d dirNode) NameOf(child fs.Directory) (string, bool) {
	c, ok := child.(dirNode)
	switch {
	case !ok || c.Parent() != fs.Directory(d):
		return "", false
	case c.what == own:
		return strconv.Itoa(c.tid), true
	}
	return c.what.name, true
}

// Read implements fs.Directory. The cursor of an entry whose name is a number is that number plus one.
func (d dirNode) Read(cursor uint64, yield func(fs.Entry) bool) error {
	p, _, err := d.process()
	if err != nil {
		return linux.ENOENT
	}
	if d.what == own {
		for i, e := range entries {
			n := d.node
			if n.what = e; uint64(i) < cursor || d.thread && e.hidden {
				continue
			}
			if !yield(fs.Entry{Name: e.name, Inode: n.inode(), Type: n.mode().Type(), Cursor: uint64(i) + 1}) {
				return nil
			}
		}
		return nil
	}
	if d.what == namespaces {
		return d.readNamespaces(cursor, yield)
	}
	numbers := p.Descriptors
	if d.what == tasks {
		numbers = p.Threads
	}
	for _, i := range numbers() {
		if uint64(i) < cursor {
			continue
		}
		n := d.numbered(i)
		if d.what == tasks {
			n = node{in: d.in, pid: d.pid, tid: i, thread: true, what: own, fd: -1}
		}
		if !yield(fs.Entry{Name: strconv.Itoa(i), Inode: n.inode(), Type: n.mode().Type(), Cursor: uint64(i) + 1}) {
			return nil
		}
	}
	return nil
}

// Open implements fs.Node.
func (d dirNode) Open(fs.Flags) (fs.Handle, error) { return nil, linux.EISDIR }

// Make implements fs.Directory.
func (d dirNode) Make(string, fs.Mode, fs.Owner, fs.Device) (fs.Node, error) {
	return nil, linux.ENOENT
}

// Symlink implements fs.Directory.
func (d dirNode) Symlink(string, string, fs.Owner) (fs.Node, error) { return nil, linux.ENOENT }

// Link implements fs.Directory.
func (d dirNode) Link(string, fs.Node) error { return linux.EPERM }

// Unlink implements fs.Directory.
func (d dirNode) Unlink(string) error { return linux.EPERM }

// Rmdir implements fs.Directory.
func (d dirNode) Rmdir(string) error { return linux.EPERM }

// Rename implements fs.Directory.
func (d dirNode) Rename(string, fs.Directory, string, fs.RenameFlags) error { return linux.EPERM }
