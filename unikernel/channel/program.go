package channel

import (
	"bufio"
	"io"
	"sync"

	"loam/abi/linux"
	"loam/fs"
)

// Console is the console device as the program's end uses it.
type Console interface {
	io.ReadWriter
	// Flush waits until the written bytes have left the machine.
	Flush() error
}

// Program is the program's end of the channel. It opens the console when a stream is first used. A program
// that uses no stream therefore waits for no device.
type Program struct {
	open    func() (Console, error)
	opening sync.Once
	console Console
	frame   []byte // buffer for a frame; guarded by sending

	sending sync.Mutex // held while a frame is sent
	answers [kinds]chan answer
	inlet   sync.Mutex // held from a Read request until its answer
	keys    sync.Mutex // held from a Keys request until its answer
	control sync.Mutex // held from a Terminal request until its answer
	outlets [kinds]outlet
	ended   chan struct{} // closed by receive when the channel can no longer be used
}

// answer is the command's answer to a Read, Keys or Terminal request.
type answer struct {
	errno linux.Errno
	bytes []byte // result of the call; owned by the receiver
}

// outlet is the state of an output stream.
type outlet struct {
	turn sync.Mutex // held by a writer for a whole Write
	// mu guards the fields below.
	mu     sync.Mutex
	moved  sync.Cond // signals that sent, errno or closed has changed; guarded by mu
	sent   int       // number of bytes sent that the command has not written yet
	errno  linux.Errno
	closed bool
}

// NewProgram returns the program's end of the channel. The function open opens the console; it is called at most once.
func NewProgram(open func() (Console, error)) *Program {
	p := &Program{open: open, ended: make(chan struct{})}
	for k := range p.answers {
		// receive sends, ask receives; never closed; if it is full, the command has sent an answer without a request, which
		// is a protocol error
		p.answers[k] = make(chan answer, 1)
	}
	for k := range p.outlets {
		p.outlets[k].moved.L = &p.outlets[k].mu
	}
	return p
}

// Stream is the standard stream with descriptor 0, 1 or 2. It implements posix.Stream.
type Stream struct {
	program *Program
	fd      int
	mode    uint32
	// ordered is for output: Write waits until the command has written the bytes. They then appear before
	// anything that the kernel or the Go runtime writes afterwards.
	ordered bool
}

// Streams returns the three streams for files with these modes (st_mode of inode(7)). Standard error is
// always ordered, standard output only if ordered is set.
func (p *Program) Streams(modes [3]uint32, ordered bool) [3]*Stream {
	return [3]*Stream{
		{program: p, fd: 0, mode: modes[0]},
		{program: p, fd: 1, mode: modes[1], ordered: ordered},
		{program: p, fd: 2, mode: modes[2], ordered: true},
	}
}

// Flags returns the stream's open(2) flags.
func (s *Stream) Flags() int {
	if s.fd == 0 {
		return linux.O_RDONLY
	}
	return linux.O_WRONLY
}

// Attr returns the stream's file attributes (fstat(2)).
func (s *Stream) Attr() fs.Attr {
	return fs.Attr{Mode: fs.Mode(s.mode), Links: 1, Inode: uint64(s.fd) + 1, BlockSize: 4096}
}

// ready opens the console on first use.
func (p *Program) ready() linux.Errno {
	p.opening.Do(func() {
		c, err := p.open()
		if err != nil {
			close(p.ended)
			return
		}
		p.console = c
		go p.receive()
	})
	if p.console == nil {
		return linux.EIO
	}
	return 0
}

// send sends a frame and waits until it has left the machine.
func (p *Program) send(k Kind, payload ...[]byte) linux.Errno {
	p.sending.Lock()
	defer p.sending.Unlock()
	size := 0
	for _, b := range payload {
		size += len(b)
	}
	p.frame = Append(p.frame[:0], k, nil)
	p.frame[4], p.frame[5] = byte(size), byte(size>>8) // the size is below MaxPayload, so two bytes are enough
	for _, b := range payload {
		p.frame = append(p.frame, b...)
	}
	if _, err := p.console.Write(p.frame); err != nil {
		return linux.EIO
	}
	if err := p.console.Flush(); err != nil {
		return linux.EIO
	}
	return 0
}

// receive processes the command's frames until the console ends.
func (p *Program) receive() {
	defer p.end()
	from := bufio.NewReaderSize(p.console, MaxPayload)
	room := make([]byte, MaxPayload)
	for {
		k, payload, err := Next(from, room)
		if err != nil {
			return
		}
		r, rest, err := ParseResult(payload)
		if err != nil {
			return
		}
		switch k {
		case Output, Errors, Results:
			p.outlets[k].taken(int(r.Count), linux.Errno(r.Errno))
		default:
			select {
			case p.answers[k] <- answer{linux.Errno(r.Errno), append([]byte(nil), rest...)}:
			default:
				return
			}
		}
	}
}

// end marks the channel as ended and wakes all calls that wait, because no more answers will arrive.
func (p *Program) end() {
	close(p.ended)
	for k := range p.outlets {
		o := &p.outlets[k]
		o.mu.Lock()
		o.closed = true
		o.moved.Broadcast()
		o.mu.Unlock()
	}
}

// taken records an answer of the command: it has written n bytes of the stream, or the write has failed with
// errno.
func (o *outlet) taken(n int, errno linux.Errno) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = max(o.sent-n, 0)
	if errno != 0 {
		o.errno = errno
	}
	o.moved.Broadcast()
}

// await waits until the command has written all sent bytes of the stream, or all except a
// number of bytes (the parameter most). It returns the error of earlier writes once.
func (o *outlet) await(most int) linux.Errno {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sent > most && !o.closed {
		o.moved.Wait()
	}
	errno := o.errno
	if o.errno = 0; o.closed {
		return linux.EIO
	}
	return errno
}

// add records that n more bytes have been sent.
func (o *outlet) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent += n
}

// ask sends a Read, Keys or Terminal request to the command, and waits for its answer.
func (p *Program) ask(k Kind, payload ...[]byte) answer {
	if errno := p.send(k, payload...); errno != 0 {
		return answer{errno: errno}
	}
	select {
	case a := <-p.answers[k]:
		return a
	case <-p.ended:
		return answer{errno: linux.EIO}
	}
}

// Read reads at least one byte from standard input. On an output stream that is a terminal, it reads the
// terminal (/dev/tty). Zero bytes without an error mean end of file.
func (s *Stream) Read(b []byte) (int, linux.Errno) {
	p := s.program
	switch {
	case s.fd == 0:
		return p.read(Read, &p.inlet, b)
	case s.isTerminal():
		return p.read(Keys, &p.keys, b)
	}
	return 0, linux.EBADF
}

// read sends a read request of kind k and waits for the answer. It holds the mutex one, which allows one request of that
// kind at a time.
func (p *Program) read(k Kind, one *sync.Mutex, b []byte) (int, linux.Errno) {
	if errno := p.ready(); errno != 0 {
		return 0, errno
	}
	one.Lock()
	defer one.Unlock()
	most := uint32(min(len(b), MaxPayload-ResultLen))
	a := p.ask(k, Result{Count: most}.Append(nil))
	return copy(b, a.bytes), a.errno
}

// isTerminal reports whether the stream is a terminal. The loam command passes the mode of the stream; every character
// device is a terminal here.
func (s *Stream) isTerminal() bool { return fs.Mode(s.mode).Type() == fs.CharDevice }

// Write writes all of b unless it fails.
func (s *Stream) Write(b []byte) (n int, errno linux.Errno) {
	k := Output
	if s.fd == 2 {
		k = Errors
	}
	return s.program.write(k, b, s.ordered)
}

// Results returns the writer for the archive of results.
func (p *Program) Results() io.Writer { return results{p} }

// results is the io.Writer of Program.Results.
type results struct{ program *Program }

// Write implements io.Writer. When it returns without an error, the command has written the bytes.
func (r results) Write(b []byte) (int, error) {
	n, errno := r.program.write(Results, b, true)
	if errno != 0 {
		return n, errno
	}
	return n, nil
}

// write writes all of b to a stream unless it fails. If ordered is set, it waits until the command has
// written the bytes.
func (p *Program) write(k Kind, b []byte, ordered bool) (n int, errno linux.Errno) {
	if errno := p.ready(); errno != 0 {
		return 0, errno
	}
	o := &p.outlets[k]
	o.turn.Lock()
	defer o.turn.Unlock()
	for n < len(b) {
		piece := b[n:min(len(b), n+MaxPayload)]
		if errno := o.await(Window - len(piece)); errno != 0 {
			return n, errno
		}
		o.add(len(piece))
		if errno := p.send(k, piece); errno != 0 {
			return n, errno
		}
		n += len(piece)
	}
	if ordered {
		errno = o.await(0)
	}
	return n, errno
}

// Ioctl serves requests of a terminal. On other files it returns ENOTTY.
func (s *Stream) Ioctl(request int, arg []byte) linux.Errno {
	p := s.program
	if !s.isTerminal() {
		return linux.ENOTTY
	}
	if errno := p.ready(); errno != 0 {
		return errno
	}
	p.control.Lock()
	defer p.control.Unlock()
	a := p.ask(Terminal, Request{FD: uint32(s.fd), Number: uint32(request)}.Append(nil), arg)
	copy(arg, a.bytes)
	return a.errno
}
