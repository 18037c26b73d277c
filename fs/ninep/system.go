package ninep

import (
	"cmp"
	"container/list"
	"fmt"
	"io"
	"sync"
	"time"
	"weak"

	"loam/abi/linux"
	"loam/fs"
)

// Cache is a cache mode.
type Cache uint8

// Values of Cache: how long the client keeps results of the server.
const (
	Loose Cache = iota // keep results for Config.Valid
	None               // keep nothing
)

// Config describes a client. The zero value selects the defaults.
type Config struct {
	Tree     string // name of the tree; servers of Loam have only one
	UID, GID uint32 // user and group to which the server's own files belong
	Cache    Cache
	Valid    time.Duration // time for which cached results are valid with Loose; 0: one second
	Size     uint32        // maximum size of a message; 0: MaxSize
	Names    int           // maximum number of names that are cached with Loose; 0: 65536
	Window   int           // maximum bytes of requests without a reply; 0: 2 MiB
	// Ended is called when the connection has ended, if not nil. From then on, all calls return EIO.
	Ended func(error)
}

// mostFIDs is the number of FIDs of directories that are kept without being in use.
const mostFIDs = 1024

// mostContent bounds the bytes of cached contents.
const mostContent = 16 << 20

// FileSystem is a tree of a server. It implements fs.FileSystem and fs.NamelessMaker.
type FileSystem struct {
	conn  *conn
	valid time.Duration // time for which cached results are valid; 0: nothing is cached
	owner fs.Owner
	root  *node

	mostCached int                 // maximum number of cached names
	pages      fs.PageTable[*node] // cached pages of mapped files

	clock  clock
	naming sync.Mutex // held while a name is removed or moved

	mu      sync.Mutex // guards the fields below, and those of nodes
	tick    uint64     // counts changes of files and directories
	nodes   map[key]weak.Pointer[node]
	sweepAt int       // number of nodes at which nodes without references are removed
	fids    list.List // nodes (*node) that have a FID of their own and are not in use, most recently used first
	made    []*node   // regular files that were created and not opened yet

	cached  list.List // directories (*node) with cached names, most recently filled first
	names   int       // number of cached names
	ahead   bool      // runAhead runs
	aheadAt *node     // the directory behind which runAhead continues; may be nil
	content int       // bytes of cached contents
}

// key identifies a file.
type key struct {
	path    uint64
	version uint32
}

// New returns the tree of the server on rw. Errors: linux.Errno values of the server; EPROTONOSUPPORT if it does
// not speak 9P2000.L. On error rw is closed.
func New(rw io.ReadWriteCloser, c Config) (*FileSystem, error) {
	s := &FileSystem{
		conn: newConn(rw, cmp.Or(c.Window, 2<<20), c.Ended), valid: cmp.Or(c.Valid, time.Second), owner: fs.Owner{UID: c.UID, GID: c.GID},
		mostCached: cmp.Or(c.Names, 1<<16), nodes: map[key]weak.Pointer[node]{},
	}
	if c.Cache == None {
		s.valid = 0
	}
	s.valid = s.clock.set(s.valid)
	err := s.conn.negotiate(min(max(cmp.Or(c.Size, MaxSize), MinSize), MaxSize))
	if err == nil {
		err = s.attach(c)
	}
	if err != nil {
		s.conn.end(err)
		return nil, err
	}
	return s, nil
}

// attach makes the root.
func (s *FileSystem) attach(c Config) error {
	fid := s.conn.newFID()
	var q OneQID
	user := fmt.Sprintf("%d:%d", c.UID, c.GID)
	if err := s.conn.call(TypeAttach, &Attach{fid, NoFID, user, c.Tree, c.UID}, &q); err != nil {
		return err
	}
	if q.QID.Type&QIDDir == 0 {
		return linux.ENOTDIR
	}
	s.root = &node{s: s, key: keyOf(q.QID), kind: fs.Dir, fid: fid, pins: 1}
	s.root.self = weak.Make(s.root)
	s.nodes[s.root.key] = s.root.self
	return nil
}

// Rounds returns how often callers have waited for replies. Requests that are made together count
// once.
func (s *FileSystem) Rounds() uint64 {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.conn.rounds
}

// Close ends the connection.
func (s *FileSystem) Close() error {
	s.conn.end(io.ErrClosedPipe)
	s.conn.crew.Wait()
	return nil
}

// Root implements fs.FileSystem.
func (s *FileSystem) Root() fs.Directory { return directory{s.root} }

// Usage implements fs.FileSystem.
func (s *FileSystem) Usage() fs.Usage {
	var st Statfs
	if err := s.conn.call(TypeStatfs, &OneFID{s.root.fid}, &st); err != nil {
		return fs.Usage{Type: magic, BlockSize: 4096, MaxNameLength: fs.MaxName}
	}
	return fs.Usage{
		Type: magic, BlockSize: int64(st.BlockSize), Blocks: st.Blocks, BlocksFree: st.BlocksOK,
		Files: st.Files, FilesFree: st.FilesFree, MaxNameLength: int64(min(st.NameLength, fs.MaxName)),
	}
}

// magic is the type of the file system to statfs(2): V9FS_MAGIC.
const magic = 0x01021997

// Sync implements fs.FileSystem. The host has all data that was written; it is on disk after fsync(2) of the file.
func (s *FileSystem) Sync() error {
	flushed := s.pages.Flush()
	if err := s.conn.call(TypeFsync, &Fsync{FID: s.root.fid}, Empty{}); err != nil {
		return err
	}
	return flushed
}

// MakeNameless implements fs.NamelessMaker.
func (s *FileSystem) MakeNameless(mode fs.Mode, owner fs.Owner, use fs.NamelessUse) (fs.Node, error) {
	if !s.conn.loam {
		return nil, linux.EOPNOTSUPP
	}
	flags := uint32(linux.O_RDWR)
	if use != fs.ToName {
		flags |= linux.O_EXCL
	}
	fid := s.conn.newFID()
	m := Temp{s.root.fid, fid, flags, uint32(mode & fs.Permissions), owner.UID, owner.GID}
	var answer OpenedAt
	if err := s.conn.call(TypeTemp, &m, &answer); err != nil {
		s.conn.dropFID(fid)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := recordOf(&answer.Attr)
	n := s.nodeOf(nil, "", &r)
	if n == nil {
		s.conn.forget(fid)
		return nil, linux.EIO
	}
	n.noLink = use != fs.ToName
	s.keepMade(n, fid)
	return n.fsNode(), nil
}

// now returns the present time for comparison with deadlines.
func (s *FileSystem) now() instant {
	if s.valid == 0 {
		return 0
	}
	return s.clock.now()
}

// errno returns err, or EIO if err is not a linux.Errno.
func errno(err error) error {
	if e, ok := err.(linux.Errno); ok {
		return e
	}
	return linux.EIO
}
