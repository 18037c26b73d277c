package ninep_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// script is a client that sends given bytes and ends.
type script struct {
	io.Reader
	io.Writer
}

// sandbox is a folder with a file outside, whose content must not appear in a reply or change.
type sandbox struct{ dir, secret string }

const secret = "the secret outside of the folder"

func newSandbox(t testing.TB) sandbox {
	top := t.TempDir()
	s := sandbox{filepath.Join(top, "in"), filepath.Join(top, "secret")}
	must(t, os.WriteFile(s.secret, []byte(secret), 0o666))
	s.fill(t)
	return s
}

// fill creates the files of the folder.
func (s sandbox) fill(t testing.TB) {
	must(t, os.RemoveAll(s.dir))
	must(t, os.MkdirAll(filepath.Join(s.dir, "d", "e"), 0o777))
	must(t, os.WriteFile(filepath.Join(s.dir, "f"), []byte("content"), 0o666))
	must(t, os.Symlink("../secret", filepath.Join(s.dir, "l")))
	must(t, os.Symlink("../..", filepath.Join(s.dir, "d", "up")))
}

// serve has the server serve a client, with the given input. It checks that the file outside of the folder did not
// appear in a reply and is unchanged, and that no descriptor stays open.
func (s sandbox) serve(t *testing.T, input []byte) {
	before := openFiles(t)
	f, err := os.Open(s.dir)
	must(t, err)
	var out bytes.Buffer
	server.Serve(script{bytes.NewReader(input), &out}, f, server.Config{FIDs: 32, Size: 64 << 10})
	f.Close()
	if strings.Contains(out.String(), secret) {
		t.Error("the client has read a file outside of the folder")
	}
	if b, err := os.ReadFile(s.secret); err != nil || string(b) != secret {
		t.Errorf("the file outside is %q, %v", b, err)
	}
	if e, err := os.ReadDir(filepath.Dir(s.dir)); err != nil || len(e) != 2 {
		t.Errorf("there is something new outside: %v, %v", e, err)
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open, before it were %d", after, before)
	}
}

func openFiles(t testing.TB) int {
	e, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(e)
}

// request returns a random request that uses only a few FIDs and names, so that requests often refer to the same
// file.
func request(r *rand.Rand, tag uint16) []byte {
	fid := func() uint32 { return r.Uint32N(8) }
	name := func() string {
		return []string{"f", "d", "l", "e", "up", "..", ".", "", "a/b", "../secret", "/etc/passwd", "new", "d\x00", strings.Repeat("n", 300)}[r.IntN(14)]
	}
	n := uint32(r.IntN(4)) << (r.IntN(8) * 4)
	big := uint64(n) << (r.IntN(3) * 16)
	flags := []uint32{0, 1, 2, linux.O_CREAT | 2, linux.O_CREAT | linux.O_EXCL | 1, linux.O_TRUNC | 1, linux.O_DIRECTORY, n}[r.IntN(8)]
	mode := []uint32{0o644, 0o6777, modeDir, modeChar, modeFifo, n}[r.IntN(6)]
	data := make([]byte, r.IntN(100))
	send := func(t ninep.Type, m ninep.Message) []byte { return ninep.Append(nil, t, tag, m) }
	switch r.IntN(30) {
	case 0:
		return send(ninep.TypeAttach, &ninep.Attach{FID: fid(), Auth: ninep.NoFID, User: []string{"", "1:2", "x:y"}[r.IntN(3)]})
	case 1, 2, 3, 4:
		names := []string{name(), name()}
		return send(ninep.TypeWalk, &ninep.Walk{FID: fid(), New: fid(), Names: names[:r.IntN(3)]})
	case 5:
		return send(ninep.TypeOpen, &ninep.Open{FID: fid(), Flags: flags})
	case 6:
		return send(ninep.TypeCreate, &ninep.Create{FID: fid(), Name: name(), Flags: flags, Mode: mode})
	case 7, 8, 9:
		return send(ninep.TypeOpenAt, &ninep.OpenAt{FID: fid(), New: fid(), Name: name(), Flags: flags, Mode: mode, UID: n, Count: n})
	case 10:
		return send(ninep.TypeRead, &ninep.Read{FID: fid(), Offset: big, Count: n})
	case 11:
		return send(ninep.TypeWrite, &ninep.Write{FID: fid(), Offset: big & 0xffffff, Data: data})
	case 12:
		return send(ninep.TypeClunk, &ninep.OneFID{FID: fid()})
	case 13:
		return send(ninep.TypeReaddir, &ninep.Read{FID: fid(), Offset: big, Count: n})
	case 14:
		return send(ninep.TypeSymlink, &ninep.Symlink{FID: fid(), Name: name(), Target: "../../" + name()})
	case 15:
		return send(ninep.TypeMknod, &ninep.Mknod{FID: fid(), Name: name(), Mode: mode, Major: 1, Minor: n})
	case 16:
		return send(ninep.TypeMkdir, &ninep.Mkdir{FID: fid(), Name: name(), Mode: mode})
	case 17:
		return send(ninep.TypeLink, &ninep.Link{Dir: fid(), FID: fid(), Name: name()})
	case 18:
		return send(ninep.TypeUnlinkAt, &ninep.UnlinkAt{Dir: fid(), Name: name(), Flags: n})
	case 19:
		return send(ninep.TypeMove, &ninep.Move{RenameAt: ninep.RenameAt{Dir: fid(), Name: name(), NewDir: fid(), NewName: name()}, Flags: r.Uint32N(4)})
	case 20:
		return send(ninep.TypeSetattr, &ninep.Setattr{FID: fid(), Valid: r.Uint32N(512), Mode: mode, UID: n, GID: n, Size: big & 0xffff})
	case 21:
		return send(ninep.TypeLookup, &ninep.Lookup{FID: fid(), Name: name()})
	case 22:
		return send(ninep.TypeList, &ninep.List{FID: fid(), Name: []string{"", name()}[r.IntN(2)], Offset: big, Count: n})
	case 23:
		return send(ninep.TypeFetch, &ninep.Fetch{FID: fid(), Most: n, Count: n, Names: []string{name(), name()}})
	case 24:
		return send(ninep.TypeXattrWalk, &ninep.XattrWalk{FID: fid(), New: fid(), Name: []string{"", "user.a", "user.loam", "security.x"}[r.IntN(4)]})
	case 25:
		return send(ninep.TypeXattrCreate, &ninep.XattrCreate{FID: fid(), Name: []string{"user.a", "user.loam"}[r.IntN(2)], Size: big, Flags: r.Uint32N(4)})
	case 26:
		return send(ninep.TypeReadlink, &ninep.OneFID{FID: fid()})
	case 27:
		return send(ninep.TypeTemp, &ninep.Temp{FID: fid(), New: fid(), Flags: flags, Mode: mode})
	case 28:
		return send(ninep.TypeFsync, &ninep.Fsync{FID: fid()})
	}
	return send(ninep.TypeFlush, &ninep.Flush{Tag: uint16(r.IntN(8))})
}

const (
	modeDir  = linux.S_IFDIR | 0o755
	modeChar = linux.S_IFCHR | 0o666
	modeFifo = linux.S_IFIFO | 0o600
)

// session returns a session: Version and Attach, then n random requests by a seed.
func session(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 9))
	b := ninep.Append(nil, ninep.TypeVersion, ninep.NoTag, &ninep.Version{Size: 64 << 10, Version: ninep.VersionLoam})
	b = ninep.Append(b, ninep.TypeAttach, 0, &ninep.Attach{FID: 0, Auth: ninep.NoFID})
	for range n {
		b = append(b, request(r, uint16(r.IntN(8)))...)
	}
	return b
}

// A hostile client reaches no file outside of the folder, and no descriptor stays open when its connection ends.
func TestHostileClients(t *testing.T) {
	s := newSandbox(t)
	for seed := range uint64(300) {
		s.serve(t, session(seed, 200))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		s.fill(t)
	}
}

func FuzzServer(f *testing.F) {
	f.Add(uint64(1), []byte("junk"))
	f.Add(uint64(2), ninep.Append(nil, ninep.TypeRead, 1, &ninep.Read{FID: 0, Count: 1 << 30}))
	f.Fuzz(func(t *testing.T, seed uint64, more []byte) {
		s := newSandbox(t)
		s.serve(t, append(session(seed, 20), more...))
	})
}

// liar is a server that answers requests with bytes from a fuzzer, most of them as replies of the right type.
func liar(far net.Conn, r *rand.Rand, raw []byte) {
	defer far.Close()
	for range 300 {
		var header [ninep.HeaderSize]byte
		if _, err := io.ReadFull(far, header[:]); err != nil {
			return
		}
		h := ninep.ParseHeader(header[:])
		if _, err := io.CopyN(io.Discard, far, int64(h.Size)-ninep.HeaderSize); err != nil {
			return
		}
		b, last := lie(h, r, raw)
		if _, err := far.Write(b); err != nil || last {
			return
		}
	}
}

// lie returns an invalid reply to a request. last reports that the reply may be incomplete, so that the connection must end.
func lie(h ninep.Header, r *rand.Rand, raw []byte) (reply []byte, last bool) {
	kind := modeDir
	if r.IntN(2) == 0 {
		kind = linux.S_IFREG | 0o644
	}
	attr := ninep.Attr{QID: ninep.QID{Type: uint8(r.IntN(2) * 0x80), Path: uint64(r.IntN(5))}, Mode: uint32(kind), Links: uint64(r.IntN(3)), Size: uint64(r.IntN(3)) << (r.IntN(8) * 8)}
	data := make([]byte, r.IntN(64))
	names := []string{"a", "b", "..", "x/y", "", "c"}
	var m ninep.Message
	switch h.Type {
	case ninep.TypeVersion:
		m = &ninep.Version{Size: 8192, Version: ninep.VersionLoam}
	case ninep.TypeAttach:
		m = &ninep.OneQID{QID: ninep.QID{Type: ninep.QIDDir, Path: 1}}
	case ninep.TypeMkdir, ninep.TypeSymlink, ninep.TypeMknod:
		m = &ninep.OneQID{QID: attr.QID}
	case ninep.TypeWalk:
		m = &ninep.Walked{QIDs: make([]ninep.QID, r.IntN(3))}
	case ninep.TypeLookup:
		m = &attr
	case ninep.TypeOpenAt, ninep.TypeTemp:
		m = &ninep.OpenedAt{Attr: attr, Data: data}
	case ninep.TypeList:
		l := &ninep.Listed{End: uint8(r.IntN(2))}
		for range r.IntN(5) {
			l.Entries = (&ninep.Entry{Offset: uint64(r.IntN(5)), Name: names[r.IntN(len(names))], Attr: attr}).AppendTo(l.Entries)
		}
		m = l
	case ninep.TypeFetch:
		m = &ninep.Data{Data: (&ninep.Content{Attr: attr, Data: data}).AppendTo(nil)}
	case ninep.TypeRead:
		m = &ninep.Data{Data: data}
	case ninep.TypeWrite:
		m = &ninep.Count{Count: uint32(r.IntN(200))}
	case ninep.TypeAppend:
		m = &ninep.Appended{Count: uint32(r.IntN(200)), End: uint64(r.Int64())}
	case ninep.TypeXattrWalk, ninep.TypeSeek:
		m = &ninep.Size{Size: uint64(r.IntN(3)) << (r.IntN(8) * 8)}
	case ninep.TypeReadlink:
		m = &ninep.Target{Target: names[r.IntN(len(names))]}
	case ninep.TypeStatfs:
		m = &ninep.Statfs{}
	default:
		m = ninep.Empty{}
	}
	t := h.Type.Reply()
	switch r.IntN(40) {
	case 0:
		return raw, true
	case 1:
		h.Tag = 256 + uint16(r.IntN(300)) // a tag that no request has
	case 2, 3, 4, 5:
		t, m = ninep.TypeError, &ninep.Error{Errno: uint32([]int{2, 17, 5, 0, 1 << 20}[r.IntN(5)])}
	case 6:
		t = ninep.Type(r.IntN(256))
	}
	return ninep.Append(nil, t, h.Tag, m), h.Tag >= 256
}

// use makes random calls on a file system and ignores their results.
func use(v *fs.View, r *rand.Rand) {
	names := []string{"a", "b", "a/b", "b/a", "a/b/c", "c"}
	name := func() string { return names[r.IntN(len(names))] }
	var files []*fs.File
	for range 60 {
		switch r.IntN(12) {
		case 0:
			v.Mkdir(v.Dir, name(), 0o755)
		case 1:
			v.Rename(v.Dir, name(), v.Dir, name(), fs.RenameFlags(r.IntN(3)))
		case 2:
			v.Unlink(v.Dir, name())
		case 3:
			v.Rmdir(v.Dir, name())
		case 4, 5, 6:
			if f, err := v.Open(v.Dir, name(), fs.Flags([]int{0, linux.O_RDWR, linux.O_RDWR | linux.O_CREAT}[r.IntN(3)]), 0o644); err == nil {
				files = append(files, f)
			}
		case 7:
			if p, err := v.Lookup(v.Dir, name(), false); err == nil {
				v.Path(p)
				v.Xattrs(p)
				v.Change(p, fs.Change{Fields: fs.SetMode})
				v.Link(p, v.Dir, name())
			}
		case 8:
			v.Symlink(name(), v.Dir, name())
		default:
			for _, f := range files {
				f.Read(make([]byte, r.IntN(20000)))
				f.WriteAt(make([]byte, r.IntN(20000)), int64(r.IntN(1000)))
				if h := f.Handle(); h != nil {
					h.Append(make([]byte, r.IntN(300)))
				}
				f.Seek(0, fs.SeekHole)
			}
		}
		n := 0
		if d, err := v.Open(v.Dir, ".", fs.MustBeDir, 0); err == nil {
			d.ReadDir(func(fs.Entry) bool { n++; return n < 1000 })
			d.Close()
		}
	}
	for _, f := range files {
		f.Close()
	}
}

// lieTo runs a client whose server sends invalid replies.
func lieTo(seed uint64, raw []byte) {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		liar(far, rand.New(rand.NewPCG(seed, 3)), raw)
	}()
	if s, err := ninep.New(near, ninep.Config{}); err == nil {
		use(view(s), rand.New(rand.NewPCG(seed, 4)))
		s.Close()
	}
	near.Close()
	<-done
}

// A client does not panic or hang if its server sends invalid replies.
func TestHostileServers(t *testing.T) {
	for seed := range uint64(500) {
		lieTo(seed, []byte("nothing that is a message at all, and more of it"))
	}
}

func FuzzClient(f *testing.F) {
	f.Add(uint64(1), []byte("junk"))
	f.Fuzz(func(_ *testing.T, seed uint64, raw []byte) { lieTo(seed, raw) })
}
