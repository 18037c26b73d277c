package socket

import (
	"testing"

	"loam/abi/linux"
	"loam/posix/file"
)

// A read of a stream joins the data of successive messages. It ends before a message with control messages, after such a message,
// and, with apart, before a message of another sender. With peek, the messages stay.
func TestTakeStreamOfSeveralMessages(t *testing.T) {
	a, b := Credentials{PID: 1}, Credentials{PID: 2}
	type message struct {
		text    string
		sender  Credentials
		carries bool
	}
	type taken struct {
		text    string
		sender  Credentials
		carries bool
	}
	same := []message{{"one", a, false}, {"two", a, false}, {"three", a, false}}
	mixed := []message{{"one", a, false}, {"two", a, false}, {"three", b, false}, {"four", a, false}}
	carrying := []message{{"one", a, false}, {"two", a, true}, {"three", a, false}}
	first := []message{{"one", a, true}, {"two", a, false}}
	for name, test := range map[string]struct {
		messages []message
		size     int
		apart    bool
		want     []taken
	}{
		"all":               {same, 100, true, []taken{{"onetwothree", a, false}}},
		"parts":             {same, 4, true, []taken{{"onet", a, false}, {"woth", a, false}, {"ree", a, false}}},
		"senders together":  {mixed, 100, false, []taken{{"onetwothreefour", a, false}}},
		"senders apart":     {mixed, 100, true, []taken{{"onetwo", a, false}, {"three", b, false}, {"four", a, false}}},
		"parts apart":       {mixed, 7, true, []taken{{"onetwo", a, false}, {"three", b, false}, {"four", a, false}}},
		"control":           {carrying, 100, false, []taken{{"one", a, false}, {"two", a, true}, {"three", a, false}}},
		"control first":     {first, 100, false, []taken{{"one", a, true}, {"two", a, false}}},
		"a part of control": {first, 2, false, []taken{{"on", a, true}, {"et", a, false}, {"wo", a, false}}},
	} {
		var reader, writer file.Queue
		m := &Mailbox{Reader: &reader}
		for _, l := range test.messages {
			put := Message{Data: []byte(l.text), Sender: l.sender}
			if l.carries {
				put.Control = []Control{{Level: linux.SOL_SOCKET, Type: linux.SCM_RIGHTS}}
			}
			if n, errno := m.Put(put, 1<<20, true, &writer); n != len(l.text) || errno != 0 {
				t.Fatal(n, errno)
			}
		}
		for i, want := range test.want {
			for _, peek := range []bool{true, false} {
				buffer := make([]byte, test.size)
				r, errno := m.TakeStream(buffer, peek, test.apart)
				text := string(buffer[:r.N])
				if errno != 0 || r.Len != r.N || r.Sender != want.sender || !peek && (text != want.text || (r.Control != nil) != want.carries) {
					t.Errorf("%s, read %d, peek %v: %q, %v, %v, %+v", name, i, peek, text, errno, r.Sender, r.Control)
				}
				if peek && (len(text) < len(want.text) || text[:len(want.text)] != want.text || r.Control != nil) {
					t.Errorf("%s, peek %d: %q, %+v", name, i, text, r.Control)
				}
			}
		}
		if _, errno := m.TakeStream(make([]byte, 1), false, test.apart); errno != linux.EAGAIN || m.Queued() != 0 {
			t.Errorf("%s: after the last message: %v, %d bytes", name, errno, m.Queued())
		}
	}
}
