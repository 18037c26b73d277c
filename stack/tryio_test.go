package stack_test

import (
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"loam/stack"
	"loam/wire"
)

// The tests of this file check non-blocking calls, and the events that report when to make them. poll(2)
// is based on both.

func TestPeek(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		b := make([]byte, 10)
		if n, err := c.Peek(b, 0); n != 0 || err != stack.ErrWouldBlock {
			t.Errorf("with nothing there: %d, %v; want %v", n, err, stack.ErrWouldBlock)
		}
		p.send(wire.ACK, "hello")
		synctest.Wait()
		if n, err := c.Peek(b, 0); string(b[:n]) != "hello" || err != nil {
			t.Errorf("peek: %q, %v", b[:n], err)
		}
		if n, err := c.Peek(b, 2); string(b[:n]) != "llo" || err != nil {
			t.Errorf("peek behind 2 bytes: %q, %v", b[:n], err)
		}
		if n, err := c.Peek(b, 5); n != 0 || err != stack.ErrWouldBlock {
			t.Errorf("peek behind everything: %d, %v; want %v", n, err, stack.ErrWouldBlock)
		}
		wantRead(t, c, "it is all still there", "hello", nil)
		p.send(wire.FIN|wire.ACK, "")
		synctest.Wait()
		if n, err := c.Peek(b, 0); n != 0 || err != io.EOF {
			t.Errorf("at the end: %d, %v; want EOF", n, err)
		}
		c.Close()
		if n, err := c.Peek(b, 0); n != 0 || err != stack.ErrClosed {
			t.Errorf("of a closed socket: %d, %v; want %v", n, err, stack.ErrClosed)
		}
	})
}

// eventLog accumulates the events of a socket.
type eventLog struct{ events atomic.Uint32 }

func (e *eventLog) add(events stack.Events) { e.events.Or(uint32(events)) }

// want checks which events hold now, and that the events in isNew have been reported since the last check.
func (e *eventLog) want(t *testing.T, sentence string, now, want, isNew stack.Events) {
	t.Helper()
	if now != want {
		t.Errorf("%s: what holds is %05b, want %05b", sentence, now, want)
	}
	if got := stack.Events(e.events.Swap(0)); got&isNew != isNew {
		t.Errorf("%s: told %05b, want at least %05b", sentence, got, isNew)
	}
}

func TestEventsTCP(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		var e eventLog
		c.Watch(e.add)
		if got := c.Events(); got != stack.Writable {
			t.Errorf("an open connection is %05b, want writable", got)
		}
		p.send(wire.ACK, "hello")
		synctest.Wait()
		if got := e.events.Swap(0); got != uint32(stack.Readable) {
			t.Errorf("data arrives: told %05b, want readable", got)
		}
		wantRead(t, c, "data", "hello", nil)
		for c.Events()&stack.Writable != 0 {
			if _, err := c.TryWrite(make([]byte, 10000)); err != nil {
				t.Fatal(err)
			}
		}
		e.events.Store(0)
		p.window = 65535
		for range 200 {
			synctest.Wait()
			for f := w.next(); f != nil; f = w.next() {
				p.expect = f.tcp.Seq + uint32(len(f.data))
			}
			p.send(wire.ACK, "")
		}
		e.want(t, "all is acknowledged", c.Events(), stack.Writable, stack.Writable)
		p.send(wire.FIN|wire.ACK, "")
		synctest.Wait()
		e.want(t, "the peer's end", c.Events(), stack.Readable|stack.Writable|stack.ReadHangup, stack.Readable|stack.ReadHangup)
		if err := c.CloseRead(); err != nil {
			t.Error(err)
		}
		e.want(t, "the program has shut down reading", c.Events(), stack.Readable|stack.Writable|stack.ReadHangup, stack.Readable|stack.ReadHangup)
		p.send(wire.RST, "")
		synctest.Wait()
		e.want(t, "a reset", c.Events(), stack.Readable|stack.Writable|stack.ReadHangup|stack.Hangup|stack.Error, stack.Hangup|stack.Error)
		if err := c.Err(); err != stack.ErrPipe {
			t.Errorf("the error is %v, want %v", err, stack.ErrPipe)
		}
		if got := c.Events(); got&stack.Error != 0 {
			t.Error("the error is still there after it was taken")
		}
		c.Watch(nil)
		c.Close()
		if got := e.events.Load(); got != 0 {
			t.Errorf("told %05b after Watch(nil)", got)
		}
	})
}

func TestEventsListener(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		l := mustListen(t, w.s, 80, 10)
		var e eventLog
		l.Watch(e.add)
		e.want(t, "nobody has come", l.Events(), 0, 0)
		w.tcp(5000, 80).connect()
		e.want(t, "somebody waits", l.Events(), stack.Readable, stack.Readable)
		l.Close()
		e.want(t, "closed", l.Events(), stack.Readable|stack.Hangup, stack.Readable|stack.Hangup)
	})
}

func TestEventsUDP(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 53)
		var e eventLog
		c.Watch(e.add)
		if got := c.Events(); got != stack.Writable {
			t.Errorf("a socket is %05b, want writable", got)
		}
		w.sendUDP(1000, 53, "hello")
		if got := e.events.Swap(0); got != uint32(stack.Readable) {
			t.Errorf("a datagram arrives: told %05b, want readable", got)
		}
		if n, first := c.Waiting(); n != 1 || first != 5 {
			t.Errorf("%d datagrams wait, the first of %d bytes", n, first)
		}
		c.Close()
		e.want(t, "closed", c.Events(), stack.Readable|stack.Writable|stack.Hangup, stack.Hangup)
	})
}

// A program that waits until the peer has acknowledged everything is notified once, not
// for each acknowledgment.
func TestDrained(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		told := 0
		c.Watch(func(e stack.Events) {
			if e&stack.Drained != 0 {
				told++
			}
		})
		if !c.Drained() {
			t.Error("nothing was written, and it is not drained")
		}
		mustWrite(t, c, "hello")
		p.want("data", "A", "hello")
		if c.Drained() {
			t.Error("drained before the acknowledgment")
		}
		half := p.expect
		mustWrite(t, c, "again")
		p.want("more data", "A", "again")
		p.sendAs(wire.TCP{Seq: p.next, Ack: half, Flags: wire.ACK}, "")
		if told != 0 {
			t.Error("told although half is not acknowledged")
		}
		p.send(wire.ACK, "")
		synctest.Wait()
		if told != 1 || !c.Drained() {
			t.Errorf("told %d times when all is acknowledged, want once", told)
		}
		mustWrite(t, c, "lost")
		p.want("data", "A", "lost")
		p.send(wire.RST, "")
		if !c.Drained() {
			t.Error("a connection that has ended still holds data")
		}
		c.Close()
	})
}
