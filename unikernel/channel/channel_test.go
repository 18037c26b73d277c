package channel

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFrames(t *testing.T) {
	var b []byte
	b = Append(b, Read, Result{Count: 7}.Append(nil))
	b = Append(b, Output, []byte("hello"))
	b = Append(b, Terminal, append(Request{FD: 1, Number: 0x5401}.Append(nil), 1, 2, 3))
	r := bytes.NewReader(b)
	room := make([]byte, MaxPayload)
	k, p, err := Next(r, room)
	if res, rest, perr := ParseResult(p); k != Read || err != nil || perr != nil || res.Count != 7 || len(rest) != 0 {
		t.Errorf("%v %x %v %v", k, p, err, perr)
	}
	if k, p, err := Next(r, room); k != Output || string(p) != "hello" || err != nil {
		t.Errorf("%v %q %v", k, p, err)
	}
	k, p, err = Next(r, room)
	if req, rest, perr := ParseRequest(p); k != Terminal || err != nil || perr != nil || req != (Request{1, 0x5401}) || len(rest) != 3 {
		t.Errorf("%v %x %v %v", k, p, err, perr)
	}
	if _, _, err := Next(r, room); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A malformed frame is rejected, and nothing is read beyond the buffer.
func FuzzNext(f *testing.F) {
	f.Add(Append(nil, Errors, []byte("x")))
	f.Add([]byte{99, 0, 0, 0, 1, 0, 0, 0, 1})
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		room := make([]byte, MaxPayload)
		for {
			k, p, err := Next(r, room)
			if err != nil {
				if !errors.Is(err, ErrFrame) && err != io.EOF && err != io.ErrUnexpectedEOF {
					t.Errorf("error %v", err)
				}
				return
			}
			if again := Append(nil, k, p); !bytes.HasSuffix(b[:len(b)-r.Len()], again[HeaderLen:]) {
				t.Errorf("%v %x", k, p)
			}
			ParseResult(p)
			ParseRequest(p)
		}
	})
}
