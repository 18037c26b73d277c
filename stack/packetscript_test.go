package stack_test

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/timer"
	"loam/wire"
)

// Packet scripts: the files testdata/packets/*.pkt test TCP in fake time, in the language of packetdrill. Each line has a
// time in seconds and an event. A time with + is relative to the line before it. The events are
//
//	< S 0:0(0) win 1000 <mss 1460>         the peer sends a segment
//	> S. 0:0(0) ack 1 <...>                the stack sends this segment at this time, and nothing before it
//	write(4, ..., 1000) = 1000             the program makes a system call, which never blocks
//	read(4, ..., 1000) = -1 EAGAIN
//	> none                                 until this time, the stack sends nothing
//
// The last event is an addition to packetdrill's language. Sequence numbers are relative to the initial one of the side that
// sends the data. A segment of the stack may be up to scriptTolerance late. Its window is compared only if the
// script gives it, its flag PSH is not compared, and its option timestamp is compared up to one millisecond.

// scriptTolerance allows for the resolution of the stack's timers.
const scriptTolerance = 4 * time.Millisecond

// scriptISN is the initial sequence number of the peer. The numbers of a script wrap around.
const scriptISN = 1<<32 - 2000

//go:embed testdata/packets/*.pkt
var packetScripts embed.FS

func TestPacketScripts(t *testing.T) {
	const dir = "testdata/packets"
	files, err := packetScripts.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		text, err := packetScripts.ReadFile(path.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(file.Name(), ".pkt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newScriptRun(t)
				for i, line := range strings.Split(string(text), "\n") {
					if err := r.line(line); err != nil {
						t.Fatalf("line %d: %s\n%v", i+1, line, err)
					}
				}
				if err := r.waitUntil(r.last + scriptTolerance); err != nil {
					t.Fatalf("after the last line: %v", err)
				}
			})
		})
	}
}

// scriptRun is the state of a running script.
type scriptRun struct {
	w       *peer
	t       *testing.T
	begin   time.Time
	last    time.Duration // time of the last line, since begin
	files   map[int]*scriptFile
	here    uint16 // port of the stack
	isn     uint32 // initial sequence number of the stack
	known   bool   // isn is known
	stamp   uint32 // timestamp of the stack that the script calls stampAs
	stampAs uint32
	stamped bool
}

// scriptFile is a file descriptor of a script.
type scriptFile struct {
	o        stack.TCPOptions
	listener *stack.TCPListener
	conn     *stack.TCPConn
}

const scriptPeerPort = 40000

func newScriptRun(t *testing.T) *scriptRun {
	w := newPeer(t, stack.Config{Shards: 1}, pipe.Config{})
	r := &scriptRun{w: w, t: t, begin: time.Now(), files: make(map[int]*scriptFile), here: 8080}
	t.Cleanup(func() {
		for _, f := range r.files {
			f.abort()
		}
	})
	return r
}

func (f *scriptFile) abort() {
	if f.conn != nil {
		f.conn.Abort()
	}
	if f.listener != nil {
		f.listener.Close()
	}
}

// line runs one line of a script.
func (r *scriptRun) line(text string) error {
	text, _, _ = strings.Cut(text, "//")
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	when, event, _ := strings.Cut(text, " ")
	at, err := scriptTime(when, r.last)
	if err != nil {
		return err
	}
	r.last = at
	event = strings.TrimSpace(event)
	if rest, ok := strings.CutPrefix(event, ">"); ok {
		return r.expect(strings.TrimSpace(rest))
	}
	if err := r.waitUntil(at); err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(event, "<"); ok {
		return r.inject(strings.TrimSpace(rest))
	}
	return r.call(event)
}

// waitUntil lets time pass. The stack must send nothing.
func (r *scriptRun) waitUntil(at time.Duration) error {
	time.Sleep(at - time.Since(r.begin))
	if f := r.w.next(); f != nil {
		return fmt.Errorf("before this line, the stack has sent %s", r.describe(f))
	}
	return nil
}

// inject sends a segment of the peer.
func (r *scriptRun) inject(text string) error {
	p, err := parseScriptPacket(text)
	if err != nil {
		return err
	}
	h := p.tcp
	h.SrcPort, h.DstPort = scriptPeerPort, r.here
	h.Seq += scriptISN
	if h.Flags.Has(wire.ACK) {
		h.Ack += r.isn
	}
	for i := range h.SACK[:h.NumSACK] {
		h.SACK[i].Left += r.isn
		h.SACK[i].Right += r.isn
	}
	if h.HasTimestamps && h.TSEcr != 0 {
		h.TSEcr += r.stamp - r.stampAs
	}
	r.w.sendIP(wire.IPv4{Protocol: wire.ProtoTCP}, segment(h, addrB, addrA, strings.Repeat("x", p.length)))
	return nil
}

// expect waits for a segment of the stack.
func (r *scriptRun) expect(text string) error {
	if text == "none" {
		return r.waitUntil(r.last)
	}
	want, err := parseScriptPacket(text)
	if err != nil {
		return err
	}
	if early := r.last - scriptTolerance; early > time.Since(r.begin) {
		if err := r.waitUntil(early); err != nil {
			return fmt.Errorf("too early: %w", err)
		}
	}
	for {
		if f := r.w.next(); f != nil {
			return r.compare(f, want)
		}
		if time.Since(r.begin) > r.last+scriptTolerance {
			return errors.New("the stack has not sent it")
		}
		time.Sleep(timer.Tick)
	}
}

// compare checks a segment of the stack.
func (r *scriptRun) compare(f *seen, want scriptPacket) error {
	if f.tcp == nil {
		return fmt.Errorf("the stack has sent %s", f)
	}
	if !r.known {
		r.known, r.isn, r.here = true, f.tcp.Seq, f.tcp.SrcPort
	}
	if f.tcp.HasTimestamps && !r.stamped {
		r.stamped, r.stamp, r.stampAs = true, f.tcp.TSVal, want.tcp.TSVal
	}
	got := r.relative(f)
	want.tcp.Flags &^= wire.PSH
	if !want.hasWindow {
		want.tcp.Window = got.tcp.Window
	}
	if want.anyOptions {
		want.tcp.TCPOptions = got.tcp.TCPOptions
	}
	if late := got.tcp.TSVal - want.tcp.TSVal; want.tcp.HasTimestamps && int32(late) >= -1 && int32(late) <= 1 {
		want.tcp.TSVal = got.tcp.TSVal
	}
	if got.tcp != want.tcp || got.length != want.length {
		return fmt.Errorf("the stack has sent %s at %v", r.describe(f), time.Since(r.begin))
	}
	return nil
}

// relative returns a segment of the stack with the numbers of the script.
func (r *scriptRun) relative(f *seen) scriptPacket {
	h := *f.tcp
	h.SrcPort, h.DstPort = 0, 0
	h.Flags &^= wire.PSH
	h.Seq -= r.isn
	if h.Flags.Has(wire.ACK) {
		h.Ack -= scriptISN
	}
	for i := range h.SACK[:h.NumSACK] {
		h.SACK[i].Left -= scriptISN
		h.SACK[i].Right -= scriptISN
	}
	if h.HasTimestamps {
		h.TSVal -= r.stamp - r.stampAs
	}
	return scriptPacket{tcp: h, length: len(f.data)}
}

// describe returns a frame of the stack in the notation of scripts.
func (r *scriptRun) describe(f *seen) string {
	if f.tcp == nil {
		return f.String()
	}
	return r.relative(f).String()
}

// call makes a system call and checks its result.
func (r *scriptRun) call(text string) error {
	c, err := parseScriptCall(text)
	if err != nil {
		return err
	}
	got, errno, err := r.make(&c)
	if err = errors.Join(err, c.wrong); err != nil {
		return err
	}
	synctest.Wait()
	if got != c.result || errno != nil && !errors.Is(errno, c.errno) || errno == nil && c.errno != 0 {
		return fmt.Errorf("the call returned %d, %v", got, errno)
	}
	return nil
}

// make makes a system call. It returns an error if the call is unknown.
func (r *scriptRun) make(c *scriptCall) (result int, errno, err error) {
	if c.name == "socket" {
		r.files[c.result] = new(scriptFile)
		return c.result, nil, nil
	}
	f := r.files[c.number(0)]
	if f == nil {
		return 0, nil, fmt.Errorf("file descriptor %d is not open", c.number(0))
	}
	if c.name == "accept" && f.listener == nil || f.conn == nil && slices.Contains([]string{"read", "write", "send", "shutdown"}, c.name) {
		return 0, nil, fmt.Errorf("%s needs another kind of socket", c.name)
	}
	switch c.name {
	case "bind":
	case "listen":
		f.listener, errno = r.w.s.ListenTCP(netip.AddrPortFrom(addrA, r.here), c.number(1), f.o)
		if errno == nil {
			f.listener.SetFastOpenKeys(scriptKeys)
		}
	case "accept":
		accepted := new(scriptFile)
		if accepted.conn, errno = f.listener.TryAccept(); errno == nil {
			r.files[c.result], result = accepted, c.result
		}
	case "connect":
		if f.conn == nil {
			f.conn, errno = r.w.s.DialTCP(netip.AddrPort{}, netip.AddrPortFrom(addrB, scriptPeerPort), f.o)
			if errno == nil {
				errno = stack.ErrInProgress
			}
		} else if errno = f.conn.Err(); errno == nil && !f.conn.Connected() {
			errno = syscall.EALREADY
		}
	case "sendto": // with MSG_FASTOPEN
		r.known, r.stamped = false, false
		f.conn, result, errno = r.w.s.DialFast(netip.AddrPort{}, netip.AddrPortFrom(addrB, scriptPeerPort), f.o, make([]byte, c.number(2)))
		if errno == nil && result == 0 {
			result, errno = -1, stack.ErrInProgress
		}
	case "setsockopt":
		return 0, nil, f.setOption(c)
	case "read":
		result, errno = f.conn.TryRead(make([]byte, c.number(2)))
		if errno == io.EOF {
			result, errno = 0, nil
		}
	case "write":
		result, errno = f.conn.TryWrite(make([]byte, c.number(2)))
	case "send":
		write := f.conn.TryWrite
		if c.word(3) == "MSG_MORE" {
			write = f.conn.TryWriteMore
		}
		result, errno = write(make([]byte, c.number(2)))
	case "shutdown":
		if c.word(1) != "SHUT_WR" {
			return 0, nil, fmt.Errorf("%s is not SHUT_WR", c.word(1))
		}
		errno = f.conn.CloseWrite()
	case "close":
		delete(r.files, c.number(0))
		if f.conn != nil {
			errno = f.conn.Close()
		} else if f.listener != nil {
			errno = f.listener.Close()
		}
	default:
		err = fmt.Errorf("unknown system call %s", c.name)
	}
	if errno != nil {
		result = -1
	}
	return result, errno, err
}

// setOption sets an option of tcp(7) or socket(7).
func (f *scriptFile) setOption(c *scriptCall) error {
	n := c.number(3)
	set := func(o *stack.TCPOptions) (err error) {
		switch c.word(2) {
		case "TCP_FASTOPEN":
			o.FastOpen = uint16(n)
		case "TCP_NODELAY":
			o.Delay = n == 0
		case "TCP_QUICKACK":
			o.QuickAck, o.DelayAck = n != 0, n == 0
		case "TCP_CORK":
			o.Cork = n != 0
		case "SO_KEEPALIVE":
			o.KeepAlive = n != 0
		case "TCP_KEEPIDLE":
			o.KeepAliveIdle = time.Duration(n) * time.Second
		case "TCP_KEEPINTVL":
			o.KeepAliveInterval = time.Duration(n) * time.Second
		case "TCP_KEEPCNT":
			o.KeepAliveCount = n
		case "TCP_USER_TIMEOUT":
			o.UserTimeout = time.Duration(n) * time.Millisecond
		case "TCP_SYNCNT":
			o.SynRetries = n
		case "SO_RCVBUF":
			o.ReceiveBuffer = n
		default:
			err = fmt.Errorf("unknown option %s", c.word(2))
		}
		return err
	}
	if f.conn == nil {
		return set(&f.o)
	}
	var err error
	return errors.Join(f.conn.SetOptions(func(o *stack.TCPOptions) { err = set(o) }), err)
}
