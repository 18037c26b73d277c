package tcp

import (
	"testing"
)

// Tests of undoing a reduction of the window that turns out to be unnecessary.

func TestEifelUndoesFastRecovery(t *testing.T) {
	c := sending(t, nil, ", sackOK, ts 7000 0", 10)
	early := c.tsEcho
	c.send("A 1 ack 1 <sack 989-3953>")
	c.want("A 1:989 ack 1")
	c.drain()
	if i := c.Info(c.now); i.CAState != CARecovery || i.SndSsthresh != 7 {
		t.Errorf("%+v", i)
	}
	c.advance(ms)
	c.tsEcho = early // RFC 3522: the echo is of the first transmission
	c.send("A 1 ack 3953")
	c.wantCount(Undos, 1)
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndSsthresh != 1<<31-1 || i.SndCwnd < 10 {
		t.Errorf("%+v", i)
	}
}

func TestEifelUndoesTimeout(t *testing.T) {
	c := sending(t, nil, ", ts 7000 0", 10)
	early := c.tsEcho
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:989 ack 1")
	c.wantCwnd(1)
	c.advance(ms)
	c.tsEcho = early
	c.send("A 1 ack 989")
	c.wantCount(Undos, 1)
	c.wantCwnd(11)
	if i := c.Info(c.now); i.CAState != CAOpen || i.Lost != 0 || i.Backoff != 0 {
		t.Errorf("%+v", i)
	}
	c.want("A 9881:10869 ack 1") // continues with new data, as before the timeout
}

func TestRealTimeoutIsNotUndone(t *testing.T) {
	c := sending(t, nil, ", ts 7000 0", 10)
	c.advance(c.timers[timerRTO] - c.now)
	c.want("A 1:989 ack 1")
	c.advance(10 * ms)
	c.send("A 1 ack 989") // the ACK echoes the time stamp of the retransmission
	c.wantCount(Undos, 0)
	if i := c.Info(c.now); i.CAState != CALoss {
		t.Errorf("%+v", i)
	}
}

func TestDSACKUndoesFastRecovery(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-5001>")
	c.want("A 1:1001 ack 1")
	c.drain()
	c.send("A 1 ack 5001") // the first transmission was only late
	c.drain()
	c.send("A 1 ack 5001 <sack 1-1001>") // RFC 3708: the retransmission was a duplicate
	c.wantCount(Undos, 1)
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndSsthresh != 1<<31-1 || i.SndCwnd < 10 || i.DSACKDups != 1 {
		t.Errorf("%+v", i)
	}
}

func TestDSACKUndoesAfterRecovery(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-5001>")
	c.want("A 1:1001 ack 1")
	c.drain()
	c.send("A 1 ack 10001") // recovery ends before the report arrives
	c.drain()
	if i := c.Info(c.now); i.CAState != CAOpen || i.SndSsthresh != 7 {
		t.Errorf("%+v", i)
	}
	c.send("A 1 ack 10001 <sack 1-1001>")
	c.wantCount(Undos, 1)
	if i := c.Info(c.now); i.SndSsthresh != 1<<31-1 {
		t.Errorf("%+v", i)
	}
}

func TestDSACKOfPartDoesNotUndo(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 2001-9001>")
	c.want("A 1:1001 ack 1")
	c.want("A 1001:2001 ack 1")
	c.drain()
	c.send("A 1 ack 10001 <sack 1-1001>") // D-SACK for only one of two retransmitted segments: the other one was lost
	c.drain()
	c.wantCount(Undos, 0)
}

func TestLateDSACKDoesNotUndo(t *testing.T) {
	c := sending(t, nil, ", sackOK", 10)
	c.send("A 1 ack 1 <sack 1001-10001>")
	c.want("A 1:1001 ack 1")
	c.drain()
	c.send("A 1 ack 10001")
	c.drain()
	for at := 11001; at < 40001; at += 1000 {
		c.send("A 1 ack " + itoa(at))
		c.drain()
	}
	c.send("A 1 ack 40001 <sack 1-1001>")
	c.wantCount(Undos, 0)
}
