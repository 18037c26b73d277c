package channel

import (
	"bufio"
	"io"
	"sync"
	"syscall"

	"loam/fs"
)

// Console is what the program's end needs of a console.
type Console interface {
	io.ReadWriter
	// Flush waits until what was written has left the machine.
	Flush() error
}

// Program is the program's end. It opens its console when a stream is first used, so
// that a program that uses none has no device that waits.
type Program struct {
	open    func() (Console, error)
	opening sync.Once
	console Console
	frame   []byte // under sending

	sending sync.Mutex // one frame after the other
	answers [kinds]chan answer
	inlet   sync.Mutex // a read and its answer
	keys    sync.Mutex // likewise, of the terminal
	control sync.Mutex // a terminal request and its answer
	outlets [kinds]outlet
	ended   chan struct{} // closed by receive when the channel is of no use any more
}

// answer is what the command says to a Read or a Terminal request.
type answer struct {
	errno syscall.Errno
	bytes []byte // the receiver's own
}

// outlet is a stream of output.
type outlet struct {
	turn   sync.Mutex // of who writes
	mu     sync.Mutex
	moved  sync.Cond // under mu: sent, errno or ended have changed
	sent   int       // bytes under way
	errno  syscall.Errno
	closed bool
}

// NewProgram returns the program's end of the channel over the console that open
// opens.
func NewProgram(open func() (Console, error)) *Program {
	p := &Program{open: open, ended: make(chan struct{})}
	for k := range p.answers {
		p.answers[k] = make(chan answer, 1) // sent by receive, received by who asked, never closed; full: nobody asked, and the command is not ours
	}
	for k := range p.outlets {
		p.outlets[k].moved.L = &p.outlets[k].mu
	}
	return p
}

// Stream is descriptor 0, 1 or 2: a posix.Stream.
type Stream struct {
	program *Program
	fd      int
	mode    uint32
	// ordered is of output: Write waits until the command has written it. So it is
	// there before anything that the kernel writes afterwards, on behalf of the Go
	// runtime or its own.
	ordered bool
}

// Streams are the three streams, of files with these modes (st_mode of inode(7)).
// Standard error is always ordered, standard output only on demand.
func (p *Program) Streams(modes [3]uint32, ordered bool) [3]*Stream {
	return [3]*Stream{
		{program: p, fd: 0, mode: modes[0]},
		{program: p, fd: 1, mode: modes[1], ordered: ordered},
		{program: p, fd: 2, mode: modes[2], ordered: true},
	}
}

// Flags are those of open(2).
func (s *Stream) Flags() int {
	if s.fd == 0 {
		return syscall.O_RDONLY
	}
	return syscall.O_WRONLY
}

// Attr is what fstat tells.
func (s *Stream) Attr() fs.Attr {
	return fs.Attr{Mode: fs.Mode(s.mode), Links: 1, Inode: uint64(s.fd) + 1, BlockSize: 4096}
}

// ready opens the console, once.
func (p *Program) ready() syscall.Errno {
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
		return syscall.EIO
	}
	return 0
}

// send sends a frame and waits until it has left.
func (p *Program) send(k Kind, payload ...[]byte) syscall.Errno {
	p.sending.Lock()
	defer p.sending.Unlock()
	size := 0
	for _, b := range payload {
		size += len(b)
	}
	p.frame = Append(p.frame[:0], k, nil)
	p.frame[4], p.frame[5] = byte(size), byte(size>>8) // below MaxPayload
	for _, b := range payload {
		p.frame = append(p.frame, b...)
	}
	if _, err := p.console.Write(p.frame); err != nil {
		return syscall.EIO
	}
	if err := p.console.Flush(); err != nil {
		return syscall.EIO
	}
	return 0
}

// receive takes what the command says, until the console ends.
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
			p.outlets[k].taken(int(r.Count), syscall.Errno(r.Errno))
		default:
			select {
			case p.answers[k] <- answer{syscall.Errno(r.Errno), append([]byte(nil), rest...)}:
			default:
				return
			}
		}
	}
}

// end tells everybody who waits that no answer will come.
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

// taken notes that the command has written so much, or cannot write.
func (o *outlet) taken(n int, errno syscall.Errno) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = max(o.sent-n, 0)
	if errno != 0 {
		o.errno = errno
	}
	o.moved.Broadcast()
}

// await waits until at most so many bytes are under way, and returns what went wrong
// with those before.
func (o *outlet) await(most int) syscall.Errno {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.sent > most && !o.closed {
		o.moved.Wait()
	}
	errno := o.errno
	if o.errno = 0; o.closed {
		return syscall.EIO
	}
	return errno
}

// add notes that n more bytes are under way.
func (o *outlet) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent += n
}

// ask sends a question and waits for the answer.
func (p *Program) ask(k Kind, payload ...[]byte) answer {
	if errno := p.send(k, payload...); errno != 0 {
		return answer{errno: errno}
	}
	select {
	case a := <-p.answers[k]:
		return a
	case <-p.ended:
		return answer{errno: syscall.EIO}
	}
}

// Read reads at least one byte of standard input, or of the terminal where output is shown (/dev/tty);
// 0 and no error is the end.
func (s *Stream) Read(b []byte) (int, syscall.Errno) {
	p := s.program
	switch {
	case s.fd == 0:
		return p.read(Read, &p.inlet, b)
	case s.isTerminal():
		return p.read(Keys, &p.keys, b)
	}
	return 0, syscall.EBADF
}

// read asks for bytes by a kind, of which there is one request at a time.
func (p *Program) read(k Kind, one *sync.Mutex, b []byte) (int, syscall.Errno) {
	if errno := p.ready(); errno != 0 {
		return 0, errno
	}
	one.Lock()
	defer one.Unlock()
	most := uint32(min(len(b), MaxPayload-ResultLen))
	a := p.ask(k, Result{Count: most}.Append(nil))
	return copy(b, a.bytes), a.errno
}

func (s *Stream) isTerminal() bool { return fs.Mode(s.mode).Type() == fs.CharDevice }

// Write writes all of b unless it fails.
func (s *Stream) Write(b []byte) (n int, errno syscall.Errno) {
	k := Output
	if s.fd == 2 {
		k = Errors
	}
	return s.program.write(k, b, s.ordered)
}

// Results is where the archive of results is written to.
func (p *Program) Results() io.Writer { return results{p} }

type results struct{ program *Program }

// Write implements io.Writer. The command has taken what it returns for.
func (r results) Write(b []byte) (int, error) {
	n, errno := r.program.write(Results, b, true)
	if errno != 0 {
		return n, errno
	}
	return n, nil
}

// write writes all of b to a stream unless it fails, and if ordered waits until the
// command has written it.
func (p *Program) write(k Kind, b []byte, ordered bool) (n int, errno syscall.Errno) {
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

// Ioctl serves the requests of a terminal.
func (s *Stream) Ioctl(request int, arg []byte) syscall.Errno {
	p := s.program
	if !s.isTerminal() {
		return syscall.ENOTTY
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
