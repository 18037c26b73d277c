package ninep

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/internal/crew"
)

// conn is a connection to a server: it matches replies to requests by their tags, and bounds both the number of
// requests in progress and their bytes.
type conn struct {
	rw     io.ReadWriteCloser
	crew   crew.Crew
	size   uint32 // maximum size of a message
	loam   bool   // the server supports VersionLoam
	window int    // maximum bytes of requests without a reply
	ended  func(error)

	tags chan uint16 // free tags; sent and received by callers, never closed; empty: the caller waits

	// The fields below let a calling goroutine read its own reply: see lead.go.
	trier    Trier    // rw, if it implements Trier; otherwise nil
	prompter Prompter // rw, if it implements Prompter; otherwise nil
	// parked has capacity 1. A caller sends to it to make receive read replies, without blocking: if parked is full,
	// receive has not taken the earlier value yet, and will read when it does. It is never closed.
	parked  chan struct{}
	waiting atomic.Int64 // calls in progress with a waiting caller
	led     atomic.Bool  // a caller has received replies itself (led) since receive last looked

	reading sync.Mutex // guards the fields below; held by the goroutine that reads
	source  source
	in      *bufio.Reader
	header  [HeaderSize]byte
	body    []byte // room for short bodies

	kept atomic.Int64 // FIDs that nodes keep until the collector releases them: see keepFID

	patience Patience // whether callers look for their replies before they block

	mu      sync.Mutex // guards the fields below
	calls   [maxCalls]*call
	fids    []uint32 // free FIDs below nextFID
	nextFID uint32
	flight  int       // bytes of requests without a reply
	landed  sync.Cond // signals that flight has shrunk, or that err is set
	err     error     // why the connection has ended
	rounds  uint64    // see FileSystem.Rounds

	sending sync.Mutex // guards the fields below; held while bytes are written
	out     []byte     // messages to be written
	lazy    bool       // a timer is set that will write the messages in the field out
}

// maxCalls is the maximum number of requests in progress.
const maxCalls = 256

// lazyTime is how long a request without a waiter may stay unsent, so that other requests are sent
// with it.
const lazyTime = 2 * time.Millisecond

// lazyBytes is the size of unsent requests, in bytes, at which they are sent at once.
const lazyBytes = 4096

// call is a request in progress.
type call struct {
	kind  Type
	size  int
	reply Message
	into  []byte // Read: receives the data
	n     int    // number of bytes in the field into
	body  []byte // the body of the reply is received here if it fits into the capacity
	err   error
	clunk uint32 // FID that the request frees, and that can be used again after the reply; NoFID: none
	fid   OneFID // message of a request that forget has made
	// done has capacity 1. The goroutine that completes the call sends to it, once; the caller receives (wait). It is never
	// closed. nil: no caller waits, and the call returns to the pool clunks.
	done chan struct{}
}

// idleCalls has calls (*call) that callOnce uses again, so that most requests allocate neither a call nor its channel.
var idleCalls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// clunks has calls (*call) of forget.
var clunks = sync.Pool{New: func() any { return new(call) }}

func newConn(rw io.ReadWriteCloser, window int, ended func(error)) *conn {
	c := &conn{rw: rw, size: MinSize, window: window, ended: ended, tags: make(chan uint16, maxCalls), parked: make(chan struct{}, 1)}
	c.landed.L = &c.mu
	c.trier, _ = rw.(Trier)
	c.prompter, _ = rw.(Prompter)
	c.source.Reader = rw
	const room = 64 << 10
	c.in = bufio.NewReaderSize(&c.source, room)
	for t := range uint16(maxCalls) {
		c.tags <- t
	}
	c.crew.Start(c.receive)
	return c
}

// begin sends a request. lazy allows it to be sent later, with others. If k.done is not nil,
// the caller must call wait to get the reply.
func (c *conn) begin(t Type, m Message, k *call, lazy bool) {
	k.kind = t
	tag := <-c.tags
	wire := tag
	if t == TypeVersion {
		wire = NoTag
	}
	c.sending.Lock()
	start := len(c.out)
	c.out = Append(c.out, t, wire, m)
	k.size = len(c.out) - start
	if !c.admit(tag, k, lazy) {
		c.out = c.out[:start]
		c.sending.Unlock()
		c.tags <- tag
		k.fail(linux.EIO)
		return
	}
	defer c.sending.Unlock()
	if lazy && len(c.out) < lazyBytes && (c.prompter == nil || !c.prompter.Awake()) {
		if !c.lazy {
			c.lazy = true
			time.AfterFunc(lazyTime, c.flush)
		}
		return
	}
	c.write()
}

// admit counts a request as in progress. It waits until the window has room; unsent requests are
// sent before. The caller holds sending.
func (c *conn) admit(tag uint16, k *call, lazy bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && c.flight > 0 && c.flight+k.size > c.window {
		if unsent := len(c.out) - k.size; unsent > 0 { // the window is full of requests, some of which were not sent yet: without sending them, no reply would make room
			rest := append([]byte(nil), c.out[unsent:]...)
			c.out = c.out[:unsent]
			c.mu.Unlock()
			c.write()
			c.mu.Lock()
			c.out = append(c.out, rest...)
			continue
		}
		c.landed.Wait()
	}
	if c.err != nil {
		return false
	}
	c.calls[tag] = k
	c.waiting.Add(k.waiters())
	c.flight += k.size
	if k.kind != TypeClunk && !lazy {
		c.rounds++
	}
	return true
}

// write writes all unsent requests. The caller holds sending.
func (c *conn) write() {
	if len(c.out) == 0 {
		return
	}
	_, err := c.rw.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		c.end(err)
	}
}

// flush writes unsent requests. A timer calls it lazyTime after a lazy request.
func (c *conn) flush() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.lazy = false
	c.write()
}

// call makes a request and waits for the reply. If the server has no more FIDs, it releases those of nodes that are no longer
// referenced, and makes the request again. Errors: the linux.Errno of the server; EIO if the connection has ended.
func (c *conn) call(t Type, m, reply Message) error { return c.callInto(t, m, reply, nil) }

// callInto is like call. If the body of the reply fits into the capacity of body, it is received there, and the reply may keep parts
// of it.
func (c *conn) callInto(t Type, m, reply Message, body []byte) error {
	err := c.callOnce(t, m, reply, body, nil)
	if err == linux.EMFILE && c.collect() {
		err = c.callOnce(t, m, reply, body, nil)
	}
	return err
}

// callWhile is like call. It calls meanwhile, if that is not nil, after the request was sent.
func (c *conn) callWhile(t Type, m, reply Message, meanwhile func()) error {
	err := c.callOnce(t, m, reply, nil, meanwhile)
	if err == linux.EMFILE && c.collect() {
		err = c.callOnce(t, m, reply, nil, nil)
	}
	return err
}

// collect runs the collector and waits until it has released kept FIDs, for at most a tenth of a second. It returns false if there
// was nothing to release.
func (c *conn) collect() bool {
	before := c.kept.Load()
	if before == 0 {
		return false
	}
	runtime.GC()
	for range 100 {
		if c.kept.Load() < before {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// callOnce is callInto and callWhile without a repetition.
func (c *conn) callOnce(t Type, m, reply Message, body []byte, meanwhile func()) error {
	k := idleCalls.Get().(*call)
	*k = call{reply: reply, clunk: NoFID, done: k.done, body: body}
	c.begin(t, m, k, false)
	if meanwhile != nil {
		meanwhile()
	}
	c.wait(k)
	err := k.err
	k.reply, k.body = nil, nil
	idleCalls.Put(k)
	return err
}

// beside runs f in a goroutine, unless the connection has ended. It returns false if the connection
// has ended.
func (c *conn) beside(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.crew.Start(f)
	}
	return c.err == nil
}

// forget sends a Clunk request and does not wait for the reply.
func (c *conn) forget(fid uint32) {
	k := clunks.Get().(*call)
	*k = call{reply: Empty{}, clunk: fid, fid: OneFID{fid}}
	c.begin(TypeClunk, &k.fid, k, true)
}

// fail ends a call with an error.
func (k *call) fail(err error) {
	k.err = err
	k.complete()
}

// complete wakes the caller, if one waits. After that, k may be in use for another request.
func (k *call) complete() {
	if k.done != nil {
		k.done <- struct{}{}
		return
	}
	clunks.Put(k)
}

// newFID returns a free FID.
func (c *conn) newFID() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.fids); n > 0 {
		fid := c.fids[n-1]
		c.fids = c.fids[:n-1]
		return fid
	}
	c.nextFID++
	return c.nextFID
}

// dropFID frees a FID that the server does not use.
func (c *conn) dropFID(fid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fids = append(c.fids, fid)
}

// receive receives replies until the connection ends. While callers read (lead.go), it waits.
func (c *conn) receive() {
	for {
		c.reading.Lock()
		more := c.step()
		for more && (c.trier == nil || c.waiting.Load() > 0) {
			more = c.step()
		}
		c.reading.Unlock()
		if !more {
			return
		}
		c.idle()
	}
}

// step receives a reply. It returns false if the connection has ended. The caller holds reading.
func (c *conn) step() bool {
	if _, err := io.ReadFull(c.in, c.header[:]); err != nil {
		c.end(err)
		return false
	}
	h := ParseHeader(c.header[:])
	var k *call
	if h.Size >= HeaderSize && h.Size <= MaxSize {
		k = c.take(h)
	}
	if k == nil {
		c.end(ErrMessage)
		return false
	}
	if err := k.receive(c.in, h, &c.body); err != nil {
		c.waiting.Add(-k.waiters())
		k.fail(linux.EIO)
		c.end(err)
		return false
	}
	c.land(h.Tag, k)
	return true
}

// waiters returns the number of callers that wait for a call: 0 or 1.
func (k *call) waiters() int64 {
	if k.done == nil {
		return 0
	}
	return 1
}

// take returns the call that a reply is for, or nil.
func (c *conn) take(h Header) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.Tag == NoTag {
		for tag, k := range c.calls { // only a Version request can be in progress at that time
			if k != nil && k.kind == TypeVersion {
				c.calls[tag] = nil
				c.tags <- uint16(tag)
				return k
			}
		}
	}
	if h.Tag >= maxCalls {
		return nil
	}
	k := c.calls[h.Tag]
	c.calls[h.Tag] = nil
	return k
}

// land completes a call, whose fields hold the reply or the error, and makes room for further calls in the window.
func (c *conn) land(tag uint16, k *call) {
	c.mu.Lock()
	c.flight -= k.size
	if k.clunk != NoFID && k.err == nil {
		c.fids = append(c.fids, k.clunk)
	}
	c.landed.Broadcast()
	c.mu.Unlock()
	if k.kind != TypeVersion {
		c.tags <- tag
	}
	c.waiting.Add(-k.waiters())
	k.complete()
}

// keepsBody reports whether the reply keeps a part of its body, which therefore cannot be reused.
func (k *call) keepsBody() bool {
	switch k.reply.(type) {
	case *Data, *Listed:
		return true
	}
	return false
}

// receive reads the body of a reply. Short bodies are read into the buffer room, which later replies reuse, unless
// the reply keeps a part of its body.
func (k *call) receive(in *bufio.Reader, h Header, room *[]byte) error {
	n := int(h.Size - HeaderSize)
	if h.Type == k.kind.Reply() && k.into != nil {
		return k.receiveData(in, n)
	}
	const small = 256
	body := *room
	switch {
	case 0 < n && n <= cap(k.body):
		body = k.body
	case n > small || k.keepsBody():
		body = make([]byte, n)
	case cap(body) < n:
		*room = make([]byte, small)
		body = *room
	}
	body = body[:n]
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	switch h.Type {
	case k.kind.Reply():
		err := Parse(body, k.reply)
		if o, ok := k.reply.(*OpenedAt); ok && n <= small {
			o.Data = bytes.Clone(o.Data)
		}
		return err
	case TypeError:
		var e Error
		if err := Parse(body, &e); err != nil {
			return err
		}
		k.err = linux.EIO
		if 0 < e.Errno && e.Errno < maxErrno {
			k.err = linux.Errno(e.Errno)
		}
		return nil
	}
	return ErrMessage
}

// maxErrno is larger than all error numbers of Linux.
const maxErrno = 4096

// receiveData reads the data of a Data reply into the caller's buffer.
func (k *call) receiveData(in *bufio.Reader, n int) error {
	var count [4]byte
	if n < len(count) {
		return ErrMessage
	}
	if _, err := io.ReadFull(in, count[:]); err != nil {
		return err
	}
	n -= len(count)
	if binary.LittleEndian.Uint32(count[:]) != uint32(n) || n > len(k.into) {
		return ErrMessage
	}
	k.n = n
	_, err := io.ReadFull(in, k.into[:n])
	return err
}

// end ends the connection: all calls fail with EIO, now and later.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := c.calls
	c.calls = [maxCalls]*call{}
	c.landed.Broadcast()
	c.mu.Unlock()
	c.rw.Close()
	c.park()
	for tag, k := range calls {
		if k != nil {
			c.waiting.Add(-k.waiters())
			k.fail(linux.EIO)
			c.tags <- uint16(tag)
		}
	}
	if c.ended != nil {
		c.ended(err)
	}
}

// negotiate agrees with the server on version and size.
func (c *conn) negotiate(size uint32) error {
	for _, version := range []string{VersionLoam, VersionLinux} {
		var answer Version
		if err := c.call(TypeVersion, &Version{size, version}, &answer); err != nil {
			return err
		}
		if answer.Size < MinSize || answer.Size > size {
			return ErrMessage
		}
		c.size = answer.Size
		switch answer.Version {
		case VersionLoam:
			c.loam = true
			return nil
		case VersionLinux:
			return nil
		}
	}
	return linux.EPROTONOSUPPORT
}
