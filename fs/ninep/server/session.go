package server

import (
	"bufio"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"loam/fs/ninep"
)

// session is the connection to a client. Its goroutine owns all fields but those of replies.
type session struct {
	*server
	in   *bufio.Reader
	size uint32 // maximum bytes of messages, negotiated
	loam bool   // the client speaks ninep.VersionLoam
	fids map[uint32]*fid
	head [ninep.HeaderSize]byte
	body []byte // body of the current request

	handlers map[ninep.Type]func(*session, []byte) (work, error)

	running sync.WaitGroup // requests that run in their own goroutines
	// room holds a token for each running request: sent by the session, received by the request when it ends; full: the
	// session waits.
	room chan struct{}

	mu     sync.Mutex // guards the fields below
	out    *bufio.Writer
	buffer []byte              // where replies are encoded
	beside map[uint16][]func() // functions to call after the reply to a request that runs in its own goroutine, by tag
	failed error               // error of sending a reply
}

// inputRoom is the size of the input buffer in bytes.
const inputRoom = 64 << 10

func newSession(s *server, rw io.ReadWriter) *session {
	return &session{
		server: s, size: s.Size, in: bufio.NewReaderSize(rw, inputRoom), out: bufio.NewWriterSize(rw, inputRoom),
		fids: map[uint32]*fid{}, room: make(chan struct{}, maxRunning), beside: map[uint16][]func(){},
		handlers: newHandlers(),
	}
}

// loop serves requests until the connection ends.
func (s *session) loop() error {
	defer s.reset()
	for {
		if s.in.Buffered() == 0 {
			if err := s.flush(); err != nil {
				return err
			}
		}
		h, err := s.next()
		if err != nil {
			return err
		}
		if h.Type != ninep.TypeVersion && s.busy(h.Tag) {
			return ninep.ErrMessage
		}
		if err := s.serve(h); err != nil {
			return err
		}
	}
}

// next reads a request into body.
func (s *session) next() (ninep.Header, error) {
	if _, err := io.ReadFull(s.in, s.head[:]); err != nil {
		return ninep.Header{}, err
	}
	h := ninep.ParseHeader(s.head[:])
	if h.Size < ninep.HeaderSize || h.Size > s.size {
		return h, ninep.ErrMessage
	}
	n := int(h.Size - ninep.HeaderSize)
	if cap(s.body) < n {
		s.body = make([]byte, n, max(n, ninep.MinSize))
	}
	s.body = s.body[:n]
	_, err := io.ReadFull(s.in, s.body)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return h, err
}

// serve serves the request in body. An error ends the connection.
func (s *session) serve(h ninep.Header) error {
	switch h.Type {
	case ninep.TypeVersion:
		return s.version(h.Tag)
	case ninep.TypeFlush:
		return s.cancel(h.Tag)
	}
	handler, ok := s.handlers[h.Type]
	if !ok || h.Type >= ninep.TypeLookup && !s.loam {
		s.reply(h, nil, unix.EOPNOTSUPP)
		return nil
	}
	work, err := handler(s, s.body)
	if err == ninep.ErrMessage {
		return err
	}
	if err != nil {
		s.reply(h, nil, err)
		return nil
	}
	if work.slow || work.waits && s.in.Buffered() > 0 {
		s.start(h, work)
		return nil
	}
	s.finish(h, work)
	return nil
}

// work is the second part of serving a request. In the first part, a function of newHandlers has decoded the
// request and looked its FIDs up. The second part uses only the FID that it holds.
type work struct {
	do    func() (ninep.Message, error) // nil: reply is the result
	reply ninep.Message
	slow  bool // the work may take long, and runs in its own goroutine
	waits bool // the work may wait for the disk, and runs in its own goroutine if other requests are waiting
	fid   *fid // held until the end; may be nil

	buffer *[]byte // memory of the reply's data, which is returned to the pool buffers afterwards; nil: none
}

// buffers has buffers for the data of replies, of ninep.MaxSize bytes.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, ninep.MaxSize)
	return &b
}}

// done returns a work (see below) that has nothing to do but send a reply.
func done(m ninep.Message) (work, error) {
	return work{reply: m}, nil
}

// now returns a work whose function the session's goroutine calls at once.
func now(f func() (ninep.Message, error)) (work, error) { return work{do: f}, nil }

// start runs a request in its own goroutine. It reuses body for the next request.
func (s *session) start(h ninep.Header, w work) {
	s.body = nil // w owns the body
	s.mu.Lock()
	s.beside[h.Tag] = []func(){}
	s.mu.Unlock()
	s.room <- struct{}{}
	s.running.Go(func() {
		m, err := w.do()
		for _, f := range s.replyBeside(h, m, err) {
			f()
		}
		w.end()
		s.flush()
		<-s.room
	})
}

func (s *session) finish(h ninep.Header, w work) {
	m, err := w.reply, error(nil)
	if w.do != nil {
		m, err = w.do()
	}
	s.reply(h, m, err)
	w.end()
}

// end releases what a request holds, after the reply.
func (w *work) end() {
	if w.fid != nil {
		w.fid.release()
	}
	if w.buffer != nil {
		buffers.Put(w.buffer)
	}
}

// busy reports whether a request with a tag runs in its own goroutine.
func (s *session) busy(tag uint16) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, running := s.beside[tag]
	return running
}

// replyBeside is like reply, but for a request that runs in its own goroutine. It returns the functions to call after
// the reply. The tag is free before the reply can be sent: the client may use it again at once.
func (s *session) replyBeside(h ninep.Header, m ninep.Message, err error) (after []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after = s.beside[h.Tag]
	delete(s.beside, h.Tag)
	s.replyLocked(h, m, err)
	return after
}

// reply sends a reply, or an error.
func (s *session) reply(h ninep.Header, m ninep.Message, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replyLocked(h, m, err)
}

func (s *session) replyLocked(h ninep.Header, m ninep.Message, err error) {
	t := h.Type.Reply()
	if err != nil {
		t, m = ninep.TypeError, &ninep.Error{Errno: uint32(errno(err))}
	}
	if s.failed != nil {
		return
	}
	s.buffer = ninep.Append(s.buffer[:0], t, h.Tag, m)
	_, s.failed = s.out.Write(s.buffer)
}

// flush sends all replies.
func (s *session) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = s.out.Flush()
	}
	return s.failed
}

// cancel serves Flush. Requests are never cancelled; the reply to Flush follows the reply to the
// request.
func (s *session) cancel(tag uint16) error {
	var m ninep.Flush
	if err := ninep.Parse(s.body, &m); err != nil {
		return err
	}
	answer := func() { s.reply(ninep.Header{Type: ninep.TypeFlush, Tag: tag}, ninep.Empty{}, nil) }
	s.mu.Lock()
	after, running := s.beside[m.Tag]
	const most = 16 // maximum number of Flush requests for one request
	if running && len(after) < most {
		s.beside[m.Tag] = append(after, answer)
	}
	s.mu.Unlock()
	if !running {
		answer()
	} else if len(after) >= most {
		return ninep.ErrMessage
	}
	return nil
}

// version serves Version. It waits until all earlier requests have ended.
func (s *session) version(tag uint16) error {
	var m ninep.Version
	if err := ninep.Parse(s.body, &m); err != nil {
		return err
	}
	s.reset()
	if m.Size < ninep.MinSize {
		return ninep.ErrMessage
	}
	s.size = min(m.Size, s.Size)
	answer := ninep.Version{Size: s.size, Version: m.Version}
	s.loam = m.Version == ninep.VersionLoam && !s.Plain
	switch {
	case s.loam || m.Version == ninep.VersionLinux:
	case m.Version == ninep.VersionLoam:
		answer.Version = ninep.VersionLinux
	default:
		answer.Version = "unknown"
	}
	s.reply(ninep.Header{Type: ninep.TypeVersion, Tag: tag}, &answer, nil)
	return nil
}

// reset waits for all requests, and closes all FIDs.
func (s *session) reset() {
	s.running.Wait()
	for n, f := range s.fids {
		delete(s.fids, n)
		f.release()
	}
}

// newHandlers returns the functions that begin a request: they decode it and look its FIDs up.
func newHandlers() map[ninep.Type]func(*session, []byte) (work, error) {
	return map[ninep.Type]func(*session, []byte) (work, error){
		ninep.TypeAuth:        (*session).auth,
		ninep.TypeAttach:      (*session).attach,
		ninep.TypeWalk:        (*session).walk,
		ninep.TypeClunk:       (*session).clunk,
		ninep.TypeRemove:      (*session).remove,
		ninep.TypeStatfs:      (*session).statfs,
		ninep.TypeOpen:        (*session).open,
		ninep.TypeCreate:      (*session).create,
		ninep.TypeRead:        (*session).read,
		ninep.TypeWrite:       (*session).write,
		ninep.TypeFsync:       (*session).fsync,
		ninep.TypeReaddir:     (*session).readdir,
		ninep.TypeSymlink:     (*session).symlink,
		ninep.TypeMknod:       (*session).mknod,
		ninep.TypeMkdir:       (*session).mkdir,
		ninep.TypeLink:        (*session).link,
		ninep.TypeUnlinkAt:    (*session).unlinkAt,
		ninep.TypeRenameAt:    (*session).renameAt,
		ninep.TypeReadlink:    (*session).readlink,
		ninep.TypeGetattr:     (*session).getattr,
		ninep.TypeSetattr:     (*session).setattr,
		ninep.TypeXattrWalk:   (*session).xattrWalk,
		ninep.TypeXattrCreate: (*session).xattrCreate,
		ninep.TypeLock:        (*session).lock,
		ninep.TypeGetLock:     (*session).getLock,
		ninep.TypeLookup:      (*session).lookup,
		ninep.TypeList:        (*session).list,
		ninep.TypeFetch:       (*session).fetch,
		ninep.TypeOpenAt:      (*session).openAt,
		ninep.TypeAppend:      (*session).appendData,
		ninep.TypeMove:        (*session).move,
		ninep.TypeAllocate:    (*session).allocate,
		ninep.TypeSeek:        (*session).seek,
		ninep.TypeTemp:        (*session).temp,
	}
}

// errno returns the errno of an error.
func errno(err error) unix.Errno {
	if e, ok := err.(unix.Errno); ok && e != 0 {
		return e
	}
	return unix.EIO
}
